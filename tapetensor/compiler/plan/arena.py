"""The memory of a plan: one region, whose parts are handed out, given back and handed out again."""

from __future__ import annotations

import math
import sys
from bisect import bisect_left, insort
from dataclasses import dataclass, field, replace
from operator import attrgetter
from typing import Any

import numpy as np

from tapetensor.arrays.array import Array, untouched

_ALIGNMENT = 64
# An arena of fewer bytes, or of more parts, is not laid out a second time.
_WORTH_IT = 1 << 20
_TOO_MANY = 500
_START, _BEGIN = attrgetter("start"), attrgetter("begin")


@dataclass
class Range:
    """A part of the arena, and how long it is kept.

    Args:
        start: where it lies.
        size: the number of bytes.
        begin: when it was taken.
        end: when it was given back.
    """

    start: int = field(compare=False)
    size: int
    begin: int
    end: int = sys.maxsize


class Arena:
    """A region of memory in which every value of a program has its place.

    Live ranges are known, so a place is used again as soon as its last reader is done. The region
    is reserved as a whole; the system provides memory for what is written to, `nbytes` at most.

    Args:
        capacity: a number of bytes that is enough.
        places: where to put each part, in the order in which they are taken; None to decide then.

    Attributes:
        nbytes: the number of bytes that were used.
        ranges: the parts that were taken, in order.
    """

    def __init__(self, capacity: int, places: list[int] | None = None) -> None:
        self.nbytes = 0
        self._places = places
        self.ranges: list[Range] = []
        # The parts that are taken now, in order of their places.
        self._taken: list[Range] = []
        self._clock = 0
        self._region = untouched((capacity + _ALIGNMENT,), np.dtype(np.uint8))
        self._region = self._region[-self._region.ctypes.data % _ALIGNMENT :]

    def take(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
        """Return an array that nobody else uses until it is given back."""
        wanted = math.prod(shape) * dtype.itemsize
        if not wanted:
            return np.empty(shape, dtype)
        size = -(-wanted // _ALIGNMENT) * _ALIGNMENT
        start = self._hole(size) if self._places is None else self._places[len(self.ranges)]
        self._clock += 1
        self.ranges.append(Range(start, size, self._clock))
        insort(self._taken, self.ranges[-1], key=_START)
        self.nbytes = max(self.nbytes, start + size)
        return self._region[start : start + wanted].view(dtype).reshape(shape)

    def better_places(self) -> list[int] | None:
        """Return places that need less memory, now that all parts are known; None if none do.

        The largest part comes first. Each lies as low as the parts kept at the same time allow.
        """
        if self.nbytes < _WORTH_IT or len(self.ranges) > _TOO_MANY:
            return None
        placed: list[Range] = []
        for one in sorted(self.ranges, key=lambda one: -one.size):
            start = 0
            for other in placed:
                if other.begin > one.end or one.begin > other.end:
                    continue
                if other.start - start >= one.size:
                    break
                start = max(start, other.start + other.size)
            insort(placed, replace(one, start=start), key=_START)
        if max([one.start + one.size for one in placed]) >= self.nbytes:
            return None
        return [one.start for one in sorted(placed, key=_BEGIN)]

    def _hole(self, size: int) -> int:
        """Return the place of the smallest hole that fits."""
        holes = []
        end = 0
        for one in [*self._taken, Range(self._region.nbytes, 0, self._clock)]:
            if one.start - end >= size:
                holes.append((one.start - end, end))
            end = one.start + one.size
        # The free end of the region is the largest.
        _, place = min(holes)
        return place

    def give_back(self, array: Array) -> None:
        """Take back what `take` returned."""
        if not array.size:
            return
        start = array.ctypes.data - self._region.ctypes.data
        one = self._taken.pop(bisect_left(self._taken, start, key=_START))
        self._clock += 1
        one.end = self._clock
