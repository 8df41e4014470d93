"""The memory of a plan: one region, whose parts are handed out, given back and handed out again."""

from __future__ import annotations

import math
import sys
from bisect import bisect_left, insort
from dataclasses import dataclass
from typing import Any

import numpy as np

from tapetensor.arrays.array import Array, untouched

_ALIGNMENT = 64
# An arena of fewer bytes, or of more parts, is not laid out a second time.
_WORTH_IT = 1 << 20
_TOO_MANY = 500


@dataclass
class Range:
    """A part of the arena, and how long it is kept.

    Args:
        size: the number of bytes.
        begin: when it was taken.
        end: when it was given back.
    """

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
        # The part that was put at each place last.
        self._latest: dict[int, Range] = {}
        self._clock = 0
        self._region = untouched((capacity + _ALIGNMENT,), np.dtype(np.uint8))
        self._region = self._region[-self._region.ctypes.data % _ALIGNMENT :]
        # The places at which holes begin, in order, and the size of each hole.
        self._holes: list[int] = [0]
        self._sizes: dict[int, int] = {0: self._region.nbytes}
        # The place and the size of what was handed out, by its address.
        self._taken: dict[int, tuple[int, int]] = {}

    def take(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
        """Return an array that nobody else uses until it is given back."""
        wanted = math.prod(shape) * dtype.itemsize
        if not wanted:
            return np.empty(shape, dtype)
        size = -(-wanted // _ALIGNMENT) * _ALIGNMENT
        start = self._hole(size) if self._places is None else self._places[len(self.ranges)]
        self._clock += 1
        self._latest[start] = Range(size, self._clock)
        self.ranges.append(self._latest[start])
        self.nbytes = max(self.nbytes, start + size)
        array = self._region[start : start + wanted].view(dtype).reshape(shape)
        self._taken[self._region.ctypes.data + start] = start, size
        return array

    def better_places(self) -> list[int] | None:
        """Return places that need less memory, now that all parts are known; None if none do.

        The largest part comes first. Each lies as low as the parts kept at the same time allow.
        """
        if self.nbytes < _WORTH_IT or len(self.ranges) > _TOO_MANY:
            return None
        placed: list[tuple[int, Range]] = []
        starts: dict[int, int] = {}
        for one in sorted(self.ranges, key=lambda one: -one.size):
            start = 0
            for other_start, other in placed:
                if other.begin > one.end or one.begin > other.end:
                    continue
                if other_start - start >= one.size:
                    break
                start = max(start, other_start + other.size)
            insort(placed, (start, one), key=lambda pair: pair[0])
            starts[one.begin] = start
        if max([start + one.size for start, one in placed]) >= self.nbytes:
            return None
        return [starts[one.begin] for one in self.ranges]

    def _hole(self, size: int) -> int:
        """Fill a hole, and return its place."""
        # The smallest hole that fits is taken; the free end of the region is the largest.
        _, start = min([(self._sizes[one], one) for one in self._holes if self._sizes[one] >= size])
        rest = self._sizes.pop(start) - size
        place = self._holes.index(start)
        if rest:
            self._holes[place] = start + size
            self._sizes[start + size] = rest
        else:
            del self._holes[place]
        return start

    def give_back(self, array: Array) -> None:
        """Take back what `take` returned."""
        if not array.size:
            return
        start, size = self._taken.pop(array.ctypes.data)
        self._clock += 1
        self._latest[start].end = self._clock
        if self._places is not None:
            return
        place = bisect_left(self._holes, start)
        if self._holes[place : place + 1] == [start + size]:
            size += self._sizes.pop(start + size)
            del self._holes[place]
        before = self._holes[place - 1] if place else None
        if before is not None and before + self._sizes[before] == start:
            self._sizes[before] += size
        else:
            self._holes.insert(place, start)
            self._sizes[start] = size
