"""Losses: a prediction and a target in, the mean error out.

Each has a pullback of its own. It saves the walk through three to six recorded ops and, since a
target is a constant, the cotangent of the target, which a composition would compute all the same.
"""

from __future__ import annotations

import numpy as np

from tapetensor.arrays.array import Array
from tapetensor.arrays.libraries import like
from tapetensor.kernels.numerics.extremes import largest, starts_of_rows
from tapetensor.kernels.numerics.native import FEW_STEPS, MANY_STEPS, native_from
from tapetensor.kernels.numerics.sums import row_products, row_sums
from tapetensor.tape import Pullbacks


@native_from(FEW_STEPS)
def mse(prediction: Array, target: Array) -> tuple[Array, Pullbacks]:
    """The mean of the squared differences."""
    difference = prediction - target
    count = difference.size
    y = np.sum(np.square(difference)) / count
    return y, (lambda g: difference * (g * (2.0 / count)), None)


@native_from(MANY_STEPS)
def rmse(prediction: Array, target: Array) -> tuple[Array, Pullbacks]:
    """The root of the mean of the squared differences; the derivative at 0 is 0.

    It is not `mse` and then a root: where nothing differs, the slope of that root is infinite.
    """
    difference = prediction - target
    count = difference.size
    y = np.sqrt(np.sum(np.square(difference)) / count)
    # At 0 every difference is 0, so that any number will do.
    divisor = count * np.where(y == 0, 1, y)
    return y, (lambda g: difference * (g / divisor), None)


@native_from(FEW_STEPS)
def mae(prediction: Array, target: Array) -> tuple[Array, Pullbacks]:
    """The mean of the absolute differences; the derivative at 0 is 0."""
    difference = prediction - target
    count = difference.size
    y = np.sum(np.absolute(difference)) / count
    return y, (lambda g: np.sign(difference) * (g / count), None)


@native_from(FEW_STEPS)
def huber(prediction: Array, target: Array, delta: float) -> tuple[Array, Pullbacks]:
    """Half the squared difference up to `delta`, linear beyond."""
    difference = prediction - target
    count = difference.size
    held = np.clip(difference, -delta, delta)
    y = np.sum(held * (difference - 0.5 * held)) / count
    return y, (lambda g: held * (g / count), None)


@native_from(FEW_STEPS)
def smooth_l1(prediction: Array, target: Array, beta: float) -> tuple[Array, Pullbacks]:
    """`huber` divided by `beta`."""
    difference = prediction - target
    divisor = difference.size * beta
    held = np.clip(difference, -beta, beta)
    y = np.sum(held * (difference - 0.5 * held)) / divisor
    return y, (lambda g: held * (g / divisor), None)


def nll(log_probabilities: Array, labels: Array) -> tuple[Array, Pullbacks]:
    """The mean negative log-probability at the labels, which the caller has checked."""
    classes = like(np.arange(log_probabilities.shape[-1]), log_probabilities)
    is_label = np.expand_dims(like(labels, log_probabilities), -1) == classes
    count = labels.size
    y: Array = np.sum(np.where(is_label, -log_probabilities, 0)) / count
    return y, (lambda g: np.where(is_label, -g / count, 0), None)


@native_from(MANY_STEPS)
def cross_entropy(logits: Array, labels: Array) -> tuple[Array, Pullbacks]:
    """The mean negative log-softmax at the labels, which the caller has checked."""
    rows = logits if logits.ndim == 2 else np.reshape(logits, (-1, logits.shape[-1]))
    count, classes = rows.shape
    # numpy finds an element of a flat array in a sixth of the time that (row, column) takes.
    starts = like(starts_of_rows(count, classes), rows)
    at_labels = starts + like(labels, rows).astype(np.intp, copy=False).reshape(-1)
    shifted = rows - largest(rows, 1)
    exponentials = np.exp(shifted)
    totals = row_sums(exponentials)

    def pullback(g: Array) -> Array:
        share = g / count
        cotangent: Array = (exponentials * (share / totals)).reshape(-1)
        cotangent[at_labels] -= share
        return np.reshape(cotangent, logits.shape)

    chosen = shifted.reshape(-1)[at_labels]
    return np.add.reduce(np.log(totals).reshape(-1) - chosen) / count, (pullback, None)


