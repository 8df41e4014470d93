"""Windows by rows, by columns and by steps give one result."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import tapetensor as tt
from tapetensor.kernels import convolution, images
from tapetensor.kernels.numerics import columns, grouped_convolution
from tapetensor.kernels.numerics.windows import Window
from tests.arrays import foreign
from tests.kernels.test_sums import _array

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
_POINT = Window((1, 1), (1, 1), (0, 0), (1, 1))


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


# A kernel, a window, the shapes of what it reads and of its weight, groups.
_SMALL: list[tuple[Any, Window, tuple[int, ...], tuple[int, ...], int]] = [
    *[
        (convolution.conv2d, one, (2, channels, 6, 7), (out, channels // groups), groups)
        for one in _WINDOWS
        for channels, out, groups in _GROUPS
    ],
    # Points of large images, and lines.
    *[
        (convolution.conv2d, _POINT, (*leading, 4, 8, 9), (3, 4), 1)
        for leading in ((5,), (2, 3), (), (0,))
    ],
    *[
        (convolution.conv1d, one, (2, 3, 8), (6, 1), 3)
        for one in (Window((3,), (1,), (1,), (1,)), Window((2,), (3,), (2,), (2,)))
    ],
]


@pytest.mark.parametrize(("kernel", "window", "shape", "channels", "groups"), _SMALL)
def test_small_groups_and_points_are_those_by_columns(
    kernel: Any, window: Window, shape: tuple[int, ...], channels: tuple[int, ...], groups: int
) -> None:
    axes = len(window.kernel)
    weight, bias = _array((*channels, *window.kernel)), _array(channels[:1])
    for x in _layouts(_array(shape)):
        if groups > 1:
            assert grouped_convolution.are_small(np.moveaxis(x, 0, -1), weight, groups)
        g = _array((*shape[: -axes - 1], channels[0], *window.counts(shape[-axes:])))
        cotangents = [*_layouts(g), np.broadcast_to(0.5, g.shape)]
        _check_same(kernel, (x, weight, bias), cotangents, window, groups)


def test_points_of_large_images_stay_in_order() -> None:
    kernel: Any = convolution.conv2d
    y, (to_x, _) = kernel(_array((5, 4, 8, 9)), _array((3, 4, 1, 1)), None, _POINT, 1)

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


# Of any image the first make blocks of a row, and the last one that is not divided evenly.
BLOCKS = [1, 2000]
WINDOWS = [
    Window(kernel, stride, padding, dilation)
    for kernel in ((3, 3), (1, 2), (5, 1), (2, 4))
    for stride in ((1, 1), (3, 2))
    for padding in ((0, 0), (1, 2), (6, 0))
    for dilation in ((1, 1), (1, 3))
]


def _both(
    monkeypatch: pytest.MonkeyPatch, block: int, kernel: Any, *args: Any
) -> list[tuple[Any, Any]]:
    """Return the outputs and all cotangents, by blocks and by all columns, in pairs."""
    found = []
    monkeypatch.setattr(columns, "_BLOCK", block)
    monkeypatch.setattr(columns, "_FEWEST", 1)
    for many in (0, 1 << 60):
        monkeypatch.setattr(columns, "_MANY", many)
        y, pullbacks = kernel(*args)
        g = np.random.default_rng(3).standard_normal(y.shape)
        found.append([y, *[pullback(g) for pullback in pullbacks]])
    return list(zip(*found, strict=True))


@pytest.mark.parametrize("window", WINDOWS, ids=lambda one: "-".join(map(str, one)))
@pytest.mark.parametrize("groups", [1, 3])
def test_blocks_of_rows_give_what_all_columns_give(
    monkeypatch: pytest.MonkeyPatch, rng: np.random.Generator, window: Window, groups: int
) -> None:
    sizes = (9, 11)
    x, weight = rng.standard_normal((2, 6, *sizes)), rng.standard_normal((9, 6 // groups, 1, 1))
    weight = weight * rng.standard_normal(window.kernel)
    written = rng.standard_normal((2, 9, *window.counts(sizes)))
    forward = convolution.conv2d, x, weight, rng.standard_normal(9), window, groups
    turned = convolution.conv_transpose2d, written, weight, rng.standard_normal(6), window, groups

    for block in BLOCKS:
        pairs = _both(monkeypatch, block, *forward)
        for one, other in [*pairs, *_both(monkeypatch, block, *turned, sizes)]:
            np.testing.assert_allclose(one, other, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("window", [(3, 1, 1, 1), (5, 2, 3, 2), (4, 3, 0, 1)], ids=str)
def test_sequences_go_by_blocks_too(
    monkeypatch: pytest.MonkeyPatch, rng: np.random.Generator, window: tuple[int, ...]
) -> None:
    along = Window(*[(one,) for one in window])
    x, weight = rng.standard_normal((3, 4, 23)), rng.standard_normal((6, 4, window[0]))
    written = rng.standard_normal((3, 6, *along.counts((23,))))
    pairs = _both(monkeypatch, 60, convolution.conv1d, x, weight, None, along, 1)
    turned = convolution.conv_transpose1d, written, weight, None, along, 1, (23,)
    for one, other in [*pairs, *_both(monkeypatch, 60, *turned)]:
        np.testing.assert_allclose(one, other, rtol=1e-10, atol=1e-10)


def test_derivatives_of_derivatives_are_those_by_all_columns(
    monkeypatch: pytest.MonkeyPatch, rng: np.random.Generator
) -> None:
    x: Any = tt.from_numpy(rng.standard_normal((2, 3, 6, 5)))
    weight: Any = tt.from_numpy(rng.standard_normal((4, 3, 3, 2)))

    def curved(many: int) -> Any:
        monkeypatch.setattr(columns, "_MANY", many)

        def loss(x: Any) -> Any:
            return tt.conv2d(x, weight).tanh().square().sum()

        return tt.grad(lambda x: tt.grad(loss, x).square().sum(), x).numpy()

    np.testing.assert_allclose(curved(0), curved(1 << 60), rtol=1e-10, atol=1e-12)


def test_a_compiled_step_goes_by_blocks_too(
    monkeypatch: pytest.MonkeyPatch, rng: np.random.Generator
) -> None:
    monkeypatch.setattr(columns, "_MANY", 0)
    monkeypatch.setattr(columns, "_BLOCK", 100)
    weight: Any = tt.from_numpy(rng.standard_normal((4, 3, 3, 2)))

    def step(x: Any) -> Any:
        grads = tt.conv2d(x.trace(), weight, padding=1).relu().square().sum().backward()
        return grads[x], grads[weight]

    compiled: Any = tt.compile(step)
    x: Any = tt.from_numpy(rng.standard_normal((2, 3, 6, 5)))
    for given in (x, x * 2):
        for one, other in zip(compiled(given), step(given), strict=True):
            np.testing.assert_allclose(one.numpy(), other.numpy(), rtol=1e-12, atol=1e-12)

    def refuse(*_: object) -> None:
        raise AssertionError("a block")

    monkeypatch.setattr(columns, "_gathered", refuse)
    with pytest.raises(AssertionError, match="a block"):
        compiled(x)
