"""Convolutions over sequences and images."""

# Where an operand fits in more than one way (a dim may be Any) the overloads overlap; the more
# exact one comes first.
# mypy: disable-error-code="overload-overlap"

from __future__ import annotations

from typing import Any, overload
from typing import Literal as L

from tapetensor.kernels import convolution
from tapetensor.tape import NoneTape
from tapetensor.tensor.apply import apply
from tapetensor.tensor.operands import Ints, TapeOfRhs, convolution_window, operands_of
from tapetensor.tensor.tensor import Joins, Tensor
from tapetensor.typing import Ds, F, K, M, N, P, T


@overload
def conv1d(
    x: Tensor[tuple[*Ds, K, M], T, F],
    weight: Tensor[tuple[P, K, L[1]], NoneTape, F],
    bias: Joins[tuple[P], T, F] | None = None,
    *,
    stride: L[1] = 1,
    padding: L[0] = 0,
    dilation: int = 1,
    groups: L[1] = 1,
) -> Tensor[tuple[*Ds, P, M], T, F]: ...
@overload
def conv1d(
    x: Tensor[tuple[*Ds, K, M], T, F],
    weight: Tensor[tuple[P, K, L[1]], T, F],
    bias: Joins[tuple[P], T, F] | None = None,
    *,
    stride: L[1] = 1,
    padding: L[0] = 0,
    dilation: int = 1,
    groups: L[1] = 1,
) -> Tensor[tuple[*Ds, P, M], T, F]: ...
@overload
def conv1d(
    x: Tensor[tuple[*Ds, K, M], NoneTape, F],
    weight: Tensor[tuple[P, K, L[1]], TapeOfRhs, F],
    bias: Joins[tuple[P], TapeOfRhs, F] | None = None,
    *,
    stride: L[1] = 1,
    padding: L[0] = 0,
    dilation: int = 1,
    groups: L[1] = 1,
) -> Tensor[tuple[*Ds, P, M], TapeOfRhs, F]: ...
@overload
def conv1d(
    x: Tensor[tuple[*Ds, K, M], T, F],
    weight: Tensor[tuple[P, K, L[3]], NoneTape, F],
    bias: Joins[tuple[P], T, F] | None = None,
    *,
    stride: L[1] = 1,
    padding: L[1],
    dilation: L[1] = 1,
    groups: L[1] = 1,
) -> Tensor[tuple[*Ds, P, M], T, F]: ...
@overload
def conv1d(
    x: Tensor[tuple[*Ds, K, M], T, F],
    weight: Tensor[tuple[P, K, L[3]], T, F],
    bias: Joins[tuple[P], T, F] | None = None,
    *,
    stride: L[1] = 1,
    padding: L[1],
    dilation: L[1] = 1,
    groups: L[1] = 1,
) -> Tensor[tuple[*Ds, P, M], T, F]: ...
@overload
def conv1d(
    x: Tensor[tuple[*Ds, K, M], NoneTape, F],
    weight: Tensor[tuple[P, K, L[3]], TapeOfRhs, F],
    bias: Joins[tuple[P], TapeOfRhs, F] | None = None,
    *,
    stride: L[1] = 1,
    padding: L[1],
    dilation: L[1] = 1,
    groups: L[1] = 1,
) -> Tensor[tuple[*Ds, P, M], TapeOfRhs, F]: ...
@overload
def conv1d(
    x: Tensor[tuple[*Ds, K, M], T, F],
    weight: Tensor[tuple[P, K, Any], NoneTape, F],
    bias: Joins[tuple[P], T, F] | None = None,
    *,
    stride: int = 1,
    padding: int = 0,
    dilation: int = 1,
    groups: L[1] = 1,
) -> Tensor[tuple[*Ds, P, Any], T, F]: ...
@overload
def conv1d(
    x: Tensor[tuple[*Ds, K, M], T, F],
    weight: Tensor[tuple[P, K, Any], T, F],
    bias: Joins[tuple[P], T, F] | None = None,
    *,
    stride: int = 1,
    padding: int = 0,
    dilation: int = 1,
    groups: L[1] = 1,
) -> Tensor[tuple[*Ds, P, Any], T, F]: ...
@overload
def conv1d(
    x: Tensor[tuple[*Ds, K, M], NoneTape, F],
    weight: Tensor[tuple[P, K, Any], TapeOfRhs, F],
    bias: Joins[tuple[P], TapeOfRhs, F] | None = None,
    *,
    stride: int = 1,
    padding: int = 0,
    dilation: int = 1,
    groups: L[1] = 1,
) -> Tensor[tuple[*Ds, P, Any], TapeOfRhs, F]: ...
@overload
def conv1d(
    x: Tensor[tuple[*Ds, K, M], T, F],
    weight: Tensor[tuple[P, Any, Any], NoneTape, F],
    bias: Joins[tuple[P], T, F] | None = None,
    *,
    stride: int = 1,
    padding: int = 0,
    dilation: int = 1,
    groups: int,
) -> Tensor[tuple[*Ds, P, Any], T, F]: ...
@overload
def conv1d(
    x: Tensor[tuple[*Ds, K, M], T, F],
    weight: Tensor[tuple[P, Any, Any], T, F],
    bias: Joins[tuple[P], T, F] | None = None,
    *,
    stride: int = 1,
    padding: int = 0,
    dilation: int = 1,
    groups: int,
) -> Tensor[tuple[*Ds, P, Any], T, F]: ...
@overload
def conv1d(
    x: Tensor[tuple[*Ds, K, M], NoneTape, F],
    weight: Tensor[tuple[P, Any, Any], TapeOfRhs, F],
    bias: Joins[tuple[P], TapeOfRhs, F] | None = None,
    *,
    stride: int = 1,
    padding: int = 0,
    dilation: int = 1,
    groups: int,
) -> Tensor[tuple[*Ds, P, Any], TapeOfRhs, F]: ...
def conv1d(
    x: Tensor[Any, Any, Any],
    weight: Tensor[Any, Any, Any],
    bias: Tensor[Any, Any, Any] | None = None,
    *,
    stride: int = 1,
    padding: int = 0,
    dilation: int = 1,
    groups: int = 1,
) -> Tensor[Any, Any, Any]:
    """Slide a kernel over sequences (a cross-correlation, as every such layer's).

        result[b, o, l] = sum over c, i of weight[o, c, i] * x[b, c, l * stride + i * dilation]

    Shape: ``(*Ds, C, L)`` and a weight ``(O, C / groups, k)`` give ``(*Ds, O, L')`` with
        ``L' = floor((L + 2 padding - dilation (k - 1) - 1) / stride) + 1``.
    Derivative: the transposed convolution of the cotangent for `x`; for `weight` the sum of the
        cotangent times what each of its elements met.

    Args:
        x: sequences.
        weight: one kernel per output channel.
        bias: (O,), added to every place.
        stride: how far apart windows stand, > 0.
        padding: how many zeros are put at both ends, >= 0.
        dilation: how far apart the elements of a window are, > 0.
        groups: into how many groups the channels are parted, each convolved by itself; > 0.

    Raises:
        ShapeError: if the channels do not fit the weight, or the kernel is larger than the padded
            input.
        ArgumentValueError: if a number is outside its range, or `groups` does not divide the
            channels.
        DTypeError: if the dtypes differ or are not floating.

    >>> import tapetensor as tt
    >>> x = tt.from_numpy([[1.0, 2.0, 4.0]], shape=(1, 3))
    >>> w = tt.from_numpy([[[-1.0, 1.0]]], shape=(1, 1, 2))
    >>> tt.conv1d(x, w)
    Tensor([[1., 2.]], shape=(1, 2), dtype=float32, NoneTape)
    """
    operands = operands_of("conv1d", x, weight, bias)
    window, count = convolution_window("conv1d", operands, 1, stride, padding, dilation, groups)
    absent = () if bias is not None else (None,)
    return apply(convolution.conv1d, operands, (*absent, window, count))


