"""The second run of a checkpoint repeats the first, or is refused: whatever was changed between."""

from __future__ import annotations

import itertools
import logging
import random
import threading
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property, lru_cache, partial
from types import SimpleNamespace
from typing import Any, ClassVar, NamedTuple

import numpy as np
import pytest
from typing_extensions import override

import tapetensor as tt
from tapetensor import nn
from tests.checkpointing import settings

_VALUES = np.linspace(-1.0, 1.0, 12).reshape(4, 3)


def _tensor(*values: float) -> Any:
    return tt.from_numpy(list(values), dtype=np.float64)


class Trial(NamedTuple):
    """A function, the tensors it uses, what changes between its run and the backward pass."""

    f: Callable[[Any], Any]
    change: Callable[[], object]
    tensors: tuple[Any, ...] = ()
    # Where it can be seen whether state is left as without a checkpoint.
    state: Callable[[], object] = lambda: None


def _outcome(trial: Trial, *, is_checkpointed: bool) -> list[Any]:
    x = tt.from_numpy(_VALUES)
    y = tt.checkpoint(trial.f, x.trace()) if is_checkpointed else trial.f(x.trace())
    trial.change()
    grads = y.square().sum().backward()
    return [y.numpy().tolist(), trial.state()] + [
        grads[one].numpy().tolist() for one in (x, *trial.tensors)
    ]


# --- What holds what f reads ---


@dataclass
class Scale:
    value: Any


@dataclass(frozen=True, slots=True)
class Frozen:
    scale: Scale


class Slotted:
    __slots__ = ("__value", "also")

    def __init__(self, value: Any) -> None:
        self.__value = value

    def set(self, value: Any) -> None:
        self.__value = value

    def __call__(self, x: Any) -> Any:
        return x * self.__value


class Propertied:
    def __init__(self) -> None:
        self._value = 3.0

    @property
    def value(self) -> float:
        return self._value

    @cached_property
    def twice(self) -> float:
        return 2 * self._value


class OfClass:
    value: ClassVar[float] = 3.0

    def apply(self, x: Any) -> Any:
        return x * self.value


class Layer(nn.Module):
    weight: Any
    alpha: float = 1.0

    def forward(self, x: Any) -> Any:
        return (x * self.weight).tanh() * self.alpha


class Pair(NamedTuple):
    layer: Any
    scales: list[float]


def _module() -> Trial:
    layer = Layer(weight=_tensor(1.0, 2.0, 3.0))
    return Trial(layer.forward, lambda: setattr(layer, "alpha", 5.0), (layer.weight,))


def _module_in_a_function() -> Trial:
    layer = Layer(weight=_tensor(1.0, 2.0, 3.0))
    return Trial(lambda x: layer.forward(x) * layer.alpha, lambda: setattr(layer, "alpha", 5.0), ())


def _of_dataclass() -> Trial:
    scale = Scale(3.0)
    return Trial(lambda x: x * scale.value, lambda: setattr(scale, "value", 0.0))


def _frozen() -> Trial:
    frozen = Frozen(Scale(3.0))
    return Trial(lambda x: x * frozen.scale.value, lambda: setattr(frozen.scale, "value", 0.0))


def _slots() -> Trial:
    slotted = Slotted(3.0)
    return Trial(slotted, lambda: slotted.set(4.0))


def _backing_attribute() -> Trial:
    one = Propertied()
    return Trial(lambda x: x * one.value, lambda: setattr(one, "_value", 4.0))


def _cached_property() -> Trial:
    one = Propertied()

    def change() -> None:
        one._value = 4.0
        del one.twice

    return Trial(lambda x: x * one.twice, change)


def _class_attribute() -> Trial:
    OfClass.value = 3.0
    return Trial(
        OfClass().apply, lambda: setattr(OfClass, "value", 4.0), state=lambda: OfClass.value
    )


_SCHEDULE = 3.0
_TABLE = {"scale": 3.0}


def _scheduled(x: Any) -> Any:
    return x * _SCHEDULE


