"""Pullbacks: from the derivative by the output of an op to that by one operand."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self, TypeAlias

import numpy as np

from tapetensor.arrays.array import Array

Pullback: TypeAlias = Callable[[Array], Array]
Pullbacks: TypeAlias = tuple[Pullback | None, ...]
Kernel: TypeAlias = Callable[..., tuple[Array, Pullbacks]]


class JointPullbacks(tuple[Pullback | None, ...]):
    """Pullbacks that share one computation, which can leave out what only some of them need.

    Args:
        pullbacks: one per parent.
        narrow: given whether each is needed, returns those that are, with None for the others.
    """

    narrow: Callable[[list[bool]], Pullbacks]

    def __new__(cls, pullbacks: Pullbacks, narrow: Callable[[list[bool]], Pullbacks]) -> Self:
        """Make a tuple with one attribute."""
        joint = super().__new__(cls, pullbacks)
        joint.narrow = narrow
        return joint


class PartPullback:
    """The pullback of reading a part of an array, every element once: the cotangent in its place.

    A replay adds the cotangents of further parts to what it has, instead of filling an array with
    each.

    Args:
        x: the array, for its shape and the order of its axes in memory.
        index: which part of it was read.
    """

    __slots__ = ("_index", "_x")

    def __init__(self, x: Array, index: Any) -> None:
        self._x = x
        self._index = index

    def __call__(self, g: Array) -> Array:
        """Return zeros with the cotangent where the part was: a fresh array."""
        whole = np.zeros_like(self._x)
        whole[self._index] = g
        return whole

    def add_to(self, whole: Array, g: Array) -> None:
        """Add the cotangent where the part was."""
        whole[self._index] += g
