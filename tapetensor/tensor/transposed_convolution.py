"""The convolutions that make sequences and images larger."""

# Where an operand fits in more than one way (a dim may be Any) the overloads overlap; the more
# exact one comes first.
# mypy: disable-error-code="overload-overlap"

from __future__ import annotations

import operator
from typing import Any, overload
from typing import Literal as L

from tapetensor.arguments import as_size
from tapetensor.errors import refusal
from tapetensor.kernels import convolution
from tapetensor.rules import windows as rules
from tapetensor.rules.dims import Size, sized
from tapetensor.rules.windows import check_rank
from tapetensor.tape import Kernel, NoneTape
from tapetensor.tensor.apply import apply
from tapetensor.tensor.operands import Ints, TapeOfRhs, kernel_window, operands_of, per_axis
from tapetensor.tensor.tensor import Joins, Tensor
from tapetensor.typing import Ds, F, K, M, N, P, T


@overload
def conv_transpose1d(
    x: Tensor[tuple[*Ds, K, N], T, F],
    weight: Tensor[tuple[K, P, Any], NoneTape, F],
    bias: Joins[tuple[P], T, F] | None = None,
    *,
    stride: int = 1,
    padding: int = 0,
    output_padding: int = 0,
    dilation: int = 1,
    groups: L[1] = 1,
) -> Tensor[tuple[*Ds, P, Any], T, F]: ...
@overload
def conv_transpose1d(
    x: Tensor[tuple[*Ds, K, N], T, F],
    weight: Tensor[tuple[K, P, Any], T, F],
    bias: Joins[tuple[P], T, F] | None = None,
    *,
    stride: int = 1,
    padding: int = 0,
    output_padding: int = 0,
    dilation: int = 1,
    groups: L[1] = 1,
) -> Tensor[tuple[*Ds, P, Any], T, F]: ...
@overload
def conv_transpose1d(
    x: Tensor[tuple[*Ds, K, N], NoneTape, F],
    weight: Tensor[tuple[K, P, Any], TapeOfRhs, F],
    bias: Joins[tuple[P], TapeOfRhs, F] | None = None,
    *,
    stride: int = 1,
    padding: int = 0,
    output_padding: int = 0,
    dilation: int = 1,
    groups: L[1] = 1,
) -> Tensor[tuple[*Ds, P, Any], TapeOfRhs, F]: ...
@overload
def conv_transpose1d(
    x: Tensor[tuple[*Ds, K, N], T, F],
    weight: Joins[tuple[K, Any, Any], T, F],
    bias: Joins[tuple[Any], T, F] | None = None,
    *,
    stride: int = 1,
    padding: int = 0,
    output_padding: int = 0,
    dilation: int = 1,
    groups: int,
) -> Tensor[tuple[*Ds, Any, Any], T, F]: ...
@overload
def conv_transpose1d(
    x: Tensor[tuple[*Ds, K, N], NoneTape, F],
    weight: Tensor[tuple[K, Any, Any], TapeOfRhs, F],
    bias: Joins[tuple[Any], TapeOfRhs, F] | None = None,
    *,
    stride: int = 1,
    padding: int = 0,
    output_padding: int = 0,
    dilation: int = 1,
    groups: int,
) -> Tensor[tuple[*Ds, Any, Any], TapeOfRhs, F]: ...
def conv_transpose1d(
    x: Tensor[Any, Any, Any],
    weight: Tensor[Any, Any, Any],
    bias: Tensor[Any, Any, Any] | None = None,
    *,
    stride: int = 1,
    padding: int = 0,
    output_padding: int = 0,
    dilation: int = 1,
    groups: int = 1,
) -> Tensor[Any, Any, Any]:
    """Let every element write a kernel: `conv1d` transposed, which makes sequences longer.

        result[b, o, l * stride + i * dilation] += weight[c, o, i] * x[b, c, l]

    Shape: ``(*Ds, C, L)`` and a weight ``(C, O / groups, k)`` give ``(*Ds, O, L')`` with
        ``L' = (L - 1) stride - 2 padding + dilation (k - 1) + output_padding + 1``.
    Derivative: the convolution of the cotangent for `x`; for `weight` the sum of the cotangent
        times what each of its elements met.

    Args:
        x: sequences.
        weight: one kernel per input channel.
        bias: (O,), added to every place.
        stride: how far apart the windows that are written stand, > 0.
        padding: how many elements are cut off at both ends, >= 0.
        output_padding: how many elements are left at the end where a stride leaves several sizes to
            choose from; less than the stride or the dilation.
        dilation: how far apart the elements of a window are, > 0.
        groups: into how many groups the channels are parted, each convolved by itself; > 0.

    Raises:
        ShapeError: if the channels do not fit the weight, or nothing is left of the output.
        ArgumentValueError: if a number is outside its range, or `groups` does not divide the
            channels.
        DTypeError: if the dtypes differ or are not floating.

    Source: Dumoulin & Visin (2016), "A guide to convolution arithmetic for deep learning".

    >>> import tapetensor as tt
    >>> x = tt.from_numpy([[1.0, 2.0]], shape=(1, 2))
    >>> tt.conv_transpose1d(x, tt.ones((1, 1, 2)), stride=2)
    Tensor([[1., 1., 2., 2.]], shape=(1, 4), dtype=float32, NoneTape)
    """
    options = (stride, padding, output_padding, dilation, groups)
    return _transposed(convolution.conv_transpose1d, 1, x, weight, bias, options)


