"""Negative log-likelihoods of numbers: a prediction and a target in, errors and pullbacks out."""

from __future__ import annotations

import math

import numpy as np

from tapetensor.arrays.array import Array
from tapetensor.kernels.numerics.reduction import Reduction, reduced
from tapetensor.tape import Pullbacks


def gaussian_nll(
    prediction: Array,
    target: Array,
    variance: Array,
    full: bool,
    eps: float,
    reduction: Reduction,
) -> tuple[Array, Pullbacks]:
    """``(log(v) + (prediction - target)**2 / v) / 2``, `v` the variance, `eps` at least."""
    held = np.maximum(variance, eps)
    difference = prediction - target
    terms = 0.5 * (np.log(held) + np.square(difference) / held)
    if full:
        terms = terms + 0.5 * math.log(2 * math.pi)
    return reduced(
        terms,
        reduction,
        lambda g: difference / held * g,
        None,
        # As PyTorch's, below `eps`, too, so that a variance can come back from there.
        lambda g: 0.5 * (held - np.square(difference)) / np.square(held) * g,
    )


def poisson_nll(
    log_rates: Array, counts: Array, full: bool, reduction: Reduction
) -> tuple[Array, Pullbacks]:
    """``exp(log_rate) - count * log_rate``, with Stirling's approximation of ``log(count!)``."""
    rates = np.exp(log_rates)
    terms = rates - counts * log_rates
    if full:
        held = np.maximum(counts, 1)
        stirling = held * np.log(held) - held + 0.5 * np.log(2 * math.pi * held)
        terms = terms + np.where(counts > 1, stirling, 0)
    return reduced(terms, reduction, lambda g: (rates - counts) * g, None)