@overload
def conv2d(
    x: Tensor[tuple[*Ds, K, M, N], T, F],
    weight: Tensor[tuple[P, K, L[1], L[1]], NoneTape, F],
    bias: Joins[tuple[P], T, F] | None = None,
    *,
    stride: L[1] = 1,
    padding: L[0] = 0,
    dilation: Ints = 1,
    groups: L[1] = 1,
) -> Tensor[tuple[*Ds, P, M, N], T, F]: ...
@overload
def conv2d(
    x: Tensor[tuple[*Ds, K, M, N], T, F],
    weight: Tensor[tuple[P, K, L[1], L[1]], T, F],
    bias: Joins[tuple[P], T, F] | None = None,
    *,
    stride: L[1] = 1,
    padding: L[0] = 0,
    dilation: Ints = 1,
    groups: L[1] = 1,
) -> Tensor[tuple[*Ds, P, M, N], T, F]: ...
@overload
def conv2d(
    x: Tensor[tuple[*Ds, K, M, N], NoneTape, F],
    weight: Tensor[tuple[P, K, L[1], L[1]], TapeOfRhs, F],
    bias: Joins[tuple[P], TapeOfRhs, F] | None = None,
    *,
    stride: L[1] = 1,
    padding: L[0] = 0,
    dilation: Ints = 1,
    groups: L[1] = 1,
) -> Tensor[tuple[*Ds, P, M, N], TapeOfRhs, F]: ...
@overload
def conv2d(
    x: Tensor[tuple[*Ds, K, M, N], T, F],
    weight: Tensor[tuple[P, K, L[3], L[3]], NoneTape, F],
    bias: Joins[tuple[P], T, F] | None = None,
    *,
    stride: L[1] = 1,
    padding: L[1],
    dilation: L[1] = 1,
    groups: L[1] = 1,
) -> Tensor[tuple[*Ds, P, M, N], T, F]: ...
@overload
def conv2d(
    x: Tensor[tuple[*Ds, K, M, N], T, F],
    weight: Tensor[tuple[P, K, L[3], L[3]], T, F],
    bias: Joins[tuple[P], T, F] | None = None,
    *,
    stride: L[1] = 1,
    padding: L[1],
    dilation: L[1] = 1,
    groups: L[1] = 1,
) -> Tensor[tuple[*Ds, P, M, N], T, F]: ...
@overload
def conv2d(
    x: Tensor[tuple[*Ds, K, M, N], NoneTape, F],
    weight: Tensor[tuple[P, K, L[3], L[3]], TapeOfRhs, F],
    bias: Joins[tuple[P], TapeOfRhs, F] | None = None,
    *,
    stride: L[1] = 1,
    padding: L[1],
    dilation: L[1] = 1,
    groups: L[1] = 1,
) -> Tensor[tuple[*Ds, P, M, N], TapeOfRhs, F]: ...
@overload
def conv2d(
    x: Tensor[tuple[*Ds, K, M, N], T, F],
    weight: Tensor[tuple[P, K, Any, Any], NoneTape, F],
    bias: Joins[tuple[P], T, F] | None = None,
    *,
    stride: Ints = 1,
    padding: Ints = 0,
    dilation: Ints = 1,
    groups: L[1] = 1,
) -> Tensor[tuple[*Ds, P, Any, Any], T, F]: ...
@overload
def conv2d(
    x: Tensor[tuple[*Ds, K, M, N], T, F],
    weight: Tensor[tuple[P, K, Any, Any], T, F],
    bias: Joins[tuple[P], T, F] | None = None,
    *,
    stride: Ints = 1,
    padding: Ints = 0,
    dilation: Ints = 1,
    groups: L[1] = 1,
) -> Tensor[tuple[*Ds, P, Any, Any], T, F]: ...
@overload
def conv2d(
    x: Tensor[tuple[*Ds, K, M, N], NoneTape, F],
    weight: Tensor[tuple[P, K, Any, Any], TapeOfRhs, F],
    bias: Joins[tuple[P], TapeOfRhs, F] | None = None,
    *,
    stride: Ints = 1,
    padding: Ints = 0,
    dilation: Ints = 1,
    groups: L[1] = 1,
) -> Tensor[tuple[*Ds, P, Any, Any], TapeOfRhs, F]: ...
@overload
def conv2d(
    x: Tensor[tuple[*Ds, K, M, N], T, F],
    weight: Tensor[tuple[P, Any, Any, Any], NoneTape, F],
    bias: Joins[tuple[P], T, F] | None = None,
    *,
    stride: Ints = 1,
    padding: Ints = 0,
    dilation: Ints = 1,
    groups: int,
) -> Tensor[tuple[*Ds, P, Any, Any], T, F]: ...
@overload
def conv2d(
    x: Tensor[tuple[*Ds, K, M, N], T, F],
    weight: Tensor[tuple[P, Any, Any, Any], T, F],
    bias: Joins[tuple[P], T, F] | None = None,
    *,
    stride: Ints = 1,
    padding: Ints = 0,
    dilation: Ints = 1,
    groups: int,
) -> Tensor[tuple[*Ds, P, Any, Any], T, F]: ...
@overload
def conv2d(
    x: Tensor[tuple[*Ds, K, M, N], NoneTape, F],
    weight: Tensor[tuple[P, Any, Any, Any], TapeOfRhs, F],
    bias: Joins[tuple[P], TapeOfRhs, F] | None = None,
    *,
    stride: Ints = 1,
    padding: Ints = 0,
    dilation: Ints = 1,
    groups: int,
) -> Tensor[tuple[*Ds, P, Any, Any], TapeOfRhs, F]: ...
def conv2d(
    x: Tensor[Any, Any, Any],
    weight: Tensor[Any, Any, Any],
    bias: Tensor[Any, Any, Any] | None = None,
    *,
    stride: int | tuple[int, int] = 1,
    padding: int | tuple[int, int] = 0,
    dilation: int | tuple[int, int] = 1,
    groups: int = 1,
) -> Tensor[Any, Any, Any]:
    """Slide a kernel over images (a cross-correlation, as every such layer's).

        result[b, o, h, w] = sum over c, i, j of
            weight[o, c, i, j] * x[b, c, h * stride + i * dilation, w * stride + j * dilation]

    Shape: ``(*Ds, C, H, W)`` and a weight ``(O, C / groups, kh, kw)`` give ``(*Ds, O, H', W')``
        with ``H' = floor((H + 2 padding - dilation (kh - 1) - 1) / stride) + 1``, and so for the
        width.
    Derivative: the transposed convolution of the cotangent for `x`; for `weight` the sum of the
        cotangent times what each of its elements met.

    Args:
        x: images.
        weight: one kernel per output channel.
        bias: (O,), added to every place.
        stride: how far apart windows stand, > 0; one number, or one per axis.
        padding: how many zeros are put around, >= 0; the same.
        dilation: how far apart the elements of a window are, > 0; the same.
        groups: into how many groups the channels are parted, each convolved by itself; > 0.

    Raises:
        ShapeError: if the channels do not fit the weight, or the kernel is larger than the padded
            input.
        ArgumentValueError: if a number is outside its range, or `groups` does not divide the
            channels.
        DTypeError: if the dtypes differ or are not floating.

    Source: Dumoulin & Visin (2016), "A guide to convolution arithmetic for deep learning".

    >>> import tapetensor as tt
    >>> x = tt.from_numpy([[[1.0, 2.0], [3.0, 4.0]]], shape=(1, 2, 2))
    >>> w = tt.from_numpy([[[[1.0, 0.0], [0.0, -1.0]]]], shape=(1, 1, 2, 2))
    >>> tt.conv2d(x, w)
    Tensor([[[-3.]]], shape=(1, 1, 1), dtype=float32, NoneTape)
    """
    operands = operands_of("conv2d", x, weight, bias)
    window, count = convolution_window("conv2d", operands, 2, stride, padding, dilation, groups)
    absent = () if bias is not None else (None,)
    return apply(convolution.conv2d, operands, (*absent, window, count))
