"""Losses: a prediction and a target in, the mean error out, or the sum, or the errors one by one.

Each has pullbacks of its own, which saves the walk through three to six recorded ops. What a target
says in floating numbers is differentiated as the prediction is; weights of classes are constants.

Some ask for a distance, and are content beyond it. Where a margin is just kept the derivative is
that of what lacks, so that a model whose scores begin equal learns; of `multi_margin` it is 0. So
PyTorch has it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Literal, TypeAlias

import numpy as np

from tapetensor.arrays.array import Array
from tapetensor.arrays.libraries import like
from tapetensor.kernels.numerics.along_axes import largest, row_products, row_sums, starts_of_rows
from tapetensor.kernels.numerics.choice import where_labels_are
from tapetensor.kernels.numerics.decorators import FEW_STEPS, MANY_STEPS, native_from
from tapetensor.tape import Pullback, Pullbacks
from tapetensor.tape.pullbacks import CONSTANT

Reduction: TypeAlias = Literal["mean", "sum", "none"]


@native_from(FEW_STEPS)
def mse(prediction: Array, target: Array, reduction: Reduction) -> tuple[Array, Pullbacks]:
    """The squared differences."""
    difference = prediction - target
    return _reduced(
        np.square(difference),
        reduction,
        lambda g: np.multiply(difference, 2.0 * g),
        lambda g: np.multiply(difference, -2.0 * g),
    )


@native_from(MANY_STEPS)
def rmse(prediction: Array, target: Array) -> tuple[Array, Pullbacks]:
    """The root of the mean of the squared differences; the derivative at 0 is 0.

    It is not `mse` and then a root: where nothing differs, the slope of that root is infinite.
    """
    difference = prediction - target
    count = difference.size
    square = np.sum(np.square(difference)) / count
    is_zero = square == 0
    # The slope of a root at 0 is infinite, and a second derivative would read it.
    root = np.sqrt(np.where(is_zero, 1, square))
    y = np.where(is_zero, 0, root)

    def slope(g: Array) -> Array:
        cotangent: Array = difference * (np.where(is_zero, 0, g) / (count * root))
        return cotangent

    return y, (slope, lambda g: slope(-g))


@native_from(FEW_STEPS)
def mae(prediction: Array, target: Array, reduction: Reduction) -> tuple[Array, Pullbacks]:
    """The absolute differences; the derivative at 0 is 0."""
    difference = prediction - target
    return _reduced(
        np.absolute(difference),
        reduction,
        lambda g: np.multiply(np.sign(difference), g),
        lambda g: np.multiply(np.sign(difference), -g),
    )


@native_from(FEW_STEPS)
def huber(
    prediction: Array, target: Array, delta: float, reduction: Reduction
) -> tuple[Array, Pullbacks]:
    """Half the squared difference up to `delta`, linear beyond."""
    difference = prediction - target
    held = np.clip(difference, -delta, delta)
    terms = held * (difference - 0.5 * held)
    return _reduced(terms, reduction, lambda g: held * g, lambda g: np.multiply(held, -g))


@native_from(FEW_STEPS)
def smooth_l1(
    prediction: Array, target: Array, beta: float, reduction: Reduction
) -> tuple[Array, Pullbacks]:
    """`huber` divided by `beta`."""
    difference = prediction - target
    held = np.clip(difference, -beta, beta)
    terms = held * (difference - 0.5 * held) / beta
    return _reduced(
        terms,
        reduction,
        lambda g: np.multiply(held, g / beta),
        lambda g: np.multiply(held, g / -beta),
    )


def pinball(
    prediction: Array, target: Array, q: float, reduction: Reduction
) -> tuple[Array, Pullbacks]:
    """The error below the target times `q`, above it times ``1 - q``."""
    difference = prediction - target
    # Half the absolute value, tilted: no choice by element, and at 0 the middle of both slopes.
    tilt = 0.5 - q
    terms = np.absolute(difference) * 0.5 + difference * tilt

    def slope(g: Array) -> Array:
        cotangent: Array = (np.sign(difference) * 0.5 + tilt) * g
        return cotangent

    return _reduced(terms, reduction, slope, lambda g: slope(-g))


def nll(log_probabilities: Array, labels: Array, reduction: Reduction) -> tuple[Array, Pullbacks]:
    """The negative log-probability at the labels, which the caller has checked."""
    is_label = where_labels_are(log_probabilities, labels)
    terms = np.sum(np.where(is_label, -log_probabilities, 0), axis=-1)
    return _reduced(terms, reduction, lambda g: np.where(is_label, -_over_rows(g, terms), 0), None)


def weighted_nll(
    log_probabilities: Array,
    labels: Array,
    weights: Array,
    ignored: int | None,
    reduction: Reduction,
) -> tuple[Array, Pullbacks]:
    """`nll` with a weight for each class, and labels that count not."""
    targets = weights * _counted(log_probabilities, labels, ignored)[0]
    terms = -np.sum(_weighted(targets, log_probabilities), axis=-1)
    return _reduced(
        terms,
        reduction,
        lambda g: -targets * _over_rows(g, terms),
        None,
        CONSTANT,
        weight=np.sum(targets),
    )


@native_from(MANY_STEPS)
def cross_entropy(logits: Array, labels: Array, reduction: Reduction) -> tuple[Array, Pullbacks]:
    """The negative log-softmax at the labels, which the caller has checked."""
    rows = logits if logits.ndim == 2 else np.reshape(logits, (-1, logits.shape[-1]))
    count, classes = rows.shape
    # numpy finds an element of a flat array in a sixth of the time that (row, column) takes.
    starts = like(starts_of_rows(count, classes), rows)
    at_labels = starts + like(labels, rows).astype(np.intp, copy=False).reshape(-1)
    shifted = rows - largest(rows, 1)
    exponentials = np.exp(shifted)
    totals = row_sums(exponentials)

    def slope(g: Array) -> Array:
        each = np.reshape(g, (-1, 1)) if reduction == "none" else g
        cotangent: Array = (exponentials * (each / totals)).reshape(-1)
        cotangent[at_labels] -= np.reshape(g, -1) if reduction == "none" else g
        return np.reshape(cotangent, logits.shape)

    terms = np.log(totals).reshape(-1) - shifted.reshape(-1)[at_labels]
    if reduction == "none":
        terms = np.reshape(terms, labels.shape)
    return _reduced(terms, reduction, slope, None)


def weighted_cross_entropy(
    logits: Array,
    labels: Array,
    weights: Array,
    smoothing: float,
    ignored: int | None,
    reduction: Reduction,
) -> tuple[Array, Pullbacks]:
    """`cross_entropy` with smoothed labels, a weight for each class, and labels that count not."""
    at_label, is_kept = _counted(logits, labels, ignored)
    targets = weights * (at_label * (1 - smoothing) + smoothing / logits.shape[-1] * is_kept)
    log_softmax, slope = _log_softmax(logits, targets)
    terms = -np.sum(_weighted(targets, log_softmax), axis=-1)
    return _reduced(
        terms,
        reduction,
        lambda g: slope() * _over_rows(g, terms),
        None,
        CONSTANT,
        weight=np.sum(weights * at_label),
    )


@native_from(MANY_STEPS)
def cross_entropy_with_probabilities(
    logits: Array, probabilities: Array, reduction: Reduction
) -> tuple[Array, Pullbacks]:
    """``-sum(p * log_softmax(logits))`` of every row; ``0 * log 0`` is 0."""
    log_softmax, slope = _log_softmax(logits, probabilities)
    terms = -np.sum(_weighted(probabilities, log_softmax), axis=-1)
    return _reduced(
        terms,
        reduction,
        lambda g: slope() * _over_rows(g, terms),
        lambda g: -log_softmax * _over_rows(g, terms),
    )


@native_from(MANY_STEPS)
def kl_div(logits: Array, probabilities: Array, reduction: Reduction) -> tuple[Array, Pullbacks]:
    """``sum(p * (log p - log_softmax(logits)))`` of every row; ``0 * log 0`` is 0, with slope 0."""
    log_softmax, slope = _log_softmax(logits, probabilities)
    log_probabilities = np.log(np.where(probabilities == 0, 1, probabilities))
    terms = np.sum(_weighted(probabilities, log_probabilities - log_softmax), axis=-1)

    def slope_of_target(g: Array) -> Array:
        rising = np.log(np.where(probabilities == 0, 1, probabilities))
        rising = np.add(rising, np.where(probabilities == 0, 0, 1))
        cotangent: Array = np.multiply(np.subtract(rising, log_softmax), _over_rows(g, terms))
        return cotangent

    return _reduced(terms, reduction, lambda g: slope() * _over_rows(g, terms), slope_of_target)


@native_from(MANY_STEPS)
def binary_cross_entropy(
    predictions: Array, probabilities: Array, reduction: Reduction
) -> tuple[Array, Pullbacks]:
    """``-p * log(q) - (1 - p) * log(1 - q)``, logarithms at least -100."""
    rests = 1 - predictions
    log_yes, log_no = _bounded_log(predictions), _bounded_log(rests)

    def slope(g: Array) -> Array:
        spread = np.maximum(predictions * rests, 1e-12)
        cotangent: Array = np.multiply((predictions - probabilities) / spread, g)
        return cotangent

    rest: Array = np.multiply(1 - probabilities, log_no)
    terms = -(probabilities * log_yes + rest)

    def slope_of_target(g: Array) -> Array:
        likelier = np.subtract(_bounded_log(1 - predictions), _bounded_log(predictions))
        cotangent: Array = np.multiply(likelier, g)
        return cotangent

    return _reduced(terms, reduction, slope, slope_of_target)


@native_from(MANY_STEPS)
def binary_cross_entropy_with_logits(
    logits: Array, probabilities: Array, reduction: Reduction
) -> tuple[Array, Pullbacks]:
    """``-p * log(sigmoid(l)) - (1 - p) * log(1 - sigmoid(l))``."""
    decay = np.exp(-np.absolute(logits))

    def slope(g: Array) -> Array:
        # With tanh a confident and right prediction would lose its small gradient, and a choice
        # between two forms would lose the derivative of this one at 0.
        sigmoid = np.exp(np.minimum(logits, 0)) / (1 + decay)
        cotangent: Array = np.multiply(sigmoid - probabilities, g)
        return cotangent

    # Where an infinite logit agrees with its label, 0 times infinity is the 0 that is meant.
    # The sign gives the derivative at 0 that lies between those of both sides.
    weights = np.subtract(0.5 * (np.sign(logits) + 1), probabilities)
    terms = weights * np.where(weights == 0, 0, logits) + np.log1p(decay)
    return _reduced(terms, reduction, slope, lambda g: np.multiply(-logits, g))


def weighted_binary_cross_entropy(
    logits: Array, probabilities: Array, weights: Array, reduction: Reduction
) -> tuple[Array, Pullbacks]:
    """``-w * p * log(sigmoid(l)) - (1 - p) * log(1 - sigmoid(l))``."""
    rests = 1 - probabilities
    # How often the smooth positive part of -l counts.
    yes = rests + weights * probabilities
    # A yes of weight 0 counts nothing, whatever its logit.
    logits = np.where(yes == 0, 0, logits)
    decay = np.exp(-np.absolute(logits))

    def slope(g: Array) -> Array:
        sigmoid = np.exp(np.minimum(-logits, 0)) / (1 + decay)
        cotangent: Array = np.multiply(rests - yes * sigmoid, g)
        return cotangent

    tail = np.log1p(decay)
    terms = _weighted(rests, np.maximum(logits, 0) + tail)
    terms = terms + _weighted(weights * probabilities, np.maximum(-logits, 0) + tail)

    def slope_of_target(g: Array) -> Array:
        surprise = weights * (np.maximum(-logits, 0) + tail) - (np.maximum(logits, 0) + tail)
        cotangent: Array = np.multiply(surprise, g)
        return cotangent

    return _reduced(terms, reduction, slope, slope_of_target, CONSTANT)


@native_from(MANY_STEPS)
def cosine_embedding(
    lhs: Array, rhs: Array, signs: Array, margin: float, reduction: Reduction
) -> tuple[Array, Pullbacks]:
    """``1 - cos`` for pairs of sign 1, ``max(0, cos - margin)`` for the others."""
    # A vector of zeros is at right angles to all, as it is in PyTorch.
    lhs_square = row_products(lhs, lhs) + 1e-12
    rhs_square = row_products(rhs, rhs) + 1e-12
    scale = np.sqrt(lhs_square * rhs_square)
    cosine = row_products(lhs, rhs) / scale
    is_alike = np.expand_dims(like(signs, lhs), -1) > 0
    is_apart = cosine < margin
    errors = np.where(is_alike, 1 - cosine, np.where(is_apart, 0, cosine - margin))
    terms = np.sum(errors, axis=-1)

    def cotangent(g: Array, own: Array, own_square: Array, other: Array) -> Array:
        each = _over_rows(g, terms)
        slope = np.where(is_alike, -each, np.where(is_apart, 0, each))
        return np.multiply(slope, np.subtract(other / scale, cosine * own / own_square))

    return _reduced(
        terms,
        reduction,
        lambda g: cotangent(g, lhs, lhs_square, rhs),
        lambda g: cotangent(g, rhs, rhs_square, lhs),
        None,
    )


def _bounded_log(probabilities: Array) -> Array:
    is_zero = probabilities == 0
    logarithms = np.maximum(np.log(np.where(is_zero, 1, probabilities)), -100)
    return np.where(is_zero, -100, logarithms)


def _counted(scores: Array, labels: Array, ignored: int | None) -> tuple[Array, Array | float]:
    """Return 1 at each label that is not `ignored`, 0 elsewhere; and 1 for each such row."""
    at_label = where_labels_are(scores, labels).astype(scores.dtype)
    if ignored is None:
        return at_label, 1.0
    is_kept = np.expand_dims(like(labels, scores) != ignored, -1).astype(scores.dtype)
    return at_label * is_kept, is_kept


def _log_softmax(logits: Array, probabilities: Array) -> tuple[Array, Callable[[], Array]]:
    """Return the log-softmax of rows, and what gives the slope of their cross-entropy by logits."""
    totals = row_sums(probabilities)
    # A row without any probability counts nothing, whatever its logits: infinities and NaN of it
    # would meet its 0 in the slope. To choose among all elements takes a fifth of the whole loss.
    if type(totals) is not np.ndarray or not totals.all():
        logits = np.where(totals == 0, 0, logits)
    shifted = logits - largest(logits, -1)
    log_softmax: Array = shifted - np.log(row_sums(np.exp(shifted)))
    return log_softmax, lambda: np.subtract(np.exp(log_softmax) * totals, probabilities)


def _weighted(probabilities: Array, logarithms: Array) -> Array:
    # A class of probability 0 counts nothing, also where its logarithm is infinite.
    return probabilities * np.where(probabilities == 0, 0, logarithms)


def gaussian_nll(
    prediction: Array, target: Array, variance: Array, full: bool, eps: float, reduction: Reduction
) -> tuple[Array, Pullbacks]:
    """``(log(v) + (prediction - target)**2 / v) / 2``, `v` the variance, `eps` at least."""
    held = np.maximum(variance, eps)
    difference = prediction - target
    terms = 0.5 * np.add(np.log(held), np.divide(np.square(difference), held))
    if full:
        terms = terms + 0.5 * math.log(2 * math.pi)
    return _reduced(
        terms,
        reduction,
        lambda g: np.multiply(difference / held, g),
        lambda g: np.multiply(difference / held, -g),
        # As PyTorch's, below `eps`, too, so that a variance can come back from there.
        lambda g: np.multiply(0.5 * (held - np.square(difference)) / np.square(held), g),
    )


def poisson_nll(
    given: Array, counts: Array, log_input: bool, full: bool, reduction: Reduction
) -> tuple[Array, Pullbacks]:
    """``rate - count * log(rate)``, with Stirling's approximation of ``log(count!)``."""
    if log_input:
        rates = np.exp(given)
        terms, slope = rates - counts * given, rates - counts
    else:
        # A rate of 0 is seen as one that is barely above it, as in PyTorch.
        held = given + 1e-8
        terms, slope = given - np.multiply(counts, np.log(held)), 1 - counts / held
    if full:
        many = np.maximum(counts, 1)
        stirling = many * np.log(many) - many + 0.5 * np.log(2 * math.pi * many)
        terms = np.add(terms, np.where(counts > 1, stirling, 0))

    def slope_of_counts(g: Array) -> Array:
        rising = np.negative(given if log_input else np.log(given + 1e-8))
        if full:
            many = np.maximum(counts, 1)
            rising = np.add(rising, np.where(counts > 1, np.log(many) + 0.5 / many, 0))
        cotangent: Array = np.multiply(rising, g)
        return cotangent

    return _reduced(terms, reduction, lambda g: slope * g, slope_of_counts)


