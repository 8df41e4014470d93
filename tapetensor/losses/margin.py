"""Losses that ask for a distance, and are content beyond it, or for vectors that are alike."""

from __future__ import annotations

from typing import Any, Literal, overload

from tapetensor.arguments import as_int, as_number
from tapetensor.errors import ArgumentValueError, ShapeError, refusal
from tapetensor.kernels import losses
from tapetensor.losses.checks import (
    as_reduction,
    check_alike,
    check_each_sign,
    check_labels_of,
    check_signs,
    check_target,
)
from tapetensor.rules.dims import sized
from tapetensor.rules.layers import check_signed_pairs
from tapetensor.tape import NoneTape, OwnedTape
from tapetensor.tensor.apply import apply
from tapetensor.tensor.base import check_same_dtype, check_tensor
from tapetensor.tensor.indexing import I
from tapetensor.tensor.tensor import Joins, Tensor, Tensor0D
from tapetensor.typing import Ds, F, N, S, T


@overload
def hinge_embedding(
    distances: Tensor[S, T, F],
    signs: Tensor[S, NoneTape, I],
    margin: float = 1.0,
    *,
    reduction: Literal["mean", "sum"] = "mean",
) -> Tensor0D[T, F]: ...
@overload
def hinge_embedding(
    distances: Tensor[S, T, F],
    signs: Tensor[S, NoneTape, I],
    margin: float = 1.0,
    *,
    reduction: Literal["none"],
) -> Tensor[S, T, F]: ...
def hinge_embedding(
    distances: Tensor[Any, Any, Any],
    signs: Tensor[Any, Any, Any],
    margin: float = 1.0,
    *,
    reduction: Literal["mean", "sum", "none"] = "mean",
) -> Tensor[Any, Any, Any]:
    """Return the hinge loss of distances of pairs that are alike, or are not.

        mean(x where sign == 1 else max(0, margin - x))

    Shape: ``S, S -> ()``; ``S`` with ``reduction="none"``.
    Derivative: 1 where the sign is 1, -1 where a distance is at most the margin, else 0.

    Args:
        distances: how far the two of each pair are apart.
        signs: 1 for a pair that should be alike and -1 for one that should not, plain integers.
        margin: how far apart is far enough.
        reduction: "mean", "sum", or "none" for the error of each pair.

    Raises:
        ShapeError: if the shapes differ, or there are no elements.
        DTypeError: if `distances` are not floating, or `signs` no signed integers.
        UntracedTensorError: if `signs` own a tape.
        ArgumentValueError: if a sign is neither 1 nor -1, or `reduction` is not one of the three.
        ArgumentTypeError: if an argument is of the wrong kind.

    Source: Hadsell, Chopra & LeCun (2006), "Dimensionality reduction by learning an invariant
        mapping", without the squares, as PyTorch's.

    >>> import numpy as np
    >>> import tapetensor as tt
    >>> distances = tt.from_numpy([0.5, 0.25], shape=(2,))
    >>> hinge_embedding(distances, tt.from_numpy([1, -1], shape=(2,), dtype=np.int64))
    Tensor(0.625, shape=(), dtype=float32, NoneTape)
    """
    op = "hinge_embedding"
    check_signs(op, signs, distances=distances)
    options = (as_number(op, "margin", margin), as_reduction(op, reduction))
    return apply(losses.hinge_embedding, (distances, signs), options, keeps_dtype=False)


@overload
def soft_margin(
    prediction: Tensor[S, T, F],
    signs: Tensor[S, NoneTape, I],
    *,
    reduction: Literal["mean", "sum"] = "mean",
) -> Tensor0D[T, F]: ...
@overload
def soft_margin(
    prediction: Tensor[S, T, F],
    signs: Tensor[S, NoneTape, I],
    *,
    reduction: Literal["none"],
) -> Tensor[S, T, F]: ...
def soft_margin(
    prediction: Tensor[Any, Any, Any],
    signs: Tensor[Any, Any, Any],
    *,
    reduction: Literal["mean", "sum", "none"] = "mean",
) -> Tensor[Any, Any, Any]:
    """Return the logistic loss of scores of yes and no.

        mean(log(1 + exp(-sign * x)))

    Shape: ``S, S -> ()``; ``S`` with ``reduction="none"``.
    Derivative: ``-sign * sigmoid(-sign * x) / n`` for `n` elements.

    Args:
        prediction: scores in natural-log units; finite at any size.
        signs: 1 for yes and -1 for no, plain integers.
        reduction: "mean", "sum", or "none" for the error of each element.

    Raises:
        ShapeError: if the shapes differ, or there are no elements.
        DTypeError: if `prediction` is not floating, or `signs` no signed integers.
        UntracedTensorError: if `signs` own a tape.
        ArgumentValueError: if a sign is neither 1 nor -1, or `reduction` is not one of the three.

    Source: Hastie, Tibshirani & Friedman (2009), "The elements of statistical learning", section
        10.6, the binomial deviance.

    >>> import numpy as np
    >>> import tapetensor as tt
    >>> soft_margin(tt.zeros((2,)), tt.from_numpy(np.array([1, -1]), (2,)))
    Tensor(0.6931472, shape=(), dtype=float32, NoneTape)
    """
    check_signs("soft_margin", signs, prediction=prediction)
    options = (as_reduction("soft_margin", reduction),)
    return apply(losses.soft_margin, (prediction, signs), options, keeps_dtype=False)