@overload
def conv_transpose2d(
    x: Tensor[tuple[*Ds, K, M, N], T, F],
    weight: Tensor[tuple[K, P, Any, Any], NoneTape, F],
    bias: Joins[tuple[P], T, F] | None = None,
    *,
    stride: Ints = 1,
    padding: Ints = 0,
    output_padding: Ints = 0,
    dilation: Ints = 1,
    groups: L[1] = 1,
) -> Tensor[tuple[*Ds, P, Any, Any], T, F]: ...
@overload
def conv_transpose2d(
    x: Tensor[tuple[*Ds, K, M, N], T, F],
    weight: Tensor[tuple[K, P, Any, Any], T, F],
    bias: Joins[tuple[P], T, F] | None = None,
    *,
    stride: Ints = 1,
    padding: Ints = 0,
    output_padding: Ints = 0,
    dilation: Ints = 1,
    groups: L[1] = 1,
) -> Tensor[tuple[*Ds, P, Any, Any], T, F]: ...
@overload
def conv_transpose2d(
    x: Tensor[tuple[*Ds, K, M, N], NoneTape, F],
    weight: Tensor[tuple[K, P, Any, Any], TapeOfRhs, F],
    bias: Joins[tuple[P], TapeOfRhs, F] | None = None,
    *,
    stride: Ints = 1,
    padding: Ints = 0,
    output_padding: Ints = 0,
    dilation: Ints = 1,
    groups: L[1] = 1,
) -> Tensor[tuple[*Ds, P, Any, Any], TapeOfRhs, F]: ...
@overload
def conv_transpose2d(
    x: Tensor[tuple[*Ds, K, M, N], T, F],
    weight: Joins[tuple[K, Any, Any, Any], T, F],
    bias: Joins[tuple[Any], T, F] | None = None,
    *,
    stride: Ints = 1,
    padding: Ints = 0,
    output_padding: Ints = 0,
    dilation: Ints = 1,
    groups: int,
) -> Tensor[tuple[*Ds, Any, Any, Any], T, F]: ...
@overload
def conv_transpose2d(
    x: Tensor[tuple[*Ds, K, M, N], NoneTape, F],
    weight: Tensor[tuple[K, Any, Any, Any], TapeOfRhs, F],
    bias: Joins[tuple[Any], TapeOfRhs, F] | None = None,
    *,
    stride: Ints = 1,
    padding: Ints = 0,
    output_padding: Ints = 0,
    dilation: Ints = 1,
    groups: int,
) -> Tensor[tuple[*Ds, Any, Any, Any], TapeOfRhs, F]: ...
def conv_transpose2d(
    x: Tensor[Any, Any, Any],
    weight: Tensor[Any, Any, Any],
    bias: Tensor[Any, Any, Any] | None = None,
    *,
    stride: int | tuple[int, int] = 1,
    padding: int | tuple[int, int] = 0,
    output_padding: int | tuple[int, int] = 0,
    dilation: int | tuple[int, int] = 1,
    groups: int = 1,
) -> Tensor[Any, Any, Any]:
    """Let every pixel write a kernel: `conv2d` transposed, which makes images larger.

        result[b, o, h * stride + i * dilation, w * stride + j * dilation] +=
            weight[c, o, i, j] * x[b, c, h, w]

    Shape: ``(*Ds, C, H, W)`` and a weight ``(C, O / groups, kh, kw)`` give ``(*Ds, O, H', W')``
        with ``H' = (H - 1) stride - 2 padding + dilation (kh - 1) + output_padding + 1``, and so
        for the width.
    Derivative: the convolution of the cotangent for `x`; for `weight` the sum of the cotangent
        times what each of its elements met.

    Args:
        x: images.
        weight: one kernel per input channel.
        bias: (O,), added to every place.
        stride: how far apart the windows that are written stand, > 0; one number, or one per axis.
        padding: how many pixels are cut off all around, >= 0; the same.
        output_padding: how many pixels are left below and to the right where a stride leaves
            several sizes to choose from; less than the stride or the dilation.
        dilation: how far apart the elements of a window are, > 0; the same.
        groups: into how many groups the channels are parted, each convolved by itself; > 0.

    Raises:
        ShapeError: if the channels do not fit the weight, or nothing is left of the output.
        ArgumentValueError: if a number is outside its range, or `groups` does not divide the
            channels.
        DTypeError: if the dtypes differ or are not floating.

    Source: Dumoulin & Visin (2016), "A guide to convolution arithmetic for deep learning".

    >>> import tapetensor as tt
    >>> x = tt.from_numpy([[[1.0, 2.0]]], shape=(1, 1, 2))
    >>> w = tt.ones((1, 1, 1, 2))
    >>> tt.conv_transpose2d(x, w, stride=2)
    Tensor([[[1., 1., 2., 2.]]], shape=(1, 1, 4), dtype=float32, NoneTape)
    """
    options = (stride, padding, output_padding, dilation, groups)
    return _transposed(convolution.conv_transpose2d, 2, x, weight, bias, options)


