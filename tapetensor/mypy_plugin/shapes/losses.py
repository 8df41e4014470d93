"""Losses: a prediction and its target have one shape, and nothing is broadcast.

Plain typing says so too, but in a function that is generic in its dims mypy takes a name and a
literal for one `Any`, and a long signature for a reason not to say which operand is wrong.
"""

from __future__ import annotations

from typing import Final

from tapetensor.mypy_plugin.shapes.calls import UNSURE, Answer, Call, MismatchError, Rule
from tapetensor.mypy_plugin.shapes.dims import Dims, differ, written
from tapetensor.mypy_plugin.shapes.reading import read_tensor

# Where each is defined, and what its operands are called.
PAIRS: Final = {
    **dict.fromkeys(
        [f"regression.{name}" for name in ("mse", "rmse", "mae", "huber", "smooth_l1")],
        ("prediction", "target"),
    ),
    "classification.cross_entropy_with_probabilities": ("logits", "probabilities"),
    "classification.binary_cross_entropy_with_logits": ("logits", "probabilities"),
    "classification.kl_div": ("logits", "probabilities"),
}


def pair(place: str) -> Rule:
    """Return the rule of a loss of two tensors of one shape."""
    op, names = place.rpartition(".")[2], PAIRS[place]

    def rule(call: Call) -> Answer:
        prediction, target = read_tensor(call.position(0)), read_tensor(call.position(1))
        if prediction is None or target is None:
            return UNSURE
        shapes = (prediction.shape, target.shape)
        if shapes[0] is not None and shapes[1] is not None and _differ(shapes[0], shapes[1]):
            raise MismatchError(
                f"{op}: {names[0]} of shape {written(shapes[0])} and {names[1]} of shape "
                f"{written(shapes[1])} differ; nothing is broadcast"
            )
        return UNSURE

    return rule


def cross_entropy(call: Call) -> Answer:
    """Refuse labels of another shape than the logits have without their last axis."""
    logits, labels = read_tensor(call.position(0)), read_tensor(call.position(1))
    if logits is None or labels is None or not logits.shape or labels.shape is None:
        return UNSURE
    if _differ(logits.shape[:-1], labels.shape):
        raise MismatchError(
            f"cross_entropy: logits of shape {written(logits.shape)} need labels of shape "
            f"{written(logits.shape[:-1])}, not {written(labels.shape)}"
        )
    return UNSURE


def _differ(lhs: Dims, rhs: Dims) -> bool:
    return len(lhs) == len(rhs) and any(map(differ, lhs, rhs))
