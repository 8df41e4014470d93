"""Pullbacks: from the derivative by the output of an op to that by one operand."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Self, TypeAlias

import numpy as np
from typing_extensions import TypeVar, override

from tapetensor.arrays.array import Array
from tapetensor.errors import ArgumentTypeError

Pullback: TypeAlias = Callable[[Array], Array]
Pullbacks: TypeAlias = tuple[Pullback | None, ...]
Kernel: TypeAlias = Callable[..., tuple[Array, Pullbacks]]
# Whether each parent of an op needs its pullback.
Needed: TypeAlias = tuple[bool, ...]
_Result = TypeVar("_Result")


def computed_once(compute: Callable[[Array], _Result]) -> Callable[[Array], _Result]:
    """Return `compute` with a memory of its latest cotangent.

    The pullbacks of an op are run one after the other on the same array: the first computes what
    they share, the others find it.
    """
    latest: list[tuple[Array, _Result]] = []

    def computed(g: Array) -> _Result:
        if not latest or latest[0][0] is not g:
            latest[:] = [(g, compute(g))]
        return latest[0][1]

    return computed


def CONSTANT(_: Array) -> Array:  # noqa: N802  # a constant, and a function so that it is a pullback
    """Stand for the pullback of an operand that is a constant by convention: class weights, a mask.

    To ask for the gradient of such an operand, or of what lies behind it, is an error. (None stands
    for a derivative that is zero, of which nothing is missing.) It is for kernels of three operands
    or more, as those of losses are: a backward pass does not look for it among two.
    """
    raise AssertionError("a constant has no pullback")


class Zero:
    """The pullback of an operand whose derivative is 0 everywhere: of `sign`, of `floor`.

    A plain value that comes of such an op alone is a constant: no gradient is missing behind it.

    Args:
        shape: that of the operand, if it is not that of the cotangent.
    """

    __slots__ = ("_shape",)

    def __init__(self, shape: tuple[int, ...] | None = None) -> None:
        self._shape = shape

    def __call__(self, g: Array) -> Array:
        """Return zeros."""
        return np.zeros_like(g, shape=self._shape)


class JointPullbacks(tuple[Pullback | None, ...]):
    """Pullbacks that share one computation, which can leave out what only some of them need.

    Args:
        needed: whether each parent needs its pullback; None stands for one that does not.
        compute: given `needed` and a cotangent, returns what every pullback that is needed gives,
            in the order of the parents, and anything for the others.
    """

    compute: Callable[[Needed, Array], Sequence[Any]]

    def __new__(cls, needed: Needed, compute: Callable[[Needed, Array], Sequence[Any]]) -> Self:
        """Make a tuple with one attribute."""
        once = computed_once(partial(compute, needed))
        pullbacks = [
            partial(_one_of, once, position) if is_needed else None
            for position, is_needed in enumerate(needed)
        ]
        joint = super().__new__(cls, pullbacks)
        joint.compute = compute
        return joint

    def narrow(self, needed: Needed) -> JointPullbacks:
        """Return the pullbacks that compute what is needed and no more."""
        return JointPullbacks(needed, self.compute)


def _one_of(compute: Callable[[Array], Sequence[Any]], position: int, g: Array) -> Any:
    return compute(g)[position]


class AddingPullback:
    """The pullback of reading a part of an array, whose cotangent is zero elsewhere.

    A replay adds it to the gradient that it has, instead of filling an array with each part.
    """

    __slots__ = ()

    def __call__(self, g: Array) -> Array:
        """Return zeros with the cotangent where the part was: a fresh array."""
        raise NotImplementedError

    def adds(self, whole: Array, g: Array) -> bool:
        """Tell whether `add_to` takes arrays of their kinds."""
        return whole.__class__ is g.__class__

    def add_to(self, whole: Array, g: Array) -> None:
        """Add the cotangent where the part was."""
        raise NotImplementedError


class PartPullback(AddingPullback):
    """The pullback of reading a part of an array, every element once: the cotangent in its place.

    Args:
        x: the array, for its shape and the order of its axes in memory.
        index: which part of it was read.
    """

    __slots__ = ("_index", "_x")

    def __init__(self, x: Array, index: Any) -> None:
        self._x = x
        self._index = index

    @override
    def __call__(self, g: Array) -> Array:
        whole = np.zeros_like(self._x)
        whole[self._index] = g
        return whole

    @override
    def add_to(self, whole: Array, g: Array) -> None:
        whole[self._index] += g


def checked_returned(name: str, returned: object, count: int) -> tuple[object, Pullbacks]:
    """Return the output and the pullbacks that a kernel returned for so many operands."""
    if isinstance(returned, tuple) and len(returned) == 2:
        output, pullbacks = returned
        if (
            isinstance(pullbacks, tuple)
            and len(pullbacks) == count
            and all(pullback is None or callable(pullback) for pullback in pullbacks)
        ):
            return output, pullbacks
    raise ArgumentTypeError(
        f"GradientTape.record: {name!r} must return its output and a tuple of {count} pullbacks, "
        f"one per slot, got {returned!r}"
    )