@overload
def margin_ranking(
    lhs: Tensor[S, T, F],
    rhs: Joins[S, T, F],
    signs: Tensor[S, NoneTape, I],
    margin: float = 0.0,
    *,
    reduction: Literal["mean", "sum"] = "mean",
) -> Tensor0D[T, F]: ...
@overload
def margin_ranking(
    lhs: Tensor[S, T, F],
    rhs: Joins[S, T, F],
    signs: Tensor[S, NoneTape, I],
    margin: float = 0.0,
    *,
    reduction: Literal["none"],
) -> Tensor[S, T, F]: ...
def margin_ranking(
    lhs: Tensor[Any, Any, Any],
    rhs: Tensor[Any, Any, Any],
    signs: Tensor[Any, Any, Any],
    margin: float = 0.0,
    *,
    reduction: Literal["mean", "sum", "none"] = "mean",
) -> Tensor[Any, Any, Any]:
    """Return the loss of pairs of scores that should be in an order.

        mean(max(0, -sign * (lhs - rhs) + margin))

    Shape: ``S, S, S -> ()``; ``S`` with ``reduction="none"``.
    Derivative: ``-sign / n`` for `lhs` and ``sign / n`` for `rhs` where the difference does
        not exceed the margin, also where it is just that, for `n` pairs; else 0.

    Args:
        lhs: one score of each pair.
        rhs: the other; a plain value, or one that owns a tape, too.
        signs: 1 where `lhs` should be larger and -1 where `rhs` should, plain integers.
        margin: by how much.
        reduction: "mean", "sum", or "none" for the error of each pair.

    Raises:
        ShapeError: if the shapes differ, or there are no elements.
        DTypeError: if the dtypes differ or are not floating, or `signs` are no signed integers.
        UntracedTensorError: if `signs` own a tape.
        ArgumentValueError: if a sign is neither 1 nor -1, or `reduction` is not one of the three.
        ArgumentTypeError: if an argument is of the wrong kind.

    Source: Herbrich, Graepel & Obermayer (2000), "Large margin rank boundaries for ordinal
        regression".

    >>> import numpy as np
    >>> import tapetensor as tt
    >>> margin_ranking(tt.full((1,), 2.0), tt.full((1,), 5.0), tt.ones((1,), np.int64))
    Tensor(3., shape=(), dtype=float32, NoneTape)
    """
    op = "margin_ranking"
    check_signs(op, signs, lhs=lhs, rhs=rhs)
    options = (as_number(op, "margin", margin), as_reduction(op, reduction))
    return apply(losses.margin_ranking, (lhs, rhs, signs), options, keeps_dtype=False)


