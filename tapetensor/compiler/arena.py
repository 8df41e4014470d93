"""The memory of a plan: one region, whose parts are handed out, given back and handed out again."""

from __future__ import annotations

import math
import mmap
from bisect import bisect_left
from typing import Any

import numpy as np

from tapetensor.gradients import Array

_ALIGNMENT = 64


class Arena:
    """A region of memory in which every value of a program has its place.

    Live ranges are known, so a place is used again as soon as its last reader is done. The region
    is reserved as a whole; the system provides what is written to, `nbytes` at most.

    Args:
        capacity: so many bytes are enough.
    """

    def __init__(self, capacity: int) -> None:
        self.nbytes = 0
        self._region = _reserved(capacity + _ALIGNMENT)
        self._region = self._region[-self._region.ctypes.data % _ALIGNMENT :]
        # Where the holes begin, in order, and how large each is.
        self._holes: list[int] = [0]
        self._sizes: dict[int, int] = {0: self._region.nbytes}
        # By the address of what was handed out: its place.
        self._taken: dict[int, tuple[int, int]] = {}

    def take(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
        """Return an array that nobody else uses until it is given back."""
        wanted = math.prod(shape) * dtype.itemsize
        if not wanted:
            return np.empty(shape, dtype)
        size = -(-wanted // _ALIGNMENT) * _ALIGNMENT
        # The smallest hole; what lies behind everything else is the largest.
        start = min((hole for hole in self._holes if self._sizes[hole] >= size), key=self._key)
        rest = self._sizes.pop(start) - size
        place = self._holes.index(start)
        if rest:
            self._holes[place] = start + size
            self._sizes[start + size] = rest
        else:
            del self._holes[place]
        self.nbytes = max(self.nbytes, start + size)
        array = self._region[start : start + wanted].view(dtype).reshape(shape)
        self._taken[self._region.ctypes.data + start] = start, size
        return array

    def give_back(self, array: Array) -> None:
        """Take back what `take` returned."""
        if not array.size:
            return
        start, size = self._taken.pop(array.ctypes.data)
        place = bisect_left(self._holes, start)
        after = self._holes[place] if place < len(self._holes) else None
        if after == start + size:
            size += self._sizes.pop(start + size)
            del self._holes[place]
        before = self._holes[place - 1] if place else None
        if before is not None and before + self._sizes[before] == start:
            self._sizes[before] += size
            return
        self._holes.insert(place, start)
        self._sizes[start] = size

    def _key(self, hole: int) -> tuple[int, int]:
        return self._sizes[hole], hole


def _reserved(capacity: int) -> Array:
    """Return bytes that take no memory until they are written to."""
    flags = getattr(mmap, "MAP_NORESERVE", None)
    if flags is None:
        return np.empty(capacity, np.uint8)
    region = mmap.mmap(-1, capacity, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | flags)
    if hasattr(mmap, "MADV_HUGEPAGE"):
        region.madvise(mmap.MADV_HUGEPAGE)
    return np.frombuffer(region, np.uint8)