def _of_global() -> Trial:
    global _SCHEDULE
    _SCHEDULE = 3.0

    def change() -> None:
        global _SCHEDULE
        _SCHEDULE = 4.0

    return Trial(lambda x: _scheduled(x).exp(), change, state=lambda: _SCHEDULE)


def _of_module_attribute() -> Trial:
    settings.scale = 3.0
    return Trial(
        lambda x: x * settings.scale,
        lambda: setattr(settings, "scale", 4.0),
        state=lambda: settings.scale,
    )


def _of_another_files_global() -> Trial:
    settings.scale = 3.0
    return Trial(lambda x: settings.scaled(x), lambda: setattr(settings, "scale", 4.0))


def _of_global_table() -> Trial:
    _TABLE["scale"] = 3.0
    return Trial(lambda x: x * _TABLE["scale"], lambda: _TABLE.update(scale=4.0))


def _of_nonlocal() -> Trial:
    scale = 3.0

    def change() -> None:
        nonlocal scale
        scale = 4.0

    return Trial(lambda x: x * scale, change, state=lambda: scale)


def _containers() -> Trial:
    pair = Pair(Layer(weight=_tensor(1.0, 2.0, 3.0)), [3.0])
    row: deque[Any] = deque([{"pair": (pair,)}])

    def f(x: Any) -> Any:
        found = row[0]["pair"][0]
        return found.layer.forward(x) * found.scales[0] + len(pair.scales)

    return Trial(f, lambda: pair.scales.append(4.0), (pair.layer.weight,))


def _sets() -> Trial:
    chosen = {1, 2}
    return Trial(lambda x: x * (3.0 if 2 in chosen else 0.0), lambda: chosen.discard(2))


def _partial() -> Trial:
    scale = Scale(3.0)
    return Trial(partial(lambda one, x: x * one.value, scale), lambda: setattr(scale, "value", 4.0))


def _default_argument() -> Trial:
    scale = SimpleNamespace(value=3.0)

    def f(x: Any, one: Any = scale) -> Any:
        return x * one.value

    return Trial(f, lambda: setattr(scale, "value", 4.0))


def _function_attribute() -> Trial:
    def f(x: Any) -> Any:
        return x * f.scale  # type: ignore[attr-defined]  # that is what is tried

    f.scale = 3.0  # type: ignore[attr-defined]  # that is what is tried
    return Trial(f, lambda: setattr(f, "scale", 4.0))


def _wrapped() -> Trial:
    scale = Scale(3.0)

    @lru_cache
    def factor() -> float:
        return float(scale.value)

    def change() -> None:
        scale.value = 4.0
        factor.cache_clear()

    return Trial(lambda x: x * factor(), change)


def _object_with_a_tensor() -> Trial:
    holder = Scale(_tensor(1.0, 2.0, 3.0))
    weight = holder.value
    return Trial(
        lambda x: x * holder.value,
        lambda: setattr(holder, "value", _tensor(4.0, 5.0, 6.0)),
        (weight,),
    )


def _zeroed_branch() -> Trial:
    lower = nn.Linear(3, 2, rng=np.random.default_rng(0), dtype=np.float64)
    upper = Scale(tt.zeros((2, 3), np.float64))

    def change() -> None:
        lower.weight = tt.ones((2, 3), np.float64)

    return Trial(
        lambda x: x.with_empty_tape() + lower.forward(x) @ upper.value,
        change,
        (upper.value, lower.weight),
    )


def _numpy_array() -> Trial:
    mask = np.array([1.0, 0.0, 1.0])
    return Trial(lambda x: x * tt.from_numpy(mask), lambda: mask.fill(0.0), state=mask.tolist)


def _monkeypatched_method() -> Trial:
    one = OfClass()
    OfClass.value = 3.0
    return Trial(one.apply, lambda: setattr(one, "value", 4.0))


def _cycle() -> Trial:
    parent = SimpleNamespace(scale=3.0)
    parent.child = SimpleNamespace(parent=parent)
    child = parent.child
    return Trial(lambda x: x * child.parent.scale, lambda: setattr(parent, "scale", 4.0))


