"""Numbers on their way between memory and a file, a part at a time, and their check sums.

A check sum is CRC-32, as `zlib.crc32` gives it. Those of parts, in whatever order they were read or
written, are put together to that of the whole.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np

from tapetensor.arrays.array import Array
from tapetensor.kernels.numerics import threads

# So many bytes are still in the cache when the sum of what was read, or is written, is computed.
PART = 1 << 20
# The bits of the polynomial of CRC-32, the highest power last.
_POLYNOMIAL = 0xEDB88320
_ONE = 1 << 31


def joined(first: int, second: int, length: int) -> int:
    """Return the check sum of two texts one after the other.

    Args:
        first: that of the first.
        second: that of the second.
        length: how many bytes the second has.
    """
    # The sum of the first goes on through as many zeros, which multiply it by a power of x.
    power, factor, bits = _ONE, 3, length
    while bits:
        if bits & 1:
            power = _product(_power_of_two(factor), power)
        factor, bits = factor + 1, bits >> 1
    return _product(power, first) ^ second


def _product(one: int, other: int) -> int:
    """Return the product of two polynomials over bits, modulo that of CRC-32."""
    product = 0
    for place in range(31, -1, -1):
        if one >> place & 1:
            product ^= other
        other = other >> 1 ^ (_POLYNOMIAL if other & 1 else 0)
    return product


@cache
def _power_of_two(exponent: int) -> int:
    """Return ``x ** (2 ** exponent)``."""
    if not exponent:
        return _ONE >> 1
    root = _power_of_two(exponent - 1)
    return _product(root, root)


def as_bytes(array: Array) -> memoryview:
    """Return the bytes of an array that lies in C order, without a copy."""
    flat: Any = array.reshape(-1).view(np.uint8)
    return memoryview(flat)


def parts(content: memoryview) -> list[memoryview]:
    """Return bytes in parts that fit in the cache."""
    return [content[start : start + PART] for start in range(0, len(content), PART)]


def read_at_once(content: memoryview, files: Sequence[Any], start: int) -> int:
    """Fill memory with what a file has from a place on; return its check sum.

    Args:
        content: where it goes.
        files: the file, opened without a buffer once for every thread that is to read.
        start: the place.

    Raises:
        EOFError: if the file ends before.
    """
    pieces = parts(content)
    shares = threads.shares(len(pieces), len(files)) if len(pieces) > len(files) else []
    spans = [(first * PART, min(last * PART, len(content))) for first, last in shares]
    spans = spans or [(0, len(content))]
    sums = [0] * len(spans)

    def work(number: int) -> None:
        first, last = spans[number]
        file = files[number]
        file.seek(start + first)
        for part in parts(content[first:last]):
            _fill(part, file.readinto)
            sums[number] = zlib.crc32(part, sums[number])

    threads.run_together(*[(work, number) for number in range(len(spans))])
    total = 0
    for (first, last), one in zip(spans, sums, strict=True):
        total = joined(total, one, last - first)
    return total


def _fill(part: memoryview, read: Callable[[memoryview], int]) -> None:
    while part:
        count = read(part)
        if not count:
            raise EOFError("it ends before the numbers do")
        part = part[count:]
