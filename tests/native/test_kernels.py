"""Kernels that are captured whole do natively what they do on numpy."""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tapetensor as tt
from tapetensor import compiler, nn
from tapetensor.kernels.numerics import along_axes as plain_sums
from tapetensor.kernels.numerics import matrices as plain_stacks
from tapetensor.kernels.numerics import recurrence as plain_recurrence
from tapetensor.kernels.numerics import segments as plain_segments
from tapetensor.native import eager
from tapetensor.native import kernels as native
from tapetensor.native.kernels import native_kernel

Array = np.ndarray[Any, np.dtype[Any]]
DTYPES = [np.float32, np.float64, np.float16, np.int64]
run_recurrence = native_kernel(plain_recurrence.run_recurrence)
run_scan = native_kernel(plain_recurrence.run_scan)
scan_cotangents = native_kernel(plain_recurrence.scan_cotangents)
segment_sum = native_kernel(plain_segments.segment_sum)


def _random(rng: np.random.Generator, shape: tuple[int, ...], dtype: Any) -> Array:
    values = rng.standard_normal(shape) * (3 if dtype is np.int64 else 0.7)
    return values.astype(dtype)


def _with_special(array: Array, rng: np.random.Generator) -> Array:
    for special in (np.nan, np.inf, -np.inf, -0.0):
        array[rng.random(array.shape) < 0.02] = special
    return array


def _moved(array: Array) -> Array:
    """Return a batch of sequences as a sequence of rows."""
    return np.moveaxis(array, -2, 0)


VIEWS: list[Callable[[Array], Array]] = [
    lambda x: x,
    lambda x: x[::-1],
    lambda x: x[..., ::-1],
    lambda x: x[::2],
    _moved,
    lambda x: _moved(x)[::-1],
]


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    "shape", [(9, 4), (3, 40, 6), (2, 2, 3, 8, 4), (4, 1, 3), (1, 5), (0, 3), (4, 2, 0)]
)
@pytest.mark.parametrize("view", VIEWS)
def test_a_recurrence_is_numpys_to_the_bit(
    dtype: Any, shape: tuple[int, ...], view: Callable[[Array], Array]
) -> None:
    rng = np.random.default_rng(0)
    values, decay = view(_random(rng, shape, dtype)), view(_random(rng, shape, dtype))[1:]
    if np.dtype(dtype).kind == "f":
        values = _with_special(values, rng)
    expected, found = np.zeros(shape, dtype), np.zeros(shape, dtype)

    plain_recurrence.run_recurrence(view(expected), values, decay)
    run_recurrence(view(found), values, decay)

    np.testing.assert_array_equal(found, expected)
    # Which sign a NaN has depends on the order of two operands, which nobody sees.
    np.testing.assert_array_equal(
        np.signbit(found) & ~np.isnan(found), np.signbit(expected) & ~np.isnan(expected)
    )


def test_a_recurrence_may_be_written_over_what_it_reads() -> None:
    rng = np.random.default_rng(0)
    values, decay = _random(rng, (12, 5), np.float32), _random(rng, (11, 5), np.float32)
    expected = np.empty_like(values)
    plain_recurrence.run_recurrence(expected, values, decay)

    run_recurrence(values, values, decay)

    np.testing.assert_array_equal(values, expected)


SEQUENCES = [(3, 40, 6), (2, 1, 70), (0, 3, 2)]
COEFFICIENTS: list[Callable[[Array], Array]] = [
    lambda x: x,
    lambda x: np.broadcast_to(x[..., :1, :], x.shape),
    lambda x: np.broadcast_to(x[..., :1], x.shape),
    np.asfortranarray,
    lambda x: x[::-1, ..., ::-1],
]


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize(
    ("dtype", "shape"),
    # Blocks of a known width are compiled for one dtype.
    [(np.float32, (2, 3, 5, 128)), *itertools.product(DTYPES, SEQUENCES)],
)
@pytest.mark.parametrize("seen", COEFFICIENTS)
def test_a_scan_and_its_cotangents_are_numpys_to_the_bit(
    dtype: Any,
    shape: tuple[int, ...],
    seen: Callable[[Array], Array],
    workers: int,
) -> None:
    rng = np.random.default_rng(0)
    x, g, a, b = [_random(rng, shape, dtype) for _ in range(4)]
    if np.dtype(dtype).kind == "f":
        _with_special(x, rng)
        _with_special(a, rng)
    a, b = seen(a), seen(b)
    h, found_h = np.zeros(shape, dtype), np.zeros(shape, dtype)
    needed = (True, True, dtype is np.float32)

    plain_recurrence.run_scan(h, x, a, b)
    run_scan(found_h, x, a, b)
    expected = plain_recurrence.scan_cotangents(g, x, a, b, h, needed)
    found = scan_cotangents(g, x, a, b, h, needed)

    for one, other in zip([found_h, *found], [h, *expected], strict=True):
        np.testing.assert_array_equal(one, other)
        np.testing.assert_array_equal(
            np.signbit(one) & ~np.isnan(one), np.signbit(other) & ~np.isnan(other)
        )


