"""What the function in a checkpoint changes itself is changed once, though it runs twice."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import tapetensor as tt
from tapetensor import nn
from tests.checkpointing.trials import VALUES, Trial, outcome, tensor


class Counting(nn.Module):
    weight: Any
    calls: int = 0

    def forward(self, x: Any) -> Any:
        self.calls += 1
        return x * self.weight * float(self.calls)


def _counter() -> Trial:
    module = Counting(weight=tensor(1.0, 2.0, 3.0))
    return Trial(module.forward, lambda: None, (module.weight,), lambda: module.calls)


def _history() -> Trial:
    seen: list[int] = []

    def f(x: Any) -> Any:
        seen.append(len(seen))
        return x * float(len(seen))

    return Trial(f, lambda: None, state=lambda: list(seen))


def _history_that_goes_on() -> Trial:
    trial = _history()
    return trial._replace(change=lambda: trial.f(tt.from_numpy(VALUES)))


def _memory() -> Trial:
    cache: dict[str, Any] = {}

    def f(x: Any) -> Any:
        if "scale" not in cache:
            cache["scale"] = tensor(1.0, 2.0, 3.0)
        return x * cache["scale"]

    return Trial(f, lambda: None, state=lambda: list(cache))


def _running_mean_of_numpy() -> Trial:
    mean = np.zeros(3)

    def f(x: Any) -> Any:
        mean[...] = 0.5 * mean + 0.5 * x.detach().numpy().mean(axis=0) + 1.0
        return x * tt.from_numpy(mean)

    return Trial(f, lambda: None, state=mean.tolist)


class WithNorm:
    """An object that is no module, and holds one whose statistics run."""

    def __init__(self) -> None:
        self.layers = [nn.BatchNorm1d(3, dtype=np.float64)]

    def run(self, x: Any) -> Any:
        return self.layers[0].forward(x)


def _norm_in_an_object() -> Trial:
    holder = WithNorm()
    norm = holder.layers[0]
    return Trial(
        holder.run,
        lambda: None,
        (norm.weight,),
        lambda: [one.numpy().tolist() for one in norm.buffers().values()],
    )


@dataclass
class Noise:
    rng: Any

    def __call__(self, x: Any) -> Any:
        draw = self.rng.normal if hasattr(self.rng, "normal") else self.rng.gauss
        return x * tt.full((), float(draw(0.0, 1.0)), np.float64)


def _drawn(rng: Any) -> Trial:
    noise = Noise(rng)
    return Trial(lambda x: noise(x), lambda: noise(tt.ones((3,), np.float64)))


def _bound_draw() -> Trial:
    draw = np.random.default_rng(0).random
    return Trial(lambda x: x * float(draw()), lambda: draw())


def _global_draws() -> Trial:
    random.seed(0)
    np.random.seed(0)  # noqa: NPY002  # what others still use

    def f(x: Any) -> Any:
        return x * random.random() * after()[1]

    def after() -> tuple[float, float]:
        return random.random(), float(np.random.standard_normal())  # noqa: NPY002  # the same

    return Trial(f, after, state=after)


@pytest.mark.parametrize(
    "made",
    [
        _counter,
        _history,
        _history_that_goes_on,
        _memory,
        _running_mean_of_numpy,
        _norm_in_an_object,
        lambda: _drawn(np.random.default_rng(0)),
        lambda: _drawn(np.random.RandomState(0)),
        lambda: _drawn(random.Random(0)),
        _bound_draw,
        _global_draws,
    ],
)
def test_what_f_changes_is_changed_once(made: Callable[[], Trial]) -> None:
    expected = outcome(made(), is_checkpointed=False)
    assert outcome(made(), is_checkpointed=True) == expected


def test_all_is_as_it_was_after_a_second_run_that_fails() -> None:
    module = Counting(weight=tensor(1.0, 2.0, 3.0))
    fails: Iterator[bool] = iter([False, True])
    before = module.weight

    def f(x: Any) -> Any:
        y = module.forward(x)
        if next(fails):
            raise RuntimeError("the second time")
        return y

    y = tt.checkpoint(f, tt.from_numpy(VALUES).trace()).sum()
    module.calls, module.weight = 7, tensor(4.0, 5.0, 6.0)
    after = module.weight

    with pytest.raises(RuntimeError, match="the second time"):
        y.backward()

    assert (module.calls, module.weight) == (7, after)
    assert before is not after
