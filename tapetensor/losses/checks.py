"""What every loss asks of a prediction and its target."""

from __future__ import annotations

from typing import Any

from tapetensor.arguments import check_choice
from tapetensor.errors import ShapeError
from tapetensor.kernels.losses import Reduction
from tapetensor.tensor.base import (
    TensorBase,
    check_floating,
    check_plain,
    check_same_dtype,
    check_tensor,
)
from tapetensor.tensor.labels import check_labels


def check_pair(
    op: str,
    prediction: TensorBase[Any, Any, Any],
    target: TensorBase[Any, Any, Any],
    prediction_name: str = "prediction",
    target_name: str = "target",
    rank: int = 0,
) -> None:
    """Refuse a target that is not a plain value of the shape and dtype of the prediction.

    Raises:
        ShapeError: if the shapes differ, or there is nothing to take the mean of.
        DTypeError: if the dtypes differ or are not floating.
        UntracedTensorError: if the target owns a tape.
    """
    check_target(op, prediction, target, target_name, prediction_name)
    shape = prediction.array.shape
    if target.array.shape != shape:
        raise ShapeError(
            f"{op}: {prediction_name} of shape {shape} and {target_name} of shape "
            f"{target.array.shape} differ; nothing is broadcast, reshape or broadcast_to one"
        )
    if prediction.array.size == 0 or len(shape) < rank:
        raise ShapeError(
            f"{op}: shape {shape} leaves nothing to take the mean of; "
            + ("give (*Ds, N), with at least one row and one class" if rank else "give an element")
        )
    check_same_dtype(op, (prediction, target))


def check_target(
    op: str,
    prediction: TensorBase[Any, Any, Any],
    target: TensorBase[Any, Any, Any],
    target_name: str,
    prediction_name: str = "logits",
) -> None:
    """Refuse a target that is not a plain tensor, and a prediction that is not a floating one.

    Raises:
        ArgumentTypeError: if one is not a tensor.
        DTypeError: if the prediction is not floating.
        UntracedTensorError: if the target owns a tape.
    """
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
) -> None:
    """Refuse labels that are not a class each for the rows of the scores; name the other loss.

    A label that is `ignored` need be no class.

    Raises:
        ShapeError: if they have not the leading shape of the scores, or there are none.
        DTypeError: if the scores are not floating or the labels not integers.
        AxisError: if one is not a class.
        UntracedTensorError: if they own a tape.
    """
    check_target(op, scores, labels, "labels", scores_name)
    shape = scores.array.shape
    if not shape or labels.array.shape != shape[:-1] or scores.array.size == 0:
        raise ShapeError(
            f"{op}: {scores_name} of shape {shape} and labels of shape {labels.array.shape} "
            f"do not fit; {scores_name} (*Ds, N) go with labels (*Ds), and there is at least one"
        )
    cure = f"for targets that are probabilities use {other}"
    check_labels(op, labels, shape[-1], cure, ignored=ignored)


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
    """Refuse weights that are not plain, of the dtype of the scores, and one for each class.

    Raises:
        ShapeError: if they have another shape; a `pos_weight` may be a 0-d tensor.
        DTypeError: if the dtypes differ.
        UntracedTensorError: if they own a tape.
    """
    check_plain(op, name, weights, f"no gradient flows to it: write {name}.detach()")
    check_same_dtype(op, (scores, weights))
    shapes = [classes, ()] if name == "pos_weight" else [classes]
    if weights.array.shape not in shapes:
        raise ShapeError(
            f"{op}: {name} must have shape {' or '.join(map(str, shapes))}, "
            f"got {weights.array.shape}"
        )
