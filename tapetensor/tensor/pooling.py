"""Images made smaller by reducing windows."""

from __future__ import annotations

from typing import Any, overload
from typing import Literal as L

from tapetensor.kernels import images
from tapetensor.rules import windows as rules
from tapetensor.rules.dims import sized
from tapetensor.rules.refusals import refusal
from tapetensor.rules.windows import check_rank, holds_padding_alone
from tapetensor.tape import Kernel
from tapetensor.tensor.apply import apply
from tapetensor.tensor.base import TensorBase, check_floating, check_tensor
from tapetensor.tensor.operands import Ints, as_window, per_axis
from tapetensor.tensor.signatures import same_signature
from tapetensor.tensor.tensor import Tensor
from tapetensor.typing import Ds, F, K, M, N, T


@overload
def pooling(
    x: Tensor[tuple[*Ds, K, M, N], T, F],
    kernel_size: L[3],
    *,
    stride: L[1],
    padding: L[1],
    dilation: L[1] = 1,
) -> Tensor[tuple[*Ds, K, M, N], T, F]: ...
@overload
def pooling(
    x: Tensor[tuple[*Ds, K, M, N], T, F],
    kernel_size: Ints,
    *,
    stride: Ints | None = None,
    padding: Ints = 0,
    dilation: Ints = 1,
) -> Tensor[tuple[*Ds, K, Any, Any], T, F]: ...
def pooling(x: Any, kernel_size: Any, **options: Any) -> Any:
    """Reduce every window of images to one pixel."""


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
