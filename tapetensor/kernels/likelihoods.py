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
    terms = 0.5 * np.add(np.log(held), np.divide(np.square(difference), held))
    if full:
        terms = terms + 0.5 * math.log(2 * math.pi)
    return reduced(
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

    return reduced(terms, reduction, lambda g: slope * g, slope_of_counts)
