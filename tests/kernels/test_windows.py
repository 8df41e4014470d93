"""Windows on numpy's own arrays, which take ways of their own, against those of other libraries."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from tapetensor.kernels import convolution, images
from tapetensor.kernels.numerics import grouped_convolution
from tapetensor.kernels.numerics.windows import Window
from tests.arrays import foreign

# Channels in and out, groups.
_GROUPS = [(4, 4, 4), (3, 6, 3), (4, 8, 2), (8, 8, 2)]
# Kernel, stride, padding and dilation, which need not be the same along both axes.
_WINDOWS = [
    Window((3, 3), (1, 1), (1, 1), (1, 1)),
    Window((3, 2), (2, 3), (0, 2), (1, 2)),
    Window((2, 3), (3, 1), (4, 0), (3, 1)),
    Window((1, 1), (1, 1), (2, 0), (1, 1)),
    Window((5, 5), (2, 2), (2, 2), (1, 1)),
]


def _array(shape: tuple[int, ...], dtype: Any = np.float64) -> Any:
    return np.random.default_rng(len(shape)).standard_normal(shape).astype(dtype)


def _layouts(x: Any) -> list[Any]:
    """Return the same array with the batch in front in memory, and behind."""
    return [x, np.moveaxis(np.ascontiguousarray(np.moveaxis(x, 0, -1)), -1, 0)]


def _check_same(
    kernel: Any, operands: tuple[Any, ...], cotangents: list[Any], *options: Any
) -> None:
    """Compare the results on numpy's arrays with those of the plain form, on foreign ones."""
    y, pullbacks = kernel(*operands, *options)
    wanted, plain_pullbacks = kernel(*[foreign.asarray(one) for one in operands], *options)
    np.testing.assert_allclose(y, wanted.get(), rtol=1e-12, atol=1e-12, strict=True)
    for g in cotangents:
        for pullback, plain in zip(pullbacks, plain_pullbacks, strict=True):
            expected = plain(foreign.asarray(g)).get()
            np.testing.assert_allclose(pullback(g), expected, rtol=1e-12, atol=1e-12, strict=True)


@pytest.mark.parametrize("window", _WINDOWS)
@pytest.mark.parametrize(("channels", "out", "groups"), _GROUPS)
def test_groups_by_rows_of_images_are_those_by_columns(
    channels: int, out: int, groups: int, window: Window
) -> None:
    weight, bias = _array((out, channels // groups, *window.kernel)), _array((out,))
    for x in _layouts(_array((2, channels, 6, 7))):
        assert grouped_convolution.are_small(np.moveaxis(x, 0, -1), weight, groups)
        g = _array((2, out, *window.counts((6, 7))))
        cotangents = [*_layouts(g), np.broadcast_to(0.5, g.shape)]
        _check_same(convolution.conv2d, (x, weight, bias), cotangents, window, groups)


@pytest.mark.parametrize("leading", [(5,), (2, 3), (), (0,)])
def test_points_of_large_images_are_those_by_columns(leading: tuple[int, ...]) -> None:
    weight, bias = _array((3, 4, 1, 1)), _array((3,))
    for x in _layouts(_array((*leading, 4, 8, 9))):
        g = _array((*leading, 3, 8, 9))
        cotangents = [*_layouts(g), np.broadcast_to(0.5, g.shape)]
        window = Window((1, 1), (1, 1), (0, 0), (1, 1))
        _check_same(convolution.conv2d, (x, weight, bias), cotangents, window, 1)


def test_points_of_large_images_stay_in_order() -> None:
    window = Window((1, 1), (1, 1), (0, 0), (1, 1))
    kernel: Any = convolution.conv2d
    y, (to_x, _) = kernel(_array((5, 4, 8, 9)), _array((3, 4, 1, 1)), None, window, 1)

    assert y.flags.c_contiguous
    assert to_x(y).flags.c_contiguous


@pytest.mark.parametrize("channels", [1, 3])
def test_the_cotangent_of_a_weight_is_a_sum_over_all_places_of_large_images(channels: int) -> None:
    x, weight, window = _array((8, channels, 64, 64)), _array((16, channels, 3, 3)), _WINDOWS[0]
    rows = 16, x[:, 0].size, 9 * channels
    assert (convolution._parts_of_rows(*rows) > 1) is (channels == 1)  # both ways

    y, (_, to_weight) = convolution.conv2d(x, weight, None, window, 1)
    full = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
    assert to_weight is not None

    for row, column in itertools.product(range(3), repeat=2):
        read = full[:, :, row : row + 64, column : column + 64]
        np.testing.assert_allclose(
            to_weight(y)[:, :, row, column], np.einsum("bohw,bchw->oc", y, read), rtol=1e-10
        )


@pytest.mark.parametrize("window", [Window((3,), (1,), (1,), (1,)), Window((2,), (3,), (2,), (2,))])
def test_groups_of_lines_by_rows_are_those_by_columns(window: Window) -> None:
    weight, bias = _array((6, 1, *window.kernel)), _array((6,))
    for x in _layouts(_array((2, 3, 8))):
        g = _array((2, 6, *window.counts((8,))))
        _check_same(convolution.conv1d, (x, weight, bias), _layouts(g), window, 3)


def test_an_image_of_no_elements_is_convolved_in_groups() -> None:
    window = _WINDOWS[0]
    kernel: Any = convolution.conv2d
    y, (_, to_weight) = kernel(_array((0, 4, 6, 7)), _array((4, 1, 3, 3)), None, window, 4)

    assert y.shape == (0, 4, 6, 7)
    np.testing.assert_array_equal(to_weight(y), np.zeros((4, 1, 3, 3)))


# The others hold nothing but padding in places, which pooling refuses.
@pytest.mark.parametrize("window", [_WINDOWS[0], _WINDOWS[1], _WINDOWS[4]])
@pytest.mark.parametrize("kernel", [images.max_pool2d, images.min_pool2d])
def test_pooling_by_steps_is_pooling_at_once(kernel: Any, window: Window) -> None:
    smooth = _array((2, 3, 7, 8))
    # Few different numbers, so that many windows have several winners.
    tied = np.round(smooth)
    odd = smooth.copy()
    odd[0, 0, 2, 3], odd[1, 1, 4, 4], odd[0, 2] = np.nan, np.inf, -np.inf
    for values, dtype in itertools.product((smooth, tied, odd), (np.float64, np.float32)):
        for x in _layouts(values.astype(dtype)):
            g = np.round(8 * _array((2, 3, *window.counts((7, 8))))).astype(dtype)
            y, (pullback,) = kernel(x, window)
            wanted, (plain,) = kernel(foreign.asarray(x), window)
            np.testing.assert_array_equal(y, wanted.get(), strict=True)
            for one in (g, np.broadcast_to(g[:1, :1, :1, :1], g.shape)):
                found, expected = pullback(one), plain(foreign.asarray(one)).get()
                np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5, strict=True)


def test_a_window_of_more_ties_than_a_byte_can_count_shares_equally() -> None:
    window = Window((17, 17), (1, 1), (0, 0), (1, 1))
    kernel: Any = images.max_pool2d
    _, (pullback,) = kernel(np.zeros((1, 1, 17, 18)), window)
    (share,) = pullback(np.ones((1, 1, 1, 2)))[0]

    np.testing.assert_allclose(share[0, :2], [1 / 289, 2 / 289])
    assert share.sum() == pytest.approx(2)
