"""Keeping some elements and putting a number in the place of the others."""

from __future__ import annotations

import numpy as np

from tapetensor.gradients import Array
from tapetensor.kernels.choice import choose
from tapetensor.tape import Pullbacks


def tril(x: Array, k: int) -> tuple[Array, Pullbacks]:
    """The elements on and below a diagonal of the matrices, 0 above it."""
    return np.tril(x, k), (lambda g: np.tril(g, k),)


def triu(x: Array, k: int) -> tuple[Array, Pullbacks]:
    """The elements on and above a diagonal of the matrices, 0 below it."""
    return np.triu(x, k), (lambda g: np.triu(g, k),)


def nans_to(x: Array, number: float) -> tuple[Array, Pullbacks]:
    """``x``, and a number where it is NaN."""
    is_nan = np.isnan(x)
    return choose(is_nan, number, x), (lambda g: choose(~is_nan, g, 0),)
