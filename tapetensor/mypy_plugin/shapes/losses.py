"""Losses: a prediction and its target have one shape and one dtype, and nothing is broadcast.

Plain typing says so too, but in a function that is generic in its dims mypy takes a name and a
literal for one `Any`, and elsewhere says no more than that it cannot infer a type parameter.
"""

from __future__ import annotations

from typing import Final

from tapetensor.mypy_plugin.shapes.calls import UNSURE, Answer, Call, MismatchError, Rule
from tapetensor.mypy_plugin.shapes.dims import Dims, differ, written
from tapetensor.mypy_plugin.shapes.dtypes import check_floating, check_integers, check_same
from tapetensor.mypy_plugin.shapes.reading import Operand, read_tensor

# Where each is defined, and what its operands are called.
PAIRS: Final = {
    **dict.fromkeys(
        [f"regression.{name}" for name in ("mse", "rmse", "mae", "huber", "smooth_l1")],
        ("prediction", "target"),
    ),
    "classification.cross_entropy_with_probabilities": ("logits", "probabilities"),
    "classification.binary_cross_entropy": ("predictions", "probabilities"),
    "classification.binary_cross_entropy_with_logits": ("logits", "probabilities"),
    "classification.kl_div": ("logits", "probabilities"),
}
# The losses of labels: what the scores are called, and what takes probabilities in their place.
LABELLED: Final = {
    "classification.cross_entropy": ("logits", "cross_entropy_with_probabilities"),
    "classification.nll": ("log_probabilities", "kl_div"),
}


def pair(place: str) -> Rule:
    """Return the rule of a loss of two tensors of one shape."""
    op, names = place.rpartition(".")[2], PAIRS[place]

    def rule(call: Call) -> Answer:
        operands = _operands(call, 2)
        if operands is None:
            return UNSURE
        shapes = [one.shape for one in operands]
        if _differ(*shapes):
            raise MismatchError(
                f"{op}: {names[0]} of shape {_shape(shapes[0])} and {names[1]} of shape "
                f"{_shape(shapes[1])} differ; nothing is broadcast"
            )
        check_floating(op, operands[0])
        check_same(op, operands)
        return UNSURE

    return rule


def labelled(place: str) -> Rule:
    """Return the rule of a loss of scores and the labels of the right classes."""
    op, (name, other) = place.rpartition(".")[2], LABELLED[place]

    def rule(call: Call) -> Answer:
        operands = _operands(call, 2)
        if operands is None:
            return UNSURE
        scores, labels = operands
        if scores.shape == ():
            raise MismatchError(f"{op}: {name} of shape () have no axis of classes")
        wanted = None if scores.shape is None else scores.shape[:-1]
        if _differ(wanted, labels.shape):
            raise MismatchError(
                f"{op}: {name} of shape {_shape(scores.shape)} need labels of shape "
                f"{_shape(wanted)}, not {_shape(labels.shape)}"
            )
        check_floating(op, scores)
        check_integers(op, "labels", labels, f"; for probabilities use {other}")
        return UNSURE

    return rule


def cosine_embedding(call: Call) -> Answer:
    """Refuse vectors that do not go in pairs, and signs that are not one for each pair."""
    operands = _operands(call, 3)
    if operands is None:
        return UNSURE
    lhs, rhs, signs = operands
    wanted = lhs.shape[:-1] if lhs.shape else None
    if lhs.shape == () or _differ(lhs.shape, rhs.shape) or _differ(wanted, signs.shape):
        raise MismatchError(
            f"cosine_embedding: lhs of shape {_shape(lhs.shape)}, rhs of shape "
            f"{_shape(rhs.shape)} and signs of shape {_shape(signs.shape)} do not fit; "
            "(*Ds, N) and (*Ds, N) go with (*Ds)"
        )
    check_floating("cosine_embedding", lhs)
    check_same("cosine_embedding", [lhs, rhs])
    check_integers("cosine_embedding", "signs", signs)
    return UNSURE


def _operands(call: Call, count: int) -> list[Operand] | None:
    """Return the tensors of a loss; None if one is none."""
    tensors = [read_tensor(call.position(index)) for index in range(count)]
    known = [one for one in tensors if one is not None]
    return known if len(known) == count else None


def _differ(lhs: Dims | None, rhs: Dims | None) -> bool:
    if lhs is None or rhs is None:
        return False
    return len(lhs) != len(rhs) or any(map(differ, lhs, rhs))


def _shape(shape: Dims | None) -> str:
    return "(...)" if shape is None else written(shape)
