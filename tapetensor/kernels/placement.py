"""Moving arrays from the memory of one library to that of another."""

from __future__ import annotations

import numpy as np

from tapetensor.arrays.array import Array
from tapetensor.arrays.libraries import Home, Library, moved
from tapetensor.tape import Pullbacks


def to(x: Array, library: Library) -> tuple[Array, Pullbacks]:
    """The same elements in the memory of `library`; the cotangent goes back to where `x` was."""
    # An array without elements stands for `x`, whose memory is not kept.
    home = Home(np.zeros_like(x, shape=(0,)))
    return moved("to", x, library), (lambda g: moved("to", g, home),)
