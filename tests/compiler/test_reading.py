"""What a compiled function reads around itself is never stale, or is refused by name and line."""

# Lambdas have no annotations.
# mypy: disable-error-code="no-untyped-call,no-untyped-def"

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tapetensor as tt
from tapetensor import nn
from tapetensor.compiler import plans


def _number(value: float) -> Any:
    return tt.from_numpy([value], shape=(1,))


class Plain:
    """An object with attributes."""

    offset = 0.0

    def __init__(self, **values: Any) -> None:
        vars(self).update(values)


def test_a_function_of_a_module_that_is_being_imported_reads_as_any_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "tt_script.py").write_text(
        "import tapetensor as tt\n"
        "SCALE, W = 2.0, tt.ones((3,))\n"
        "@tt.compile\n"
        "def run(x):\n"
        "    return x * W * SCALE\n"
        "first = run(W)\n"
        "SCALE = 5.0\n"
        "second = run(W)\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    script: Any = importlib.import_module("tt_script")

    assert script.first.tolist() == [2.0, 2.0, 2.0]
    assert script.second.tolist() == [5.0, 5.0, 5.0]
    script.SCALE = 7.0
    assert script.run(script.W).tolist() == [7.0, 7.0, 7.0]


def test_what_was_kept_of_plain_values_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    @functools.lru_cache
    def scale(count: int) -> Any:
        return count * Plain.offset + 1.0

    compiled = tt.compile(lambda x: x * scale(3))
    for _ in range(3):
        assert compiled(_number(2.0)).item() == 2.0
    assert len(plans(compiled)) == 1
    monkeypatch.setattr(Plain, "offset", 1.0)
    scale.cache_clear()

    assert compiled(_number(2.0)).item() == 8.0


def test_tensors_and_objects_may_be_keys() -> None:
    model = nn.Linear(1, 1, rng=np.random.default_rng(0))
    factors = {model.weight: 2.0, Plain(w=1.0): 3.0, (model.bias, 1): 4.0}
    compiled = tt.compile(lambda x: model.forward(x) * sum(factors.values()))
    x: Any = tt.ones((1, 1))

    assert compiled(x).item() == (model.forward(x) * 9.0).item()


def test_what_a_cached_function_gives_again_is_read_at_every_call() -> None:
    class Held:
        scale = 2.0

    @functools.lru_cache
    def weight() -> Any:
        return tt.from_numpy([3.0], shape=(1,))

    @functools.cache
    def array() -> Any:
        return np.ones(1, np.float32)

    @functools.lru_cache
    def held() -> Any:
        return Held()

    function: Any = tt.compile(lambda x: x * weight().numpy() * array() * held().scale)
    x = np.ones(1, np.float32)
    weight(), array(), held()
    found = []
    for change in (
        lambda: None,
        lambda: array().fill(5.0),
        lambda: setattr(held(), "scale", 7.0),
        weight.cache_clear,
        array.cache_clear,
    ):
        change()
        found.append(function(x).item())
        weight(), array()

    assert found == [6.0, 30.0, 105.0, 105.0, 21.0]


SCALE = 2.0


def _scaled_kernel(x: Any) -> Any:
    return x * 1, (lambda g: g * x.dtype.type(SCALE),)


def _scaled(x: Any) -> Any:
    return x * SCALE


@pytest.mark.parametrize(
    "op",
    [
        lambda x: tt.custom_op(_scaled_kernel, x, shape=x.shape),
        lambda x: tt.checkpoint(_scaled, x),
    ],
)
def test_a_global_that_the_users_pullback_reads_makes_another_plan(
    op: Callable[[Any], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    compiled: Any = tt.compile(lambda x: (op(x.trace()) * 3.0).sum().backward()[x])
    assert compiled(tt.ones((1,))).item() == 6.0

    monkeypatch.setitem(globals(), "SCALE", 7.0)

    assert compiled(tt.ones((1,))).item() == 21.0
