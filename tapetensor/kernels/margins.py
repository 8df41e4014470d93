"""Losses that ask for a distance, and are content beyond it: values in, errors and pullbacks out.

Where a margin is just kept the derivative is that of what lacks, so that a model whose scores begin
equal learns; of `multi_margin` it is 0. So PyTorch has it.
"""

from __future__ import annotations

import numpy as np

from tapetensor.arrays.array import Array
from tapetensor.arrays.libraries import like
from tapetensor.kernels.numerics.masks import where_labels_are
from tapetensor.kernels.numerics.reduction import Reduction, over_rows, reduced
from tapetensor.kernels.numerics.sums import row_products, row_sums
from tapetensor.tape import Pullbacks


def hinge_embedding(
    distances: Array, signs: Array, margin: float, reduction: Reduction
) -> tuple[Array, Pullbacks]:
    """A distance of sign 1 itself, and of sign -1 what it lacks of the margin."""
    is_alike = like(signs, distances) > 0
    is_near = distances <= margin
    terms = np.where(is_alike, distances, np.where(is_near, margin - distances, 0))
    return reduced(
        terms, reduction, lambda g: np.where(is_alike, g, np.where(is_near, -g, 0)), None
    )


def soft_margin(prediction: Array, signs: Array, reduction: Reduction) -> tuple[Array, Pullbacks]:
    """``log(1 + exp(-sign * prediction))``, in a form that never overflows."""
    is_yes = like(signs, prediction) > 0
    wrong = np.where(is_yes, -prediction, prediction)
    decay = np.exp(-np.absolute(wrong))

    def slope(g: Array) -> Array:
        sigmoid = np.exp(np.minimum(wrong, 0)) / (1 + decay)
        cotangent: Array = np.multiply(np.where(is_yes, -sigmoid, sigmoid), g)
        return cotangent

    # The sign gives the derivative at 0 that lies between those of both sides.
    terms = 0.5 * (np.sign(wrong) + 1) * wrong + np.log1p(decay)
    return reduced(terms, reduction, slope, None)


def margin_ranking(
    lhs: Array, rhs: Array, signs: Array, margin: float, reduction: Reduction
) -> tuple[Array, Pullbacks]:
    """How far the right one falls short of the other plus the margin."""
    is_left = like(signs, lhs) > 0
    lacking = margin - np.where(is_left, lhs - rhs, rhs - lhs)
    lacks = lacking >= 0

    def slope(g: Array) -> Array:
        return np.where(lacks, np.where(is_left, -g, g), 0)

    return reduced(np.maximum(lacking, 0), reduction, slope, lambda g: -slope(g), None)


def multi_margin(
    scores: Array, labels: Array, margin: float, power: int, reduction: Reduction
) -> tuple[Array, Pullbacks]:
    """How far the score of the right class falls short of the others plus the margin, as a mean."""
    is_label = where_labels_are(scores, labels)
    right = row_sums(np.where(is_label, scores, 0))
    lacking = margin + scores - right
    lacks = (lacking > 0) & ~is_label
    held = np.where(lacks, lacking, 0)
    classes = scores.shape[-1]
    terms = np.sum(held if power == 1 else np.square(held), axis=-1) / classes

    def slope(g: Array) -> Array:
        # The sign is 1 where something lacks, in the dtype of the scores.
        each = (np.sign(held) if power == 1 else held * 2.0) / classes
        return np.where(is_label, -row_sums(each), each) * over_rows(g, terms)

    return reduced(terms, reduction, slope, None)


def triplet_margin(
    anchor: Array, positive: Array, negative: Array, margin: float, reduction: Reduction
) -> tuple[Array, Pullbacks]:
    """How far the distance to the negative falls short of that to the positive plus the margin."""
    # PyTorch's, which keeps the root away from 0 where two vectors are the same.
    to_positive, to_negative = anchor - positive + 1e-6, anchor - negative + 1e-6
    near = np.sqrt(row_products(to_positive, to_positive))
    far = np.sqrt(row_products(to_negative, to_negative))
    lacking = near - far + margin
    lacks = lacking >= 0
    terms = np.squeeze(np.maximum(lacking, 0), axis=-1)

    def towards(g: Array, difference: Array, distance: Array) -> Array:
        return difference / distance * np.where(lacks, over_rows(g, terms), 0)

    return reduced(
        terms,
        reduction,
        lambda g: towards(g, to_positive, near) - towards(g, to_negative, far),
        lambda g: -towards(g, to_positive, near),
        lambda g: towards(g, to_negative, far),
    )
