"""Images: windows reduced or as columns, pixels of channels, and images of other sizes."""

from __future__ import annotations

import math
from typing import Any, TypeAlias
from typing import Literal as L

from tapetensor.arguments import as_flag, as_size, check_choice
from tapetensor.errors import ArgumentValueError, ShapeError, refusal
from tapetensor.kernels import images
from tapetensor.rules import windows as rules
from tapetensor.rules.dims import Size, sized
from tapetensor.rules.windows import check_rank, check_stretch, holds_padding_alone
from tapetensor.tape import Kernel
from tapetensor.tensor.apply import apply
from tapetensor.tensor.base import TensorBase, check_floating, check_tensor
from tapetensor.tensor.operands import Ints, as_window, check_fits, per_axis
from tapetensor.tensor.signatures import pooling, same_signature
from tapetensor.tensor.tensor import Tensor
from tapetensor.typing import D, Ds, F, K, M, N, P, Q, T


def unfold(
    x: Tensor[tuple[*Ds, K, M, N], T, F],
    kernel_size: Ints,
    *,
    stride: Ints = 1,
    padding: Ints = 0,
    dilation: Ints = 1,
) -> Tensor[tuple[*Ds, Any, Any], T, F]:
    """Return the elements of every window as a column: the matrix that a convolution multiplies.

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


Mode: TypeAlias = L["nearest", "bilinear", "bicubic"]


def interpolate(
    x: Tensor[tuple[*Ds, K, M, N], T, F],
    size: tuple[P, Q],
    mode: Mode = "nearest",
    *,
    align_corners: bool = False,
) -> Tensor[tuple[*Ds, K, P, Q], T, F]:
    """Return images of another size, larger or smaller.

        "nearest": result[h, w] = x[floor(h * H / H'), floor(w * W / W')]
        "bilinear": between the four pixels around a place
        "bicubic": by cubics through the sixteen pixels around it

    The place of row ``h`` is ``(h + 1/2) * H / H' - 1/2``, for pixels are taken for squares; with
    aligned corners it is ``h * (H - 1) / (H' - 1)``, and so for the columns. Beyond the image its
    outermost pixels go on. A smaller image is made of the pixels around the places alone, and not
    of all that it had; `avg_pool2d` takes means.

    Shape: ``(*Ds, C, H, W) -> (*Ds, C, H', W')``.
    Derivative: every pixel receives the cotangents of what it was read for, by the same weights.

    Args:
        x: images.
        size: the height and the width of the result, > 0.
        mode: "nearest", "bilinear" or "bicubic".
        align_corners: whether the middles of the outermost pixels, not their edges, stay in place.

    Raises:
        ShapeError: if `x` has no pixels.
        ArgumentValueError: if the mode is another, a size is not > 0, or corners are aligned of the
            nearest pixels.
        DTypeError: if the dtype is not floating.

    Source: PyTorch, ``nn.functional.interpolate``; Keys (1981), "Cubic convolution interpolation
        for digital image processing", with -3/4 for its parameter.

    >>> import tapetensor as tt
    >>> x = tt.from_numpy([[[0.0, 4.0, 8.0, 12.0]]], shape=(1, 1, 4))
    >>> interpolate(x, (1, 2), "bilinear")
    Tensor([[[ 2., 10.]]], shape=(1, 1, 2), dtype=float32, NoneTape)
    """
    height, width = _checked("interpolate", x, size, mode)
    is_aligned = as_flag("interpolate", "align_corners", align_corners)
    if is_aligned and mode == "nearest":
        raise ArgumentValueError(
            'interpolate: align_corners is for "bilinear" and "bicubic", not for "nearest"'
        )
    return apply(images.interpolate, (x,), (height, width, mode, is_aligned))


def upscale2d(
    x: Tensor[tuple[*Ds, K, M, N], T, F],
    size: tuple[P, Q],
    mode: Mode = "nearest",
    *,
    align_corners: bool = True,
) -> Tensor[tuple[*Ds, K, P, Q], T, F]:
    """Return images stretched to a size: `interpolate` with corners that stay corners.

        "nearest": result[h, w] = x[floor(h * H / H'), floor(w * W / W')]
        "bilinear": between the four pixels around (h * (H - 1) / (H' - 1), w * (W - 1) / (W' - 1))

    Shape: ``(*Ds, C, H, W) -> (*Ds, C, H', W')``.
    Derivative: every pixel receives the cotangents of what it was read for, by the same weights.

    Args:
        x: images.
        size: the height and the width of the result, not less than those of `x`.
        mode: "nearest", "bilinear" or "bicubic".
        align_corners: False for the places that `interpolate` has by default; of no effect on the
            nearest pixels.

    Raises:
        ShapeError: if the result is to be smaller than `x`, or `x` has no pixels.
        ArgumentValueError: if the mode is another, or a size is not > 0.
        DTypeError: if the dtype is not floating.

    >>> import tapetensor as tt
    >>> x = tt.from_numpy([[[1.0, 3.0]]], shape=(1, 1, 2))
    >>> tt.upscale2d(x, (1, 4))
    Tensor([[[1., 1., 3., 3.]]], shape=(1, 1, 4), dtype=float32, NoneTape)
    >>> tt.upscale2d(x, (1, 3), mode="bilinear")
    Tensor([[[1., 2., 3.]]], shape=(1, 1, 3), dtype=float32, NoneTape)
    """
    height, width = _checked("upscale2d", x, size, mode)
    is_aligned = as_flag("upscale2d", "align_corners", align_corners)
    shape: tuple[int, ...] = x._array.shape
    if height < shape[-2] or width < shape[-1]:
        wanted = sized((height, width))
        raise refusal(lambda: check_stretch("upscale2d", sized(shape), wanted))
    return apply(images.upscale2d, (x,), (height, width, mode, is_aligned))


def _checked(op: str, x: Any, size: object, mode: object) -> tuple[int, ...]:
    """Return the height and the width, after a look at the arguments."""
    check_tensor(op, "the input", x)
    check_floating(op, x)
    check_rank(op, x._array.shape, 2)
    sizes = per_axis(op, "size", size, 2)
    check_choice(op, "mode", mode, ("nearest", "bilinear", "bicubic"))
    if min(x._array.shape[-2:]) < 1:
        raise ShapeError(f"{op}: an input of shape {x._array.shape} has no pixels")
    return sizes


@same_signature(pooling)
def avg_pool2d(
    x: Tensor[Any, Any, Any],
    kernel_size: int | tuple[int, int],
    *,
    stride: int | tuple[int, int] | None = None,
    padding: int | tuple[int, int] = 0,
    dilation: int | tuple[int, int] = 1,
) -> Tensor[Any, Any, Any]:
    """Return the mean of every window.

        result[b, c, h, w] = sum over i, j of x[b, c, h * stride + i, w * stride + j] / (k * k)

    The zeros of the padding count: the divisor is the area of the window everywhere.

    Shape: ``(*Ds, C, H, W) -> (*Ds, C, H', W')`` with
        ``H' = floor((H + 2 padding - dilation (k - 1) - 1) / stride) + 1``, and so for the width.
    Derivative: the cotangent divided by the area, added to all elements of the window.

    Args:
        x: images.
        kernel_size: the size of the window, > 0; one number, or one per axis.
        stride: how far apart windows stand, > 0; by default as far as they are large.
        padding: how many pixels are put around, from 0 to half of the window.
        dilation: how far apart the elements of a window are, > 0.

    Raises:
        ShapeError: if the window is larger than the padded input, or one holds padding alone.
        ArgumentValueError: if a number is outside its range.
        DTypeError: if the dtype is not floating.

    >>> import tapetensor as tt
    >>> x = tt.from_numpy([[[1.0, 2.0], [3.0, 6.0]]], shape=(1, 2, 2))
    >>> tt.avg_pool2d(x, 2)
    Tensor([[[3.]]], shape=(1, 1, 1), dtype=float32, NoneTape)
    """
    return _pooled(images.avg_pool2d, x, kernel_size, stride, padding, dilation)


@same_signature(pooling)
def max_pool2d(
    x: Tensor[Any, Any, Any],
    kernel_size: int | tuple[int, int],
    *,
    stride: int | tuple[int, int] | None = None,
    padding: int | tuple[int, int] = 0,
    dilation: int | tuple[int, int] = 1,
) -> Tensor[Any, Any, Any]:
    """Return the largest element of every window.

        result[b, c, h, w] = max over i, j of x[b, c, h * stride + i, w * stride + j]

    The padding never wins.

    Shape: ``(*Ds, C, H, W) -> (*Ds, C, H', W')`` with
        ``H' = floor((H + 2 padding - dilation (k - 1) - 1) / stride) + 1``, and so for the width.
    Derivative: 1 for the largest element; ties share it equally, as in `Tensor.max`. A window
        with a NaN shares it among all of its elements.

    Args:
        x: images.
        kernel_size: the size of the window, > 0; one number, or one per axis.
        stride: how far apart windows stand, > 0; by default as far as they are large.
        padding: how many pixels are put around, from 0 to half of the window.
        dilation: how far apart the elements of a window are, > 0.

    Raises:
        ShapeError: if the window is larger than the padded input, or one holds padding alone.
        ArgumentValueError: if a number is outside its range.
        DTypeError: if the dtype is not floating.

    >>> import tapetensor as tt
    >>> x = tt.from_numpy([[[1.0, 2.0], [3.0, 6.0]]], shape=(1, 2, 2))
    >>> tt.max_pool2d(x, 2)
    Tensor([[[6.]]], shape=(1, 1, 1), dtype=float32, NoneTape)
    """
    return _pooled(images.max_pool2d, x, kernel_size, stride, padding, dilation)


@same_signature(pooling)
def min_pool2d(
    x: Tensor[Any, Any, Any],
    kernel_size: int | tuple[int, int],
    *,
    stride: int | tuple[int, int] | None = None,
    padding: int | tuple[int, int] = 0,
    dilation: int | tuple[int, int] = 1,
) -> Tensor[Any, Any, Any]:
    """Return the smallest element of every window.

        result[b, c, h, w] = min over i, j of x[b, c, h * stride + i, w * stride + j]

    The padding never wins.

    Shape: ``(*Ds, C, H, W) -> (*Ds, C, H', W')`` with
        ``H' = floor((H + 2 padding - dilation (k - 1) - 1) / stride) + 1``, and so for the width.
    Derivative: 1 for the smallest element; ties share it equally, as in `Tensor.min`. A window
        with a NaN shares it among all of its elements.

    Args:
        x: images.
        kernel_size: the size of the window, > 0; one number, or one per axis.
        stride: how far apart windows stand, > 0; by default as far as they are large.
        padding: how many pixels are put around, from 0 to half of the window.
        dilation: how far apart the elements of a window are, > 0.

    Raises:
        ShapeError: if the window is larger than the padded input, or one holds padding alone.
        ArgumentValueError: if a number is outside its range.
        DTypeError: if the dtype is not floating.

    >>> import tapetensor as tt
    >>> x = tt.from_numpy([[[1.0, 2.0], [3.0, 6.0]]], shape=(1, 2, 2))
    >>> tt.min_pool2d(x, 2)
    Tensor([[[1.]]], shape=(1, 1, 1), dtype=float32, NoneTape)
    """
    return _pooled(images.min_pool2d, x, kernel_size, stride, padding, dilation)


def _pooled(
    kernel: Kernel,
    x: TensorBase[Any, Any, Any],
    kernel_size: object,
    stride: object,
    padding: object,
    dilation: object,
) -> Tensor[Any, Any, Any]:
    op = kernel.__name__
    check_tensor(op, "the input", x)
    check_floating(op, x)
    check_rank(op, x._array.shape, 2)
    sizes = per_axis(op, "kernel_size", kernel_size, 2)
    window = as_window(op, sizes, sizes if stride is None else stride, padding, dilation)
    shape = x._array.shape
    along = zip(shape[-2:], window.counts(shape[-2:]), *window, strict=True)
    if not all(_fits(*numbers) for numbers in along):
        asked = rules.Window(*map(sized, window))
        raise refusal(lambda: rules.pooling(op, sized(shape), asked))
    return apply(kernel, (x,), (window,))


def _fits(size: int, count: int, kernel: int, stride: int, padding: int, dilation: int) -> bool:
    """Tell whether there are windows along an axis, each of which holds some of the image."""
    is_narrow = 2 * padding <= dilation * (kernel - 1) + 1
    return (
        count > 0 and is_narrow and not holds_padding_alone(size, count, stride, padding, dilation)
    )