def _recursive_functions() -> Trial:
    scale = Scale(3.0)

    def even(x: Any, n: int) -> Any:
        return x if n == 0 else odd(x * scale.value, n - 1)

    def odd(x: Any, n: int) -> Any:
        return even(x, n - 1)

    return Trial(lambda x: even(x, 4), lambda: setattr(scale, "value", 4.0))


def _built_inside() -> Trial:
    settings.scale = 3.0
    return Trial(lambda x: settings.Scaling()(x), lambda: setattr(settings, "scale", 4.0))


@pytest.mark.parametrize(
    "made",
    [
        _module,
        _module_in_a_function,
        _of_dataclass,
        _frozen,
        _slots,
        _backing_attribute,
        _cached_property,
        _class_attribute,
        _of_global,
        _of_module_attribute,
        _of_another_files_global,
        _of_global_table,
        _of_nonlocal,
        _containers,
        _sets,
        _partial,
        _default_argument,
        _function_attribute,
        _wrapped,
        _object_with_a_tensor,
        _zeroed_branch,
        _numpy_array,
        _monkeypatched_method,
        _cycle,
        _recursive_functions,
        _built_inside,
    ],
)
def test_what_was_changed_in_between_counts_as_it_was(made: Callable[[], Trial]) -> None:
    expected = _outcome(made(), is_checkpointed=False)
    assert _outcome(made(), is_checkpointed=True) == expected


# --- What f itself changes ---


class Counting(nn.Module):
    weight: Any
    calls: int = 0

    def forward(self, x: Any) -> Any:
        self.calls += 1
        return x * self.weight * float(self.calls)


def _counter() -> Trial:
    module = Counting(weight=_tensor(1.0, 2.0, 3.0))
    return Trial(module.forward, lambda: None, (module.weight,), lambda: module.calls)


def _history() -> Trial:
    seen: list[int] = []

    def f(x: Any) -> Any:
        seen.append(len(seen))
        return x * float(len(seen))

    return Trial(f, lambda: None, state=lambda: list(seen))


def _history_that_goes_on() -> Trial:
    trial = _history()
    return trial._replace(change=lambda: trial.f(tt.from_numpy(_VALUES)))


def _memory() -> Trial:
    cache: dict[str, Any] = {}

    def f(x: Any) -> Any:
        if "scale" not in cache:
            cache["scale"] = _tensor(1.0, 2.0, 3.0)
        return x * cache["scale"]

    return Trial(f, lambda: None, state=lambda: list(cache))


def _running_mean_of_numpy() -> Trial:
    mean = np.zeros(3)

    def f(x: Any) -> Any:
        mean[...] = 0.5 * mean + 0.5 * x.numpy().mean(axis=0) + 1.0
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
    expected = _outcome(made(), is_checkpointed=False)
    assert _outcome(made(), is_checkpointed=True) == expected


def test_all_is_as_it_was_after_a_second_run_that_fails() -> None:
    module = Counting(weight=_tensor(1.0, 2.0, 3.0))
    fails: Iterator[bool] = iter([False, True])
    before = module.weight

    def f(x: Any) -> Any:
        y = module.forward(x)
        if next(fails):
            raise RuntimeError("the second time")
        return y

    y = tt.checkpoint(f, tt.from_numpy(_VALUES).trace()).sum()
    module.calls, module.weight = 7, _tensor(4.0, 5.0, 6.0)
    after = module.weight

    with pytest.raises(RuntimeError, match="the second time"):
        y.backward()

    assert (module.calls, module.weight) == (7, after)
    assert before is not after


def test_a_checkpoint_inside_another_one_repeats_both() -> None:
    def made() -> Trial:
        layers = [Counting(weight=_tensor(1.0, 2.0, 3.0)) for _ in range(2)]
        rng = Scale(np.random.default_rng(0))

        def inner(x: Any) -> Any:
            return layers[1].forward(x) * float(rng.value.random())

        def outer(x: Any) -> Any:
            constant = tt.full((), 2.0, np.float64)
            return tt.checkpoint(lambda h: inner(h) * constant, layers[0].forward(x)) + 1.0

        def change() -> None:
            layers[0].calls = 5
            layers[1].weight = _tensor(7.0, 8.0, 9.0)

        weights = (layers[0].weight, layers[1].weight)
        return Trial(
            outer, change, weights, lambda: ([one.calls for one in layers], rng.value.random())
        )

    expected = _outcome(made(), is_checkpointed=False)
    assert _outcome(made(), is_checkpointed=True) == expected


