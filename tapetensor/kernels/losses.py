"""Losses: a prediction and a target in, the mean error out.

Each has a pullback of its own. It saves the walk through three to six recorded ops and, since a
target is a constant, the cotangent of the target, which a composition would compute all the same.
"""

from __future__ import annotations

import numpy as np

from tapetensor.gradients import Array
from tapetensor.tape import Pullbacks


def mse(prediction: Array, target: Array) -> tuple[Array, Pullbacks]:
    """The mean of the squared differences."""
    difference = prediction - target
    count = difference.size
    y = np.sum(np.square(difference)) / count
    return y, (lambda g: difference * (g * (2.0 / count)), None)


def mae(prediction: Array, target: Array) -> tuple[Array, Pullbacks]:
    """The mean of the absolute differences; the derivative at 0 is 0."""
    difference = prediction - target
    count = difference.size
    y = np.sum(np.absolute(difference)) / count
    return y, (lambda g: np.sign(difference) * (g / count), None)


def huber(prediction: Array, target: Array, delta: float) -> tuple[Array, Pullbacks]:
    """Half the squared difference up to `delta`, linear beyond."""
    difference = prediction - target
    count = difference.size
    held = np.clip(difference, -delta, delta)
    y = np.sum(held * (difference - 0.5 * held)) / count
    return y, (lambda g: held * (g / count), None)


def cross_entropy(logits: Array, labels: Array) -> tuple[Array, Pullbacks]:
    """The mean negative log-softmax at the labels, which the caller has checked."""
    rows = np.reshape(logits, (-1, logits.shape[-1]))
    count = rows.shape[0]
    at_labels = (np.arange(count), np.reshape(labels, (-1,)))
    shifted = rows - np.max(rows, axis=1, keepdims=True)
    exponentials = np.exp(shifted)
    totals = np.sum(exponentials, axis=1)

    def pullback(g: Array) -> Array:
        share = g / count
        cotangent = exponentials * np.expand_dims(share / totals, 1)
        cotangent[at_labels] -= share
        return np.reshape(cotangent, logits.shape)

    return np.sum(np.log(totals) - shifted[at_labels]) / count, (pullback, None)


def cross_entropy_with_probabilities(
    logits: Array, probabilities: Array
) -> tuple[Array, Pullbacks]:
    """The mean over rows of ``-sum(p * log_softmax(logits))``; ``0 * log 0`` is 0."""
    log_softmax = _log_softmax(logits)
    count = _rows(logits)
    y = -np.sum(_weighted(probabilities, log_softmax)) / count
    return y, (lambda g: _slope(log_softmax, probabilities) * (g / count), None)


def kl_div(logits: Array, probabilities: Array) -> tuple[Array, Pullbacks]:
    """The mean over rows of ``sum(p * (log p - log_softmax(logits)))``; ``0 * log 0`` is 0."""
    log_softmax = _log_softmax(logits)
    count = _rows(logits)
    log_probabilities = np.log(np.where(probabilities == 0, 1, probabilities))
    y = np.sum(_weighted(probabilities, log_probabilities - log_softmax)) / count
    return y, (lambda g: _slope(log_softmax, probabilities) * (g / count), None)


def binary_cross_entropy_with_logits(
    logits: Array, probabilities: Array
) -> tuple[Array, Pullbacks]:
    """The mean of ``-p * log(sigmoid(l)) - (1 - p) * log(1 - sigmoid(l))``."""
    count = logits.size
    # All of them with the slope of the right side at 0: what they make together has no kink.
    decay = np.exp(-np.fabs(logits))
    y = np.sum(np.clip(logits, 0, None) - logits * probabilities + np.log1p(decay)) / count

    def pullback(g: Array) -> Array:
        # Not by tanh: a confident and right prediction would lose its small gradient.
        sigmoid = np.where(logits >= 0, 1, decay) / (1 + decay)
        cotangent: Array = (sigmoid - probabilities) * (g / count)
        return cotangent

    return y, (pullback, None)


def _log_softmax(logits: Array) -> Array:
    shifted = logits - np.max(logits, axis=-1, keepdims=True)
    log_softmax: Array = shifted - np.log(np.sum(np.exp(shifted), axis=-1, keepdims=True))
    return log_softmax


def _rows(logits: Array) -> int:
    rows: int = logits.size // logits.shape[-1]
    return rows


def _weighted(probabilities: Array, logarithms: Array) -> Array:
    # A class of probability 0 counts nothing, also where its logarithm is infinite.
    return probabilities * np.where(probabilities == 0, 0, logarithms)


def _slope(log_softmax: Array, probabilities: Array) -> Array:
    total = np.sum(probabilities, axis=-1, keepdims=True)
    slope: Array = np.exp(log_softmax) * total - probabilities
    return slope
