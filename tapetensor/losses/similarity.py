"""Losses of pairs of vectors that should be alike, or not."""

from __future__ import annotations

from typing import Any, Literal, overload

from tapetensor.arguments import as_number
from tapetensor.errors import ShapeError
from tapetensor.kernels import losses
from tapetensor.losses.checks import as_reduction, check_each_sign, check_target
from tapetensor.rules.dims import sized
from tapetensor.rules.losses import check_signed_pairs
from tapetensor.rules.refusals import refusal
from tapetensor.tape import NoneTape, OwnedTape
from tapetensor.tensor.apply import apply
from tapetensor.tensor.base import check_same_dtype, check_tensor
from tapetensor.tensor.indexing import I
from tapetensor.tensor.tensor import Tensor, Tensor0D
from tapetensor.typing import Ds, F, N, T


@overload
def cosine_embedding(
    lhs: Tensor[tuple[*Ds, N], T, F],
    rhs: Tensor[tuple[*Ds, N], NoneTape, F],
    signs: Tensor[tuple[*Ds], NoneTape, I],
    margin: float = 0.0,
    *,
    reduction: Literal["mean", "sum"] = "mean",
) -> Tensor0D[T, F]: ...
@overload
def cosine_embedding(
    lhs: Tensor[tuple[*Ds, N], T, F],
    rhs: Tensor[tuple[*Ds, N], OwnedTape, F],
    signs: Tensor[tuple[*Ds], NoneTape, I],
    margin: float = 0.0,
    *,
    reduction: Literal["mean", "sum"] = "mean",
) -> Tensor0D[OwnedTape, F]: ...
@overload
def cosine_embedding(
    lhs: Tensor[tuple[*Ds, N], T, F],
    rhs: Tensor[tuple[*Ds, N], NoneTape, F],
    signs: Tensor[tuple[*Ds], NoneTape, I],
    margin: float = 0.0,
    *,
    reduction: Literal["none"],
) -> Tensor[tuple[*Ds], T, F]: ...
@overload
def cosine_embedding(
    lhs: Tensor[tuple[*Ds, N], T, F],
    rhs: Tensor[tuple[*Ds, N], OwnedTape, F],
    signs: Tensor[tuple[*Ds], NoneTape, I],
    margin: float = 0.0,
    *,
    reduction: Literal["none"],
) -> Tensor[tuple[*Ds], OwnedTape, F]: ...
def cosine_embedding(
    lhs: Tensor[Any, Any, Any],
    rhs: Tensor[Any, Any, Any],
    signs: Tensor[Any, Any, Any],
    margin: float = 0.0,
    *,
    reduction: Literal["mean", "sum", "none"] = "mean",
) -> Tensor[Any, Any, Any]:
    """Return the cosine embedding loss of pairs of vectors.

        mean(1 - cos(lhs, rhs) where sign == 1 else max(0, cos(lhs, rhs) - margin)),
        cos(x, y) = sum(x * y) / sqrt((sum(x**2) + 1e-12) * (sum(y**2) + 1e-12))

    Shape: ``(*Ds, N), (*Ds, N), (*Ds) -> ()``; ``(*Ds)`` with ``reduction="none"``.
    Derivative: that of the cosine, ``y / sqrt(|x|**2 * |y|**2) - cos * x / |x|**2`` for `lhs`,
        times -1 or 1 over the number of pairs; 0 where a cosine is below the margin.

    Args:
        lhs: one vector of each pair, along the last axis.
        rhs: the other, of the same shape and dtype.
        signs: 1 for a pair that should be alike and -1 for one that should not, plain integers.
        margin: the cosine that the latter may have, in [-1, 1].
        reduction: "mean", "sum", or "none" for the error of each pair.

    Raises:
        ShapeError: if the shapes do not fit, or there are no pairs.
        DTypeError: if the dtypes differ or are not floating, or `signs` are not integers.
        UntracedTensorError: if `signs` own a tape.
        ArgumentValueError: if a sign is neither 1 nor -1, `margin` is outside its range, or
            `reduction` is not one of the three.
        ArgumentTypeError: if an argument is of the wrong kind.

    >>> import numpy as np
    >>> import tapetensor as tt
    >>> x = tt.from_numpy([[1.0, 0.0], [1.0, 0.0]], shape=(2, 2))
    >>> y = tt.from_numpy([[0.0, 2.0], [3.0, 0.0]], shape=(2, 2))
    >>> cosine_embedding(x, y, tt.from_numpy([1, -1], shape=(2,), dtype=np.int64))
    Tensor(1., shape=(), dtype=float32, NoneTape)
    """
    op = "cosine_embedding"
    bound = as_number(op, "margin", margin, at_least=-1, at_most=1)
    options = bound, as_reduction(op, reduction)
    check_target(op, lhs, signs, "signs", "lhs")
    check_tensor(op, "rhs", rhs)
    shapes = lhs._array.shape, rhs._array.shape, signs._array.shape
    if not shapes[0] or shapes != (shapes[0], shapes[0], shapes[0][:-1]):
        dims = list(map(sized, shapes))
        raise refusal(lambda: check_signed_pairs(op, *dims))
    if lhs.size == 0:
        raise ShapeError(f"{op}: shape {shapes[0]} leaves nothing to take the mean of")
    check_same_dtype(op, (lhs, rhs))
    check_each_sign(op, signs)
    return apply(losses.cosine_embedding, (lhs, rhs, signs), options, keeps_dtype=False)
