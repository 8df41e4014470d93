"""The loops of recurrent kernels do what those do on numpy."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tapetensor.kernels import recurrent as plain
from tapetensor.native.kernels import native_kernel

Array = np.ndarray[Any, np.dtype[Any]]
# The kernel on numpy and natively, how many gates it has, and how many states.
LSTM = inspect.unwrap(plain.lstm), native_kernel(plain.lstm), 4, 2
GRU = inspect.unwrap(plain.gru), native_kernel(plain.gru), 3, 1
KINDS = pytest.mark.parametrize("kind", [LSTM, GRU], ids=["lstm", "gru"])


def _operands(kind: Any, batch: int, steps: int, size: int, dtype: Any = np.float32) -> list[Array]:
    _, _, gates, states = kind
    rng = np.random.default_rng(0)
    shapes = [
        (batch, steps, gates * size),
        (gates * size, size),
        (gates * size,),
        *[(batch, size)] * states,
    ]
    return [rng.standard_normal(shape).astype(dtype) for shape in shapes]


def _outcome(kernel: Any, operands: list[Array]) -> list[Array]:
    """Return what a kernel returns, and the cotangents of all of its operands."""
    y, pullbacks = kernel(*operands)
    g = np.random.default_rng(1).standard_normal(y.shape).astype(y.dtype)
    return [y, *[pullback(g) for pullback in pullbacks]]


def _check(kind: Any, operands: list[Array], tolerance: float = 1e-4) -> None:
    before = [one.copy() for one in operands]
    expected, found = [_outcome(kernel, operands) for kernel in kind[:2]]
    for one, other in zip(found, expected, strict=True):
        assert (one.shape, one.dtype) == (other.shape, other.dtype)
        np.testing.assert_allclose(one, other, rtol=tolerance, atol=tolerance / 10)
    for one, other in zip(operands, before, strict=True):
        np.testing.assert_array_equal(one, other)


@KINDS
@pytest.mark.parametrize("sizes", [(3, 9, 5), (1, 1, 1), (8, 4, 32), (2, 1, 7)])
def test_values_and_cotangents_are_numpys(kind: Any, sizes: tuple[int, int, int]) -> None:
    _check(kind, _operands(kind, *sizes))


@KINDS
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("special", [np.nan, np.inf, -np.inf, 1e4, -1e4])
@pytest.mark.parametrize("place", range(4))
def test_what_is_no_number_comes_out_where_numpy_has_it(
    kind: Any, special: float, place: int
) -> None:
    operands = _operands(kind, 3, 4, 5)
    for at in range(0, operands[place].size, 7):
        operands[place].flat[at] = special

    _check(kind, operands)


UNKNOWN: dict[str, Callable[[Array], Array]] = {
    "float64": lambda x: x.astype(np.float64),
    "of another order": np.asfortranarray,
    "of every second": lambda x: np.repeat(x, 2, axis=-1)[..., ::2],
    "for no batch": lambda x: x[:0] if x.ndim > 1 and len(x) == 3 else x,
}


@KINDS
@pytest.mark.parametrize("seen", UNKNOWN.values(), ids=UNKNOWN)
def test_what_no_loop_is_written_for_runs_on_numpy(
    kind: Any, seen: Callable[[Array], Array]
) -> None:
    operands = [seen(one) for one in _operands(kind, 3, 4, 5)]

    _check(kind, operands, tolerance=0)


@KINDS
def test_a_cotangent_may_lie_in_any_order_or_be_repeated(kind: Any) -> None:
    operands = _operands(kind, 3, 4, 5)
    (y, expected), (_, found) = kind[0](*operands), kind[1](*operands)
    row = np.linspace(-1, 1, y.shape[2], dtype=np.float32)
    for g in (np.asfortranarray(np.sin(y)), np.broadcast_to(row, y.shape)):
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_allclose(one(g), other(g), rtol=1e-4, atol=1e-5)


@KINDS
def test_only_what_is_needed_of_the_weight_and_the_bias_is_computed(kind: Any) -> None:
    operands = _operands(kind, 3, 4, 5)
    y, pullbacks = kind[1](*operands)
    needed = tuple([place not in (1, 2) for place in range(len(operands))])

    cotangents = pullbacks.compute(needed, np.ones_like(y))

    assert [one is None for one in cotangents] == [not one for one in needed]
