"""The memory of a plan: one region, whose parts are handed out, given back and handed out again."""

from __future__ import annotations

import math
import sys
from bisect import bisect_left, insort
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

import numpy as np

from tapetensor.arrays.array import Array, untouched

_ALIGNMENT = 64
# An arena of fewer bytes, or of more parts, is not laid out again.
_WORTH_IT = 1 << 20
_TOO_MANY = 500


@dataclass
class Range:
    """A part of the arena, and how long it is kept.

    Args:
        start: where it lies.
        size: the number of bytes.
        begin: when it was taken.
        end: when it was given back.
        shift: how far it has been moved.
    """

    start: int
    size: int
    begin: int
    end: int = sys.maxsize
    shift: int = 0


class Arena:
    """A region of memory in which every value of a program has its place.

    Live ranges are known, so a place is used again as soon as its last reader is done. The region
    is reserved as a whole; the system provides memory for what is written to, `nbytes` at most.

    Args:
        capacity: a number of bytes that is enough.

    Attributes:
        nbytes: the number of bytes that were used.
        ranges: the parts that were taken, in order.
    """

    def __init__(self, capacity: int) -> None:
        self.nbytes = 0
        self.ranges: list[Range] = []
        # By the id of an array of all of its bytes, which all arrays that lie there have as a base.
        self._parts: dict[int, tuple[Array, Range]] = {}
        # The size and the place of each hole between parts that are taken now, the smallest first.
        self._holes: list[tuple[int, int]] = []
        # Where each of them starts, by where it stops, and the other way round.
        self._starts: dict[int, int] = {}
        self._stops: dict[int, int] = {}
        self._clock = 0
        self._region = untouched((capacity + _ALIGNMENT,), np.dtype(np.uint8))
        self._region = self._region[-self._region.ctypes.data % _ALIGNMENT :]
        self._buffer, self._address = self._region.data, self._region.ctypes.data
        self._open(0, self._region.nbytes)

    def take(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
        """Return an array that nobody else uses until it is given back."""
        wanted = math.prod(shape) * dtype.itemsize
        if not wanted:
            return np.empty(shape, dtype)
        size = -(-wanted // _ALIGNMENT) * _ALIGNMENT
        start = self._fill_hole(size)
        self._clock += 1
        one = Range(start, size, self._clock)
        self.ranges.append(one)
        self.nbytes = max(self.nbytes, start + size)
        part = np.frombuffer(self._buffer, dtype, wanted // dtype.itemsize, start)
        self._parts[id(part)] = part, one
        return part.reshape(shape)

    def better_places(self) -> list[int] | None:
        """Return places that need less memory, now that all parts are known; None if none do.

        The largest part comes first. Each lies as low as the parts kept at the same time allow.
        """
        if self.nbytes < _WORTH_IT or len(self.ranges) > _TOO_MANY:
            return None
        # Where each starts and stops, and how long it is kept.
        placed: list[tuple[int, int, int, int]] = []
        for one in sorted(self.ranges, key=lambda one: -one.size):
            start, size, taken, given_back = 0, one.size, one.begin, one.end
            for first, stop, begin, end in placed:
                if begin > given_back or taken > end:
                    continue
                if first - start >= size:
                    break
                start = max(start, stop)
            insort(placed, (start, start + size, taken, given_back))
        if max([stop for _, stop, _, _ in placed]) >= self.nbytes:
            return None
        return [start for start, _, _, _ in sorted(placed, key=itemgetter(2))]

    def move(self, places: list[int]) -> None:
        """Have each part lie elsewhere; the parts are in the order in which they were taken."""
        self.nbytes = 0
        for start, one in zip(places, self.ranges, strict=True):
            one.shift, one.start = start - one.start, start
            self.nbytes = max(self.nbytes, start + one.size)

    def moved(self, value: Any) -> Any:
        """Return an array where its part lies now, also for arrays in lists and tuples."""
        if value.__class__ in (list, tuple):
            return value.__class__(map(self.moved, value))
        one = self._part_of(value) if isinstance(value, np.ndarray) else None
        if one is None:
            return value
        start = value.ctypes.data - self._address + one.shift
        return np.ndarray(value.shape, value.dtype, self._region, start, value.strides)

    def _part_of(self, array: Array) -> Range | None:
        """Return the part in which an array lies; None if it lies elsewhere."""
        base: Any = array
        while base is not None and id(base) not in self._parts:
            base = getattr(base, "base", None)
        return None if base is None else self._parts[id(base)][1]

    def _fill_hole(self, size: int) -> int:
        """Return the place of the smallest hole that fits, the free end being the largest."""
        found, start = self._holes[bisect_left(self._holes, (size, 0))]
        self._close(start, start + found)
        if found > size:
            self._open(start + size, start + found)
        return start

    def _open(self, start: int, stop: int) -> None:
        """Add a hole, joined with those on both of its sides."""
        first, last = self._starts.get(start, start), self._stops.get(stop, stop)
        for one in ((first, start), (stop, last)):
            if one[0] != one[1]:
                self._close(*one)
        self._starts[last], self._stops[first] = first, last
        insort(self._holes, (last - first, first))

    def _close(self, start: int, stop: int) -> None:
        del self._starts[stop], self._stops[start]
        del self._holes[bisect_left(self._holes, (stop - start, start))]

    def give_back(self, array: Array) -> None:
        """Take back an array that `take` returned."""
        if not array.size:
            return
        one = self._part_of(array)
        assert one is not None
        self._open(one.start, one.start + one.size)
        self._clock += 1
        one.end = self._clock