def test_a_native_scan_says_nothing_of_what_is_no_number() -> None:
    infinite, zero = np.full((3, 2), np.inf, np.float32), np.zeros((3, 2), np.float32)
    h = np.empty_like(zero)

    with np.errstate(all="raise"):
        run_scan(h, infinite, zero, zero)
        (cotangent,) = scan_cotangents(infinite, zero, zero, zero, h, (True, False, False))

    assert np.isnan(h).all()
    assert np.isnan(cotangent).all()


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("kind", [np.int64, np.int32])
@pytest.mark.parametrize("shape", [(50, 7), (50, 1), (400, 64), (0, 4), (6, 0)])
def test_a_sum_of_segments_is_numpys(dtype: Any, kind: Any, shape: tuple[int, int]) -> None:
    rng = np.random.default_rng(0)
    rows = np.asfortranarray(_random(rng, shape, dtype))
    if np.dtype(dtype).kind == "f":
        rows[rng.random(shape) < 0.01] = np.nan
        rows[rng.random(shape) < 0.01] = -np.inf
    targets = rng.integers(9, size=shape[0]).astype(kind)
    for one in (rows, targets):
        one.flags.writeable = False

    expected = plain_segments.segment_sum(rows, targets, 11)
    found = segment_sum(rows, targets, 11)

    assert found.dtype == expected.dtype
    tolerance = 1e-2 if dtype is np.float16 else 1e-5 if dtype is np.float32 else 1e-12
    np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance)


def test_a_target_that_is_not_there_writes_nowhere() -> None:
    rows, targets = np.ones((3, 2), np.float32), np.array([0, 1, 5])

    with pytest.raises(IndexError):
        segment_sum(rows, targets, 4)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("special", [0, np.nan, np.inf])
@pytest.mark.parametrize(
    ("shape", "axis"),
    [((5, 4097), (1,)), ((3, 90, 70), (1, 2)), ((20000,), (0,)), ((9, 7), (0,)), ((4, 0), (1,))],
)
def test_a_sum_is_exact_to_the_last_digits(
    dtype: Any, special: float, shape: tuple[int, ...], axis: tuple[int, ...]
) -> None:
    x = np.random.default_rng(0).standard_normal(shape).astype(dtype)
    x.flat[:1] = special
    expected = x.astype(np.longdouble).sum(axis=axis, keepdims=True).astype(dtype)

    found = native_kernel(plain_sums.sum_in_order)(x, axis)

    assert (found.shape, found.dtype) == (expected.shape, expected.dtype)
    assert native_kernel(plain_sums.sum_in_order) is not plain_sums.sum_in_order
    np.testing.assert_allclose(found, expected, rtol=0, atol=500 * np.finfo(dtype).eps)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(5, 64, 33), (2, 3, 7, 5), (0, 4, 5)])
@pytest.mark.parametrize("seen", [lambda x: x, lambda x: x[..., ::-1]])
def test_the_columns_of_a_stack_are_rows(
    dtype: Any, shape: tuple[int, ...], seen: Callable[[Array], Array]
) -> None:
    stack = seen(_random(np.random.default_rng(0), shape, dtype))

    found = native_kernel(plain_stacks.columns_as_rows)(stack)

    np.testing.assert_array_equal(found, stack.mT)
    assert native_kernel(plain_stacks.columns_as_rows) is not plain_stacks.columns_as_rows


def test_a_compiled_scan_and_an_embedding_run_natively() -> None:
    def run(x: Any, a: Any, b: Any, table: Any, ids: Any) -> Any:
        rows = table.forward(ids.trace())
        h = tt.ssm_scan(x.trace(), a, b)
        return h.square().sum().backward(), rows.square().sum().backward(wrt=table)

    rng = np.random.default_rng(0)
    x, a, b = [tt.from_numpy(_random(rng, (2, 30, 4), np.float32)) for _ in range(3)]
    table: Any = nn.Embedding(11, 6, rng=rng)
    ids = tt.from_numpy(rng.integers(11, size=(40,)))
    native = tt.compile(run, backend="numba")

    expected, found = run(x, a, b, table, ids), native(x, a, b, table, ids)

    for one in (x, a, b):
        np.testing.assert_allclose(
            found[0][one].numpy(), expected[0][one].numpy(), rtol=1e-5, atol=1e-5
        )
    np.testing.assert_allclose(
        found[1][table.weight].numpy(), expected[1][table.weight].numpy(), rtol=1e-6
    )
    (plan,) = compiler.plans(native)
    assert "native run_scan" in plan.explain()
    assert "native scan_cotangents" in plan.explain()
    assert "native segment_sum" in plan.explain()


def test_eager_mode_takes_the_loops_unless_numpy_is_to_raise(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rows, targets = np.full((40, 3), 1e38, np.float32), np.arange(40) % 2
    plain = inspect.unwrap(plain_segments.segment_sum)
    monkeypatch.setitem(native._KERNELS, plain, lambda *_: "by the loop")
    assert eager.chosen(plain) is plain

    monkeypatch.setenv("TAPETENSOR_BACKEND", "numba")
    chosen: Any = eager.chosen(plain)

    assert chosen(rows, targets, 2) == "by the loop"
    with np.errstate(over="raise"), pytest.raises(FloatingPointError):
        chosen(rows, targets, 2)
