"""What the library asks of arrays that are none: both kinds answer, and nobody guesses."""

from __future__ import annotations

import builtins
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tapetensor as tt
from tapetensor.arrays.stand_ins import (
    Captured,
    CapturedArray,
    Recorded,
    StandIn,
    is_captured,
    plain,
    run_check,
)
from tapetensor.compiler.trace.number import NumberTracer
from tapetensor.compiler.trace.tracer import ArrayTracer
from tapetensor.higher_order.array import RecordedArray, RecordingLevel
from tapetensor.kernels.numerics import along_axes
from tapetensor.kernels.numerics.decorators import runs_steps

VALUES = np.linspace(-1.0, 2.0, 2 * 3 * 64).reshape(2, 3, 64).astype(np.float32)


def recorded(values: Any = VALUES) -> Any:
    """Return the array of one derivative of higher order."""
    return RecordingLevel(None).array(values)


def answers(x: Any) -> tuple[bool, ...]:
    """Ask everything of an array."""
    classes = StandIn, Recorded, Captured, CapturedArray
    # By its own name it answers as for numpy's objects while a function is captured.
    are = [builtins.isinstance(x, cls) for cls in classes]
    return (*are, is_captured(x), runs_steps(x), plain(x) is x)


@pytest.mark.parametrize("cls", [ArrayTracer, NumberTracer, RecordedArray, RecordingLevel])
def test_every_method_of_the_protocol_is_implemented(cls: type) -> None:
    left = [name for name in dir(cls) if getattr(getattr(cls, name), "__isabstractmethod__", False)]

    assert left == []


@pytest.mark.parametrize("x", [VALUES, VALUES[0, 0, 0], 1.0, None])
def test_numpys_arrays_and_numbers_are_no_stand_ins(x: Any) -> None:
    is_numpys = isinstance(x, np.ndarray | np.generic)

    assert answers(x) == (False, False, False, False, False, is_numpys, True)


@pytest.mark.parametrize(
    "f",
    [
        lambda x: along_axes.sum_over(x, (1,)),
        lambda x: along_axes.sum_over(x, (0, 2)),
        lambda x: along_axes.products_over(x, x, (2,)),
        along_axes.row_sums,
        along_axes.sum_of_rows,
    ],
)
def test_a_recorded_array_is_summed_as_its_value_is(f: Callable[[Any], Any]) -> None:
    # Its layout is known, so that none is made up for it, as for one that is captured.
    assert np.allclose(plain(f(recorded())), f(VALUES), rtol=1e-6)


@pytest.mark.parametrize(
    "f",
    [
        lambda x: np.swapaxes(x, 0, 2),
        lambda x: np.moveaxis(x, 0, -1),
        lambda x: np.expand_dims(x, (0, -1)),
        lambda x: np.squeeze(np.expand_dims(x, 1)),
        lambda x: np.split(x, 3, axis=1)[1],
        lambda x: np.split(x, [8, 20], axis=-1)[2],
        lambda x: x.T,
    ],
)
def test_both_kinds_rearrange_as_numpy_does(f: Callable[[Any], Any]) -> None:
    expected = f(VALUES)

    def run(x: Any) -> Any:
        return tt.from_numpy(f(x.numpy()))

    assert np.array_equal(plain(f(recorded())), expected)
    assert np.array_equal(tt.compile(run)(tt.from_numpy(VALUES)).numpy(), expected)


def test_a_check_runs_at_once_and_at_every_replay() -> None:
    def positive(x: Any) -> None:
        checked.append(x)
        if not np.all(x > 0):
            raise ValueError("not positive")

    @tt.compile
    def run(x: Any) -> Any:
        run_check(positive, x.array)
        return x + 1.0

    checked: list[Any] = []
    run_check(positive, np.ones(2))
    with pytest.raises(ValueError, match="not positive"):
        run_check(positive, recorded(np.zeros(2)))
    for _ in range(3):
        run(tt.ones((2,)))
    with pytest.raises(ValueError, match="not positive"):
        run(tt.zeros((2,)))
    # Where a replay raises, the function itself runs, for an error of its own.
    assert len(checked) == 7