@native_from(MANY_STEPS)
def cross_entropy_with_probabilities(
    logits: Array, probabilities: Array
) -> tuple[Array, Pullbacks]:
    """The mean over rows of ``-sum(p * log_softmax(logits))``; ``0 * log 0`` is 0."""
    log_softmax = _log_softmax(logits)
    count = _rows(logits)
    y = -np.sum(_weighted(probabilities, log_softmax)) / count
    return y, (lambda g: _slope(log_softmax, probabilities) * (g / count), None)


@native_from(MANY_STEPS)
def kl_div(logits: Array, probabilities: Array) -> tuple[Array, Pullbacks]:
    """The mean over rows of ``sum(p * (log p - log_softmax(logits)))``; ``0 * log 0`` is 0."""
    log_softmax = _log_softmax(logits)
    count = _rows(logits)
    log_probabilities = np.log(np.where(probabilities == 0, 1, probabilities))
    y = np.sum(_weighted(probabilities, log_probabilities - log_softmax)) / count
    return y, (lambda g: _slope(log_softmax, probabilities) * (g / count), None)


@native_from(MANY_STEPS)
def binary_cross_entropy(predictions: Array, probabilities: Array) -> tuple[Array, Pullbacks]:
    """The mean of ``-p * log(q) - (1 - p) * log(1 - q)``, logarithms at least -100."""
    count = predictions.size
    rests = 1 - predictions
    log_yes, log_no = _bounded_log(predictions), _bounded_log(rests)
    y = -np.sum(probabilities * log_yes + (1 - probabilities) * log_no) / count

    def pullback(g: Array) -> Array:
        spread = np.maximum(predictions * rests, 1e-12)
        cotangent: Array = (predictions - probabilities) / spread * (g / count)
        return cotangent

    return y, (pullback, None)


@native_from(MANY_STEPS)
def binary_cross_entropy_with_logits(
    logits: Array, probabilities: Array
) -> tuple[Array, Pullbacks]:
    """The mean of ``-p * log(sigmoid(l)) - (1 - p) * log(1 - sigmoid(l))``."""
    count = logits.size
    decay = np.exp(-np.absolute(logits))
    y = np.sum(np.maximum(logits, 0) - logits * probabilities + np.log1p(decay)) / count

    def pullback(g: Array) -> Array:
        # With tanh a confident and right prediction would lose its small gradient, and a choice
        # between two forms would lose the derivative of this one at 0.
        sigmoid = np.exp(np.minimum(logits, 0)) / (1 + decay)
        cotangent: Array = (sigmoid - probabilities) * (g / count)
        return cotangent

    return y, (pullback, None)


@native_from(MANY_STEPS)
def cosine_embedding(
    lhs: Array, rhs: Array, signs: Array, margin: float
) -> tuple[Array, Pullbacks]:
    """The mean of ``1 - cos`` for pairs of sign 1, of ``max(0, cos - margin)`` for the others."""
    count = signs.size
    # A vector of zeros is at right angles to all, as it is in PyTorch.
    lhs_square = row_products(lhs, lhs) + 1e-12
    rhs_square = row_products(rhs, rhs) + 1e-12
    scale = np.sqrt(lhs_square * rhs_square)
    cosine = row_products(lhs, rhs) / scale
    is_alike = np.expand_dims(like(signs, lhs), -1) > 0
    is_apart = cosine <= margin
    y = np.sum(np.where(is_alike, 1 - cosine, np.where(is_apart, 0, cosine - margin))) / count

    def slope(g: Array) -> Array:
        share = g / count
        return np.where(is_alike, -share, np.where(is_apart, 0, share))

    return y, (
        lambda g: slope(g) * (rhs / scale - cosine * lhs / lhs_square),
        lambda g: slope(g) * (lhs / scale - cosine * rhs / rhs_square),
        None,
    )


def _bounded_log(probabilities: Array) -> Array:
    is_zero = probabilities == 0
    logarithms = np.maximum(np.log(np.where(is_zero, 1, probabilities)), -100)
    return np.where(is_zero, -100, logarithms)


def _log_softmax(logits: Array) -> Array:
    shifted = logits - largest(logits, -1)
    log_softmax: Array = shifted - np.log(row_sums(np.exp(shifted)))
    return log_softmax


def _rows(logits: Array) -> int:
    rows: int = logits.size // logits.shape[-1]
    return rows


def _weighted(probabilities: Array, logarithms: Array) -> Array:
    # A class of probability 0 counts nothing, also where its logarithm is infinite.
    return probabilities * np.where(probabilities == 0, 0, logarithms)


def _slope(log_softmax: Array, probabilities: Array) -> Array:
    total = row_sums(probabilities)
    slope: Array = np.exp(log_softmax) * total - probabilities
    return slope
