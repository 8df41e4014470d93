"""Convolutions over planes give what they give on numpy."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from tapetensor.kernels import convolution
from tapetensor.kernels.numerics.windows import Window
from tapetensor.native import convolutions as native
from tapetensor.native.kernels import native_kernel

Array = np.ndarray[Any, np.dtype[Any]]
WINDOWS = [
    Window((2, 2), (2, 2), (0, 0), (1, 1)),
    Window((3, 3), (2, 2), (1, 1), (1, 1)),
    Window((3, 3), (1, 1), (1, 1), (1, 1)),
    Window((3, 2), (1, 3), (1, 0), (2, 1)),
    Window((1, 3), (3, 1), (0, 2), (1, 2)),
    # Windows in which not every part of a frame is read, and those that read padding alone.
    Window((1, 1), (2, 3), (1, 2), (1, 1)),
    # One whose last element is padding behind the last row.
    Window((3, 3), (1, 2), (0, 1), (1, 1)),
]
ROWS = [
    Window((3,), (1,), (1,), (1,)),
    Window((5,), (2,), (2,), (1,)),
    Window((2,), (3,), (0,), (2,)),
    Window((3,), (2,), (1,), (1,)),
]
# The shape of what is convolved, groups, and channels of the result.
LAYOUTS = [
    ((2, 3, 9, 8), 1, 5),
    ((3, 7, 7), 3, 3),
    ((2, 2, 2, 5, 5), 2, 4),
    ((5, 8, 9, 8), 2, 24),
    ((2, 4, 6, 40), 1, 18),
    ((1, 4, 21, 19), 4, 12),
]
DTYPES = [np.float32, np.float64]
TRANSPOSED = (convolution.conv_transpose1d, convolution.conv_transpose2d)


@pytest.fixture(autouse=True)
def always(monkeypatch: pytest.MonkeyPatch) -> None:
    """The loops run where products are faster, too."""
    monkeypatch.setattr(native, "is_faster", lambda *args: True)


def _arguments(
    kernel: Callable[..., Any],
    window: Window,
    layout: tuple[tuple[int, ...], int, int],
    dtype: Any = np.float32,
    *,
    has_bias: bool = True,
) -> tuple[Any, ...]:
    """Return arguments of a kernel; what is convolved and what comes out change places."""
    rng = np.random.default_rng(0)
    shape, groups, out = layout
    channels, spatial = shape[-3], len(window.kernel)
    sizes, leading = shape[-spatial:], shape[:-3]
    weight = rng.standard_normal((out, channels // groups, *window.kernel))
    is_transposed = kernel in TRANSPOSED
    read = (*leading, out, *window.counts(sizes)) if is_transposed else (*leading, channels, *sizes)
    x, bias = rng.standard_normal(read), rng.standard_normal(channels if is_transposed else out)
    arrays = [one.astype(dtype) for one in (x, weight, bias)]
    written = (sizes,) if is_transposed else ()
    return *arrays[:2], arrays[2] if has_bias else None, window, groups, *written


def _everything(
    kernel: Callable[..., Any], args: tuple[Any, ...], g: Array | None = None
) -> list[Array]:
    y, pullbacks = kernel(*args)
    if g is None:
        g = np.random.default_rng(1).standard_normal(y.shape).astype(y.dtype)
    return [y, *[pullback(g) for pullback in pullbacks]]


def _pairs(
    kernel: Callable[..., Any], args: tuple[Any, ...], g: Array | None = None
) -> Iterator[tuple[Array, Array]]:
    """Return all that a kernel gives by loops and on numpy, side by side."""
    by_loops = native_kernel(kernel)
    assert by_loops is not kernel
    return zip(
        _everything(by_loops, args, g), _everything(inspect.unwrap(kernel), args, g), strict=True
    )


def _assert_same(kernel: Callable[..., Any], args: tuple[Any, ...], g: Array | None = None) -> None:
    tolerance = {"f": 2e-4, "d": 1e-12}[args[0].dtype.char]
    for one, other in _pairs(kernel, args, g):
        assert one.dtype == other.dtype
        np.testing.assert_allclose(one, other, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("kernel", [convolution.conv2d, convolution.conv_transpose2d])
def test_a_convolution_of_images_and_its_cotangents_are_numpys(
    workers: int,
    dtype: Any,
    window: Window,
    layout: tuple[tuple[int, ...], int, int],
    kernel: Callable[..., Any],
) -> None:
    _assert_same(kernel, _arguments(kernel, window, layout, dtype))


@pytest.mark.parametrize("window", ROWS)
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("kernel", [convolution.conv1d, convolution.conv_transpose1d])
def test_a_convolution_of_sequences_and_its_cotangents_are_numpys(
    window: Window, layout: tuple[tuple[int, ...], int, int], kernel: Callable[..., Any]
) -> None:
    _assert_same(kernel, _arguments(kernel, window, layout))


@pytest.mark.parametrize("kernel", [convolution.conv2d, convolution.conv_transpose2d])
def test_a_convolution_may_have_no_bias(kernel: Callable[..., Any]) -> None:
    _assert_same(kernel, _arguments(kernel, WINDOWS[1], LAYOUTS[0], has_bias=False))


def test_cotangents_in_any_order_are_taken() -> None:
    args = _arguments(convolution.conv2d, WINDOWS[2], LAYOUTS[0])
    y = convolution.conv2d(*args)[0]

    for g in (np.asfortranarray(y), np.broadcast_to(np.float32(0.5), y.shape)):
        _assert_same(convolution.conv2d, args, g)


@pytest.mark.parametrize("position", [0, 1])
@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_other_dtypes_and_arrays_in_another_order_are_left_to_numpy(
    position: int, dtype: Any
) -> None:
    args = list(_arguments(convolution.conv2d, WINDOWS[2], LAYOUTS[0], dtype))
    if dtype is np.float32:
        args[position] = np.asfortranarray(args[position])

    for one, other in _pairs(convolution.conv2d, tuple(args)):
        np.testing.assert_array_equal(one, other)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("special", [np.inf, np.nan])
@pytest.mark.parametrize("place", ["x", "weight", "cotangent"])
@pytest.mark.parametrize("layout", [LAYOUTS[1], LAYOUTS[4]])
@pytest.mark.parametrize("kernel", [convolution.conv2d, convolution.conv_transpose2d])
def test_what_is_not_finite_stays_where_numpy_has_it(
    special: float,
    place: str,
    layout: tuple[tuple[int, ...], int, int],
    kernel: Callable[..., Any],
) -> None:
    args = _arguments(kernel, WINDOWS[1], layout)
    g = np.ones(kernel(*args)[0].shape, np.float32)
    {"x": args[0], "weight": args[1], "cotangent": g}[place].reshape(-1)[7] = special

    for one, other in _pairs(kernel, args, g):
        np.testing.assert_array_equal(np.isfinite(one), np.isfinite(other))


def test_a_batch_that_does_not_fit_into_the_cache_is_taken_in_turns(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    args = _arguments(convolution.conv2d, WINDOWS[2], ((23, 2, 6, 6), 1, 8))
    by_loops = native_kernel(convolution.conv2d)
    whole = _everything(by_loops, args)
    monkeypatch.setattr(native, "_CACHED", 1 << 12)

    _assert_same(convolution.conv2d, args)
    np.testing.assert_allclose(_everything(by_loops, args)[2], whole[2], rtol=1e-5)


def test_a_cotangent_of_another_dtype_and_errors_that_raise_are_left_to_numpy() -> None:
    args = _arguments(convolution.conv2d, WINDOWS[1], LAYOUTS[0])
    y, pullbacks = native_kernel(convolution.conv2d)(*args)
    plain: Any = inspect.unwrap(convolution.conv2d)(*args)[1]
    g = np.random.default_rng(0).standard_normal(y.shape)

    np.testing.assert_array_equal(pullbacks[0](g), plain[0](g))
    with np.errstate(over="raise"):
        np.testing.assert_array_equal(pullbacks[0](y), plain[0](y))


@pytest.mark.parametrize(
    ("channels", "kernel", "groups", "size", "expected"),
    [
        ((32, 32), 3, 1, 28, True),
        ((32, 32), 3, 32, 28, True),
        # One product without columns.
        ((32, 32), 1, 1, 28, False),
        # Little to convolve.
        ((1, 16), 3, 1, 28, False),
        ((16, 32), 3, 1, 14, False),
        # Few windows, and many filters.
        ((32, 32), 3, 1, 7, False),
        ((256, 256), 3, 1, 14, False),
    ],
)
def test_loops_are_chosen_where_they_are_faster(
    monkeypatch: pytest.MonkeyPatch,
    channels: tuple[int, int],
    kernel: int,
    groups: int,
    size: int,
    expected: bool,
) -> None:
    monkeypatch.undo()
    weight = np.zeros((channels[1], channels[0] // groups, kernel, kernel), np.float32)
    window = Window((kernel, kernel), (1, 1), (kernel // 2,) * 2, (1, 1))

    assert native.is_faster(weight, window, groups, (size, size)) is expected