def test_each_round_of_a_loop_finds_what_it_found() -> None:
    def made() -> Trial:
        layer = Counting(weight=_tensor(1.0, 2.0, 3.0))

        def in_rounds(x: Any, run: Any = lambda f, x: f(x)) -> Any:
            for _ in range(3):
                x = run(layer.forward, x)
            return x

        return Trial(in_rounds, lambda: None, (layer.weight,), lambda: layer.calls)

    expected = _outcome(made(), is_checkpointed=False)
    trial = made()
    f: Any = trial.f
    trial = trial._replace(f=partial(f, run=tt.checkpoint))
    assert _outcome(trial, is_checkpointed=False) == expected


def test_tied_weights_that_were_changed_count_with_their_old_values() -> None:
    def made() -> Trial:
        layers = [Layer(weight=_tensor(1.0, 2.0, 3.0)) for _ in range(2)]
        layers[1].weight = weight = layers[0].weight

        def change() -> None:
            weight.array = np.zeros(3)

        return Trial(lambda x: layers[1].forward(layers[0].forward(x)), change, (weight,))

    expected = _outcome(made(), is_checkpointed=False)
    assert _outcome(made(), is_checkpointed=True) == expected


# --- What cannot be found, or not be brought back ---


def _hidden(value: Any) -> tuple[Callable[[], Any], Callable[[Any], None]]:
    """Return how to read and how to set a value that nobody finds: another thread's, so to say."""
    local = threading.local()
    local.value = value
    return lambda: local.value, lambda new: setattr(local, "value", new)


def _hidden_parameter_times_zero() -> Trial:
    read, _ = _hidden(tt.ones((3, 2), np.float64))
    upper = tt.zeros((2, 3), np.float64)
    return Trial(
        lambda x: x + (x.with_empty_tape() @ read()) @ upper,
        lambda: read().__setattr__("array", np.full((3, 2), 2.0)),
    )


def _hidden_number_times_zero() -> Trial:
    read, write = _hidden(3.0)
    zero = tt.zeros((3,), np.float64)
    return Trial(lambda x: x * read() * zero, lambda: write(4.0))


def _hidden_slope() -> Trial:
    read, write = _hidden(0.5)
    # The same values where x is positive, and another gradient for none.
    return Trial(lambda x: (x + 5.0).leaky_relu(read()), lambda: write(0.25))


def _hidden_plain_factor_times_zero() -> Trial:
    read, write = _hidden(_tensor(1.0, 2.0, 3.0))
    zero = tt.zeros((3,), np.float64)
    return Trial(lambda x: x * zero * read(), lambda: write(_tensor(4.0, 5.0, 6.0)))


def _mask_of_a_custom_op() -> Trial:
    read, _ = _hidden(np.array([1.0, 2.0, 3.0]))

    def kernel(x: Any) -> Any:
        scale = read().copy()
        return x * 0.0, (lambda g: g * scale,)

    def change() -> None:
        read()[...] = 5.0

    return Trial(lambda x: tt.custom_op(kernel, x, shape=x.shape), change)


def _advanced_iterator() -> Trial:
    numbers = itertools.count(1)
    zero = tt.zeros((3,), np.float64)
    return Trial(lambda x: x * float(next(numbers)) * zero, lambda: None)


def _python_generator() -> Trial:
    numbers = (float(n) for n in range(5))
    return Trial(lambda x: x * next(numbers), lambda: None)


def _swapped_inputs() -> Trial:
    turns = itertools.cycle([False, True])

    def f(x: Any) -> Any:
        one, two = x.split([1, 2], axis=1)
        first = one.sum() * 0.0
        second = two.sum() * 0.0
        return first - second if next(turns) else second - first

    return Trial(f, lambda: None)