@overload
def multi_margin(
    scores: Tensor[tuple[*Ds, N], T, F],
    labels: Tensor[tuple[*Ds], NoneTape, I],
    margin: float = 1.0,
    *,
    power: Literal[1, 2] = 1,
    reduction: Literal["mean", "sum"] = "mean",
) -> Tensor0D[T, F]: ...
@overload
def multi_margin(
    scores: Tensor[tuple[*Ds, N], T, F],
    labels: Tensor[tuple[*Ds], NoneTape, I],
    margin: float = 1.0,
    *,
    power: Literal[1, 2] = 1,
    reduction: Literal["none"],
) -> Tensor[tuple[*Ds], T, F]: ...
def multi_margin(
    scores: Tensor[Any, Any, Any],
    labels: Tensor[Any, Any, Any],
    margin: float = 1.0,
    *,
    power: Literal[1, 2] = 1,
    reduction: Literal["mean", "sum", "none"] = "mean",
) -> Tensor[Any, Any, Any]:
    """Return the hinge loss of many classes.

        mean over rows of sum(max(0, margin - x[label] + x[i])**power for i != label) / N

    Shape: ``(*Ds, N), (*Ds) -> ()``; ``(*Ds)`` with ``reduction="none"``.
    Derivative: that of the power, where the margin is not kept; 0 where it is, or is just kept.

    Args:
        scores: one per class along the last axis.
        labels: the right classes, plain integers from 0 to ``N - 1``.
        margin: by how much the right score should exceed each other.
        power: 1, or 2 for the square of the missing margin.
        reduction: "mean", "sum", or "none" for the error of each row.

    Raises:
        ShapeError: if `labels` do not have the leading shape of `scores`, or there are none.
        DTypeError: if `scores` are not floating or `labels` not integers.
        AxisError: if a label is not a class.
        UntracedTensorError: if `labels` own a tape.
        ArgumentValueError: if `power` is neither 1 nor 2, or `reduction` none of the three.
        ArgumentTypeError: if an argument is of the wrong kind.

    Source: Weston & Watkins (1999), "Support vector machines for multi-class pattern recognition".

    >>> import numpy as np
    >>> import tapetensor as tt
    >>> scores = tt.from_numpy([[2.0, 1.5]], shape=(1, 2))
    >>> multi_margin(scores, tt.zeros((1,), np.int64))
    Tensor(0.25, shape=(), dtype=float32, NoneTape)
    """
    op = "multi_margin"
    check_labels_of(op, scores, labels, "scores", "cross_entropy_with_probabilities")
    exponent = as_int(op, "power", power)
    if exponent not in (1, 2):
        raise ArgumentValueError(f"{op}: power must be 1 or 2, got {power!r}")
    options = (as_number(op, "margin", margin), exponent, as_reduction(op, reduction))
    return apply(losses.multi_margin, (scores, labels), options, keeps_dtype=False)


@overload
def triplet_margin(
    anchor: Tensor[tuple[*Ds, N], T, F],
    positive: Joins[tuple[*Ds, N], T, F],
    negative: Joins[tuple[*Ds, N], T, F],
    margin: float = 1.0,
    *,
    reduction: Literal["mean", "sum"] = "mean",
) -> Tensor0D[T, F]: ...
@overload
def triplet_margin(
    anchor: Tensor[tuple[*Ds, N], T, F],
    positive: Joins[tuple[*Ds, N], T, F],
    negative: Joins[tuple[*Ds, N], T, F],
    margin: float = 1.0,
    *,
    reduction: Literal["none"],
) -> Tensor[tuple[*Ds], T, F]: ...
def triplet_margin(
    anchor: Tensor[Any, Any, Any],
    positive: Tensor[Any, Any, Any],
    negative: Tensor[Any, Any, Any],
    margin: float = 1.0,
    *,
    reduction: Literal["mean", "sum", "none"] = "mean",
) -> Tensor[Any, Any, Any]:
    """Return the loss of vectors that should be nearer to one than to another.

        mean(max(0, |anchor - positive| - |anchor - negative| + margin)),
        |d| = sqrt(sum((d + 1e-6)**2))

    Shape: ``(*Ds, N), (*Ds, N), (*Ds, N) -> ()``; ``(*Ds)`` with ``reduction="none"``.
    Derivative: for `positive` ``-(anchor - positive) / |anchor - positive| / n``, for `negative`
        ``(anchor - negative) / |anchor - negative| / n``, for `anchor` minus both, where the
        distances of one of the `n` triplets do not differ by more than the margin; else 0.

    Args:
        anchor: a vector of each triplet, along the last axis.
        positive: the tensor that it should be near to, with or without a tape.
        negative: the tensor that it should be far from; likewise.
        margin: by how much.
        reduction: "mean", "sum", or "none" for the error of each triplet.

    Raises:
        ShapeError: if the shapes differ, or there are no triplets.
        DTypeError: if the dtypes differ or are not floating.
        ArgumentValueError: if `reduction` is not one of the three.
        ArgumentTypeError: if an argument is of the wrong kind.

    Source: Balntas et al. (2016), "Learning local feature descriptors with triplets and shallow
        convolutional neural networks".

    >>> import tapetensor as tt
    >>> near, far = tt.full((1, 2), 1.0), tt.full((1, 2), 2.0)
    >>> print(f"{triplet_margin(tt.zeros((1, 2)), far, near):.3f}")
    2.414
    """
    op = "triplet_margin"
    check_alike(op, 1, anchor=anchor, positive=positive, negative=negative)
    options = (as_number(op, "margin", margin), as_reduction(op, reduction))
    return apply(losses.triplet_margin, (anchor, positive, negative), options)


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
            `reduction` is none of the three.
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