def hinge_embedding(
    distances: Array, signs: Array, margin: float, reduction: Reduction
) -> tuple[Array, Pullbacks]:
    """A distance of sign 1 itself, and of sign -1 what it lacks of the margin."""
    is_alike = like(signs, distances) > 0
    is_near = distances <= margin
    terms = np.where(is_alike, distances, np.where(is_near, margin - distances, 0))
    return _reduced(
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
    return _reduced(terms, reduction, slope, None)


def margin_ranking(
    lhs: Array, rhs: Array, signs: Array, margin: float, reduction: Reduction
) -> tuple[Array, Pullbacks]:
    """What the one that should be larger lacks of the other and the margin."""
    is_left = like(signs, lhs) > 0
    lacking = margin - np.where(is_left, lhs - rhs, rhs - lhs)
    lacks = lacking >= 0

    def slope(g: Array) -> Array:
        return np.where(lacks, np.where(is_left, -g, g), 0)

    return _reduced(np.maximum(lacking, 0), reduction, slope, lambda g: -slope(g), None)


def multi_margin(
    scores: Array, labels: Array, margin: float, power: int, reduction: Reduction
) -> tuple[Array, Pullbacks]:
    """What the score of the right class lacks of each other and the margin, over all classes."""
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
        return np.where(is_label, -row_sums(each), each) * _over_rows(g, terms)

    return _reduced(terms, reduction, slope, None)


def triplet_margin(
    anchor: Array, positive: Array, negative: Array, margin: float, reduction: Reduction
) -> tuple[Array, Pullbacks]:
    """What the distance to the negative lacks of that to the positive and the margin."""
    # PyTorch's, which keeps the root away from 0 where two vectors are the same.
    to_positive, to_negative = anchor - positive + 1e-6, anchor - negative + 1e-6
    near = np.sqrt(row_products(to_positive, to_positive))
    far = np.sqrt(row_products(to_negative, to_negative))
    lacking = near - far + margin
    lacks = lacking >= 0
    terms = np.squeeze(np.maximum(lacking, 0), axis=-1)

    def towards(g: Array, difference: Array, distance: Array) -> Array:
        return difference / distance * np.where(lacks, _over_rows(g, terms), 0)

    return _reduced(
        terms,
        reduction,
        lambda g: towards(g, to_positive, near) - towards(g, to_negative, far),
        lambda g: -towards(g, to_positive, near),
        lambda g: towards(g, to_negative, far),
    )


def _reduced(
    terms: Array, reduction: Reduction, *slopes: Pullback | None, weight: Array | None = None
) -> tuple[Array, Pullbacks]:
    """Return the mean of terms, their sum, or themselves, and a pullback per operand.

    A slope is the cotangent of an operand from that of the terms, or of all of them alike. The mean
    is divided by the weight, or by the number of terms. Where the weight is 0 nothing counts: the
    mean is NaN, and the slopes are not divided.
    """
    if reduction == "none":
        return terms, slopes
    # Half of what np.sum takes on the few terms of a small batch.
    total = np.add.reduce(terms, axis=None)
    if reduction == "sum":
        return total, slopes
    if weight is None:
        return total / terms.size, tuple([_shared(slope, terms.size) for slope in slopes])
    is_nothing = weight == 0
    divisor = np.where(is_nothing, 1, weight)
    mean = np.where(is_nothing, np.nan, total / divisor)
    return mean, tuple([_shared(slope, divisor) for slope in slopes])


def _over_rows(g: Array, terms: Array) -> Array:
    """Return a cotangent of the terms, one per row, or of all alike, with an axis along the row."""
    return np.expand_dims(g, -1) if g.shape == terms.shape else g


def _shared(slope: Pullback | None, count: Array | int) -> Pullback | None:
    return slope if slope is None or slope is CONSTANT else lambda g: slope(g / count)
