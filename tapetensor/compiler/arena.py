"""The memory of a plan: buffers that are handed out, given back and handed out again."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tapetensor.gradients import Array

_ALIGNMENT = 64


class Arena:
    """Buffers by size. Live ranges are known, so each is planned once and never allocated again."""

    def __init__(self) -> None:
        self.nbytes = 0
        self._free: dict[int, list[Array]] = {}
        # By the address of the memory: which block a handed-out array lies in.
        self._blocks: dict[int, Array] = {}

    def take(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
        """Return an array that nobody else uses until it is given back."""
        wanted = math.prod(shape) * dtype.itemsize
        block = self._best(wanted)
        if block is None:
            raw = np.empty(wanted + _ALIGNMENT, np.uint8)
            start = -raw.ctypes.data % _ALIGNMENT
            block = raw[start : start + wanted]
            self.nbytes += wanted
        array = block[:wanted].view(dtype).reshape(shape)
        self._blocks[array.ctypes.data] = block
        return array

    def give_back(self, array: Array) -> None:
        """Take back what `take` returned."""
        block = self._blocks.pop(array.ctypes.data)
        self._free.setdefault(block.nbytes, []).append(block)

    def _best(self, wanted: int) -> Array | None:
        """Return the smallest free block that fits and is not twice too large."""
        fitting = [size for size, blocks in self._free.items() if blocks and wanted <= size]
        size = min(fitting, default=None)
        if size is None or (size > 2 * wanted and size > 4096):
            return None
        return self._free[size].pop()