def _other_ops() -> Trial:
    turns = itertools.cycle([False, True])
    zero = tt.zeros((3,), np.float64)
    return Trial(lambda x: (x * zero).sin() if next(turns) else (x * zero).tanh(), lambda: None)


def _fewer_ops() -> Trial:
    turns = itertools.cycle([False, True])
    return Trial(lambda x: x * 1.0 if next(turns) else x, lambda: None)


def _inner_checkpoint() -> Trial:
    read, write = _hidden(3.0)
    zero = tt.zeros((3,), np.float64)
    return Trial(lambda x: tt.checkpoint(lambda h: h * read() * zero, x) + 1.0, lambda: write(4.0))


@pytest.mark.parametrize(
    "made",
    [
        _hidden_parameter_times_zero,
        _hidden_number_times_zero,
        _hidden_plain_factor_times_zero,
        _mask_of_a_custom_op,
        _advanced_iterator,
        _python_generator,
        _other_ops,
        _fewer_ops,
        _swapped_inputs,
        _inner_checkpoint,
    ],
)
def test_a_run_that_cannot_be_repeated_is_refused(made: Callable[[], Trial]) -> None:
    with pytest.raises(tt.ArgumentValueError, match=r"in the backward pass f .* than in the forw"):
        _outcome(made(), is_checkpointed=True)


def test_the_op_that_differs_first_is_named() -> None:
    with pytest.raises(tt.ArgumentValueError, match="computed something else, first in 'multiply'"):
        _outcome(_hidden_number_times_zero(), is_checkpointed=True)


def test_a_large_array_that_f_writes_to_is_refused() -> None:
    total = np.zeros(1 << 18)

    def f(x: Any) -> Any:
        total[...] += 1.0
        return x * 2.0

    with pytest.raises(tt.ArgumentValueError, match="writes to a numpy array of more than a MiB"):
        _outcome(Trial(f, lambda: None), is_checkpointed=True)


# --- What is no trouble ---


class Strange:
    """An object that refuses to be asked."""

    @override
    def __getattribute__(self, name: str) -> Any:
        raise RuntimeError(f"do not ask for {name}")

    @override
    def __eq__(self, other: object) -> bool:
        raise RuntimeError("do not compare")

    __hash__ = None  # type: ignore[assignment]  # nor is it a key


def test_what_ordinary_functions_name_is_no_trouble(tmp_path: Any) -> None:
    log = logging.getLogger("checkpointed")
    lock = threading.Lock()
    strange = [Strange()]
    scratch = np.empty(1 << 18)
    with (tmp_path / "log.txt").open("w") as file:

        def f(x: Any) -> Any:
            with lock:
                file.write("run\n")
                log.debug("%s", x.shape)
                np.copyto(scratch[:12], x.numpy().ravel())
            assert len(strange) == 1
            return nn.init.zeros is not None and (x * float(np.sqrt(4.0))).sum()

        trial = Trial(f, lambda: file.write("between\n"))
        assert _outcome(trial, is_checkpointed=True) == _outcome(trial, is_checkpointed=False)


def test_what_does_not_lead_to_the_result_may_differ() -> None:
    numbers = itertools.count(1)

    def f(x: Any) -> Any:
        twin = x.with_empty_tape()
        for _ in range(next(numbers)):
            twin = twin * 3.0
        return x.exp()

    trial = Trial(f, lambda: None)
    assert _outcome(trial, is_checkpointed=True) == _outcome(trial, is_checkpointed=False)


@pytest.mark.parametrize("seed", [0, 1])
def test_dropout_in_a_dataclass_draws_the_same_mask(seed: int) -> None:
    @dataclass
    class Block:
        rng: Any = field(default_factory=lambda: np.random.default_rng(seed))
        drop: Any = None

        def run(self, x: Any) -> Any:
            self.drop = self.drop or nn.Dropout(0.5, rng=self.rng)
            return self.drop.forward(x)

    def made() -> Trial:
        block = Block()
        return Trial(block.run, lambda: block.rng.random(7), state=lambda: block.rng.random())

    expected = _outcome(made(), is_checkpointed=False)
    assert _outcome(made(), is_checkpointed=True) == expected
