"""Functions of one array that go in steps; their derivative is 0, at the steps as well."""

from __future__ import annotations

import numpy as np

from tapetensor.arrays.array import Array
from tapetensor.tape import Pullbacks
from tapetensor.tape.pullbacks import Zero


def floor(x: Array) -> tuple[Array, Pullbacks]:
    """The largest integer that is not above."""
    return np.floor(x), (Zero(),)


def ceil(x: Array) -> tuple[Array, Pullbacks]:
    """The smallest integer that is not below."""
    return np.ceil(x), (Zero(),)


def round(x: Array) -> tuple[Array, Pullbacks]:
    """The nearest integer, the even one of two."""
    return np.rint(x), (Zero(),)


def trunc(x: Array) -> tuple[Array, Pullbacks]:
    """The integer that is next towards 0."""
    return np.trunc(x), (Zero(),)


def sign(x: Array) -> tuple[Array, Pullbacks]:
    """-1, 0 or 1."""
    return np.sign(x), (Zero(),)