def _transposed(
    kernel: Kernel, axes: int, x: Any, weight: Any, bias: Any, options: tuple[object, ...]
) -> Tensor[Any, Any, Any]:
    op = kernel.__name__
    stride, padding, output_padding, dilation, groups = options
    operands = operands_of(op, x, weight, bias)
    shape, weight_shape = x._array.shape, weight._array.shape
    check_rank(op, shape, axes)
    window = kernel_window(op, weight_shape, axes, stride, padding, dilation, transposed=True)
    extra = per_axis(op, "output_padding", output_padding, axes, low=0)
    count = as_size(op, "groups", groups, low=1)
    sizes = tuple(
        [
            (size - 1) * s - 2 * p + d * (k - 1) + more + 1
            for size, k, s, p, d, more in zip(shape[-axes:], *window, extra, strict=True)
        ]
    )
    fits = (
        weight_shape[0] == shape[-1 - axes]
        and shape[-1 - axes] % count == 0
        and (bias is None or bias._array.shape == (weight_shape[1] * count,))
        and min(*sizes, *shape[-axes:]) > 0
        and all(map(operator.lt, extra, map(max, window.stride, window.dilation)))
    )
    if not fits:
        dims = [sized(operand._array.shape) for operand in operands]
        asked, added = rules.Window(*map(sized, window)), sized(extra)
        raise refusal(lambda: rules.transposed_convolution(op, dims, asked, Size.of(count), added))
    absent = () if bias is not None else (None,)
    return apply(kernel, operands, (*absent, window, count, sizes))
