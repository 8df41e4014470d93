"""Losses: a prediction and its target have one shape and one dtype, and nothing is broadcast.

Plain typing says so too, but in a function that is generic in its dims mypy takes a name and a
literal for one `Any`, and elsewhere says no more than that it cannot infer a type parameter.
"""

from __future__ import annotations

from typing import Final

from tapetensor.mypy_plugin.shapes.axes import given_axis
from tapetensor.mypy_plugin.shapes.calls import Answer, Call
from tapetensor.mypy_plugin.shapes.dtypes import check_floating, check_integers, check_same
from tapetensor.rules import losses as rules

# The names of the operands, by the place where a loss is defined.
PAIRS: Final = {
    **dict.fromkeys(
        [f"regression.{name}" for name in ("mse", "rmse", "mae", "huber", "smooth_l1", "quantile")],
        ("prediction", "target"),
    ),
    "classification.cross_entropy_with_probabilities": ("logits", "probabilities"),
    "classification.binary_cross_entropy": ("predictions", "probabilities"),
    "classification.binary_cross_entropy_with_logits": ("logits", "probabilities"),
    "classification.kl_div": ("logits", "probabilities"),
    "likelihood.poisson_nll": ("log_rates", "counts"),
}
# Operands of one shape, and whether there is a sign for each of their elements.
ALIKE: Final = {
    "margin.hinge_embedding": (("distances",), True),
    "margin.soft_margin": (("prediction",), True),
    "margin.margin_ranking": (("lhs", "rhs"), True),
    "margin.triplet_margin": (("anchor", "positive", "negative"), False),
    "likelihood.gaussian_nll": (("prediction", "target", "variance"), False),
}
# The losses of labels: what the scores are called, and what takes probabilities in their place.
LABELLED: Final = {
    "classification.cross_entropy": ("logits", "cross_entropy_with_probabilities"),
    "classification.nll": ("log_probabilities", "kl_div"),
    "margin.multi_margin": ("scores", "cross_entropy_with_probabilities"),
}


def pair(call: Call, names: tuple[str, str]) -> Answer:
    """Refuse two tensors that are not of one shape."""
    lhs, rhs = call.operand(0), call.operand(1)
    # What has any other number of axes, or a size that is computed, has no type in common with it.
    unlike = (lhs.shape is None) != (rhs.shape is None) and not (lhs.fits_all or rhs.fits_all)
    if unlike:
        raise rules.differing(call.op, names, (lhs.shape, rhs.shape))
    rules.check_alike(call.op, dict(zip(names, (lhs.shape, rhs.shape), strict=True)))
    check_floating(call.op, lhs)
    check_same(call.op, [lhs, rhs])
    return None


def labelled(call: Call, name: str, other: str) -> Answer:
    """Refuse scores and labels of the right classes that do not go together."""
    scores, labels = call.operand(0), call.operand(1)
    axis = -1 if scores.shape is None else given_axis(call, -1)
    rules.check_labels(call.op, name, scores.shape, labels.shape, axis)
    check_floating(call.op, scores)
    check_integers(call.op, "labels", labels, f"; for targets that are probabilities use {other}")
    return None


def alike(call: Call, names: tuple[str, ...], *, has_signs: bool) -> Answer:
    """Refuse operands that are not of one shape, and signs that are not one for each element."""
    operands = [call.operand(name) for name in names]
    signs = [call.operand("signs")] if has_signs else []
    shapes = [one.shape for one in (*operands, *signs)]
    rules.check_alike(call.op, dict(zip((*names, "signs"), shapes, strict=False)))
    check_floating(call.op, operands[0])
    check_same(call.op, operands)
    if signs:
        check_integers(call.op, "signs", signs[0], kind="signed integers")
    return None


def cosine_embedding(call: Call) -> Answer:
    """Refuse vectors that do not go in pairs, and signs that are not one for each pair."""
    lhs, rhs, signs = [call.operand(index) for index in range(3)]
    rules.check_signed_pairs(call.op, lhs.shape, rhs.shape, signs.shape)
    check_floating(call.op, lhs)
    check_same(call.op, [lhs, rhs])
    check_integers(call.op, "signs", signs, kind="signed integers")
    return None
