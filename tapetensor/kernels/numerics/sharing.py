"""Work that several pullbacks of one op have in common."""

from __future__ import annotations

from collections.abc import Callable

from typing_extensions import TypeVar

from tapetensor.arrays.array import Array

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
