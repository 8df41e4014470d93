"""Checks of the prediction and the target of every loss."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Never

import numpy as np

from tapetensor.arguments import as_int, check_choice
from tapetensor.arrays.array import Array
from tapetensor.arrays.stand_ins import plain, run_check
from tapetensor.errors import (
    ArgumentValueError,
    DTypeError,
    ShapeError,
    TapeTensorError,
    cut_traceback,
    refusal,
)
from tapetensor.kernels.losses import Reduction
from tapetensor.rules import layers as rules
from tapetensor.rules.dims import sized
from tapetensor.tensor.base import (
    TensorBase,
    check_floating,
    check_plain,
    check_same_dtype,
    check_tensor,
)
from tapetensor.tensor.operands import check_labels
from tapetensor.tensor.tensor import Tensor


def check_alike(op: str, rank: int = 0, /, **operands: TensorBase[Any, Any, Any]) -> None:
    """Refuse operands that are not tensors of one shape, with elements, and one floating dtype."""
    try:
        for name, operand in operands.items():
            check_tensor(op, name, operand)
        given = tuple(operands.values())
        check_floating(op, given[0])
        first = given[0]._array
        shape = first.shape
        for other in given:
            if other._array.shape != shape:
                _refuse_unlike(op, operands)
        if first.size == 0 or len(shape) < rank:
            cure = (
                "give (*Ds, N), with at least one row and one class" if rank else "give an element"
            )
            raise ShapeError(f"{op}: shape {shape} leaves nothing to take the mean of; {cure}")
        check_same_dtype(op, given)
    except TapeTensorError as error:
        cut_traceback(error)
        raise


def _refuse_unlike(op: str, operands: Mapping[str, TensorBase[Any, Any, Any]]) -> Never:
    shapes = {name: sized(operand._array.shape) for name, operand in operands.items()}
    raise refusal(lambda: rules.check_alike(op, shapes))


def check_signs(
    op: str, signs: TensorBase[Any, Any, Any], /, **operands: TensorBase[Any, Any, Any]
) -> None:
    """Refuse signs that are not plain integers, 1 or -1, one for each element of the operands."""
    check_alike(op, **operands)
    (name, operand), *_ = operands.items()
    check_target(op, operand, signs, "signs", name)
    if signs._array.shape != operand._array.shape:
        _refuse_unlike(op, {name: operand, "signs": signs})
    check_each_sign(op, signs)


def check_each_sign(op: str, signs: TensorBase[Any, Any, Any]) -> None:
    """Refuse signs that are neither 1 nor -1, or of a dtype that has no -1."""
    if signs._array.dtype.kind != "i":
        raise DTypeError(f"{op}: signs must be signed integers, got {signs._array.dtype}")
    run_check(_refuse_other_signs, signs._array, op)


def check_between(
    op: str, tensor: TensorBase[Any, Any, Any], what: str, low: float, high: float, cure: str = ""
) -> None:
    """Refuse elements that are not between two numbers; NaN is none of them."""
    run_check(_refuse_outside, tensor._array, op, what, low, high, cure)


def _refuse_other_signs(values: Array, op: str) -> None:
    if ((values != 1) & (values != -1)).any():
        found = ", ".join(map(str, np.unique(values).tolist()[:5]))
        raise ArgumentValueError(f"{op}: a sign must be 1 or -1, found are {found}")


def _refuse_outside(values: Array, op: str, what: str, low: float, high: float, cure: str) -> None:
    found = plain(values)
    lowest, highest = found.min(), found.max()
    if not low <= lowest <= highest <= high:
        limits = f"in [{low:g}, {high:g}]" if math.isfinite(high) else f">= {low:g}"
        raise ArgumentValueError(
            f"{op}: {what} must be {limits}, found {lowest:g} to {highest:g}{cure}"
        )


def check_target(
    op: str,
    prediction: TensorBase[Any, Any, Any],
    target: TensorBase[Any, Any, Any],
    target_name: str,
    prediction_name: str = "logits",
) -> None:
    """Refuse a target that is not a plain tensor, and a prediction that is not a floating one."""
    check_tensor(op, prediction_name, prediction)
    check_floating(op, prediction)
    cure = f"no gradient flows to it: write {target_name}.detach()"
    check_plain(op, target_name, target, cure)


def check_labels_of(
    op: str,
    scores: TensorBase[Any, Any, Any],
    labels: TensorBase[Any, Any, Any],
    scores_name: str,
    other: str,
    ignored: int | None = None,
    axis: object = -1,
) -> int:
    """Refuse labels that are not a class each for the rows of the scores; name the other loss.

    A label that is `ignored` need be no class. Returns the axis of the classes, counted from 0.
    """
    try:
        check_target(op, scores, labels, "labels", scores_name)
        shape = scores._array.shape
        place = len(shape) - 1
        if axis != -1:
            place = as_int(op, "axis", axis)
            if place != 1:
                raise ArgumentValueError(f"{op}: axis must be -1 or 1, got {axis!r}")
        if not (
            0 <= place < len(shape) and labels._array.shape == shape[:place] + shape[place + 1 :]
        ):
            of_scores, of_labels = sized(shape), sized(labels._array.shape)
            raise refusal(lambda: rules.check_labels(op, scores_name, of_scores, of_labels, place))
        if scores._array.size == 0:
            raise ShapeError(
                f"{op}: {scores_name} of shape {shape} leave nothing to take the mean of; give at "
                "least one row and one class"
            )
        cure = f"for targets that are probabilities use {other}"
        check_labels(op, labels, shape[place], cure, ignored=ignored)
        return place
    except TapeTensorError as error:
        cut_traceback(error)
        raise


def classes_last(scores: Tensor[Any, Any, Any], place: int) -> Tensor[Any, Any, Any]:
    """Return scores with the axis of the classes at the end."""
    last = scores._array.ndim - 1
    if place == last:
        return scores
    axes: Any = (*range(place), *range(place + 1, last + 1), place)
    turned: Tensor[Any, Any, Any] = scores.permute_dims(axes)
    return turned


def as_reduction(op: str, reduction: object) -> Reduction:
    """Return how the errors of a loss are made one."""
    if reduction != "mean":
        check_choice(op, "reduction", reduction, ("mean", "sum", "none"))
    how: Any = reduction
    return how  # type: ignore[no-any-return]  # one of the three


def check_weights(
    op: str,
    name: str,
    weights: TensorBase[Any, Any, Any],
    scores: TensorBase[Any, Any, Any],
    classes: tuple[int, ...],
) -> None:
    """Refuse weights that are not plain, of the dtype of the scores, and one for each class."""
    check_plain(op, name, weights, f"no gradient flows to it: write {name}.detach()")
    check_same_dtype(op, (scores, weights))
    shapes = [classes, ()] if name == "pos_weight" else [classes]
    if weights._array.shape not in shapes:
        raise ShapeError(
            f"{op}: {name} must have shape {' or '.join(map(str, shapes))}, "
            f"got {weights._array.shape}"
        )
