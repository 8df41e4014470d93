"""Windows of images as columns, and channels as pixels."""

from __future__ import annotations

import math
from typing import Any

from tapetensor.arguments import as_size
from tapetensor.kernels import images
from tapetensor.rules import windows as rules
from tapetensor.rules.dims import Size, sized
from tapetensor.rules.refusals import refusal
from tapetensor.rules.windows import check_rank
from tapetensor.tensor.apply import apply
from tapetensor.tensor.base import check_floating, check_tensor
from tapetensor.tensor.tensor import Tensor
from tapetensor.tensor.windows import Ints, as_window, check_fits, per_axis
from tapetensor.typing import D, Ds, F, K, M, N, P, Q, T


def unfold(
    x: Tensor[tuple[*Ds, K, M, N], T, F],
    kernel_size: Ints,
    *,
    stride: Ints = 1,
    padding: Ints = 0,
    dilation: Ints = 1,
) -> Tensor[tuple[*Ds, Any, Any], T, F]:
    """Return what every window reads as a column: the matrix that a convolution multiplies.

        result[c * kh * kw + i * kw + j, l] = x[c, h * stride + i, w * stride + j]

    for the window ``l = h * W' + w``, counted from the left and then from the top.

    Shape: ``(*Ds, C, H, W) -> (*Ds, C kh kw, H' W')`` with
        ``H' = floor((H + 2 padding - dilation (k - 1) - 1) / stride) + 1``, and so for the width.
    Derivative: `fold` of the cotangent.

    Args:
        x: images.
        kernel_size: the size of the window, > 0; one number, or one per axis.
        stride: how far apart windows stand, > 0.
        padding: how many zeros are put around, >= 0.
        dilation: how far apart the elements of a window are, > 0.

    Raises:
        ShapeError: if the window is larger than the padded input.
        ArgumentValueError: if a number is outside its range.
        DTypeError: if the dtype is not floating.

    Source: PyTorch, ``nn.functional.unfold``.

    >>> import tapetensor as tt
    >>> unfold(tt.ones((3, 4, 4)), 2, stride=2).shape
    (12, 4)
    """
    check_tensor("unfold", "the input", x)
    check_floating("unfold", x)
    shape: tuple[int, ...] = x._array.shape
    check_rank("unfold", shape, 2)
    sizes = per_axis("unfold", "kernel_size", kernel_size, 2)
    window = as_window("unfold", sizes, stride, padding, dilation)
    check_fits("unfold", shape, window)
    return apply(images.unfold, (x,), (window,))


def fold(
    x: Tensor[tuple[*Ds, M, N], T, F],
    size: tuple[P, Q],
    kernel_size: Ints,
    *,
    stride: Ints = 1,
    padding: Ints = 0,
    dilation: Ints = 1,
) -> Tensor[tuple[*Ds, Any, P, Q], T, F]:
    """Return images to which every column adds a window: the transpose of `unfold`.

    A pixel that several windows read is the sum of what they hold for it.

    Shape: ``(*Ds, C kh kw, H' W') -> (*Ds, C, H, W)`` for ``size=(H, W)``, with as many columns
        as `unfold` gives for that size.
    Derivative: `unfold` of the cotangent.

    Args:
        x: columns, one for each window.
        size: the height and the width of the images, > 0.
        kernel_size: the size of the window, > 0; one number, or one per axis.
        stride: how far apart windows stand, > 0.
        padding: how many pixels around the images are left out, >= 0.
        dilation: how far apart the elements of a window are, > 0.

    Raises:
        ShapeError: if the rows are no multiple of the window, or there are not as many columns as
            windows.
        ArgumentValueError: if a number is outside its range.
        DTypeError: if the dtype is not floating.

    Source: PyTorch, ``nn.functional.fold``.

    >>> import tapetensor as tt
    >>> fold(tt.ones((4, 2)), (2, 3), 2)
    Tensor([[[1., 2., 1.],
             [1., 2., 1.]]], shape=(1, 2, 3), dtype=float32, NoneTape)
    """
    check_tensor("fold", "the input", x)
    check_floating("fold", x)
    shape: tuple[int, ...] = x._array.shape
    sizes = per_axis("fold", "size", size, 2)
    kernel = per_axis("fold", "kernel_size", kernel_size, 2)
    window = as_window("fold", kernel, stride, padding, dilation)
    check_fits("fold", sizes, window)
    count = math.prod(window.counts(sizes))
    if len(shape) < 2 or shape[-2] % window.area or shape[-1] != count:
        asked = rules.Window(*map(sized, window))
        raise refusal(lambda: rules.fold("fold", sized(shape), sized(sizes), asked))
    return apply(images.fold, (x,), (window, sizes))


def pixel_shuffle(
    x: Tensor[tuple[*Ds, K, M, N], T, D], factor: int
) -> Tensor[tuple[*Ds, Any, Any, Any], T, D]:
    """Return the channels of every pixel as a square of pixels, side by side.

        result[c, h * factor + i, w * factor + j] = x[(c * factor + i) * factor + j, h, w]

    Shape: ``(*Ds, C factor**2, H, W) -> (*Ds, C, H factor, W factor)``.
    Derivative: the cotangent put back, by `pixel_unshuffle`.

    Args:
        x: images.
        factor: how many times larger they become in both directions, > 0.

    Raises:
        ShapeError: if the channels are no multiple of ``factor**2``.
        ArgumentValueError: if the factor is not > 0.

    Source: Shi et al. (2016), "Real-time single image and video super-resolution using an efficient
        sub-pixel convolutional neural network".

    >>> import tapetensor as tt
    >>> pixel_shuffle(tt.arange(4).reshape((4, 1, 1)), 2)
    Tensor([[[0, 1],
             [2, 3]]], shape=(1, 2, 2), dtype=int64, NoneTape)
    """
    check_tensor("pixel_shuffle", "the input", x)
    shape: tuple[int, ...] = x._array.shape
    check_rank("pixel_shuffle", shape, 2)
    times = as_size("pixel_shuffle", "factor", factor, low=1)
    if shape[-3] % times**2:
        raise refusal(lambda: rules.pixel_shuffle("pixel_shuffle", sized(shape), Size.of(times)))
    return apply(images.pixel_shuffle, (x,), (times,))


def pixel_unshuffle(
    x: Tensor[tuple[*Ds, K, M, N], T, D], factor: int
) -> Tensor[tuple[*Ds, Any, Any, Any], T, D]:
    """Return the pixels of every square as channels of one pixel: it undoes `pixel_shuffle`.

    Shape: ``(*Ds, C, H, W) -> (*Ds, C factor**2, H / factor, W / factor)``.
    Derivative: the cotangent put back, by `pixel_shuffle`.

    Args:
        x: images.
        factor: how many times smaller they become in both directions, > 0.

    Raises:
        ShapeError: if the height or the width is no multiple of the factor.
        ArgumentValueError: if the factor is not > 0.

    >>> import tapetensor as tt
    >>> pixel_unshuffle(tt.ones((3, 4, 6)), 2).shape
    (12, 2, 3)
    """
    check_tensor("pixel_unshuffle", "the input", x)
    shape: tuple[int, ...] = x._array.shape
    check_rank("pixel_unshuffle", shape, 2)
    times = as_size("pixel_unshuffle", "factor", factor, low=1)
    if shape[-2] % times or shape[-1] % times:
        asked = Size.of(times)
        raise refusal(lambda: rules.pixel_unshuffle("pixel_unshuffle", sized(shape), asked))
    return apply(images.pixel_unshuffle, (x,), (times,))
