"""Numbers on their way between memory and a file, a part at a time, and their check sums.

A file is written as a whole or not at all, and says of an array what it is before the array is
read.
"""

from __future__ import annotations

import errno
import os
import secrets
import shutil
import stat
import zlib
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tapetensor.arrays.array import Array, native
from tapetensor.kernels.numerics import threads
from tapetensor.machine.settings import IN_WEBASSEMBLY

# So many bytes are still in the cache when the sum of what was read, or is written, is computed.
PART = 1 << 20
_WIDTH = 1024


def as_bytes(array: Array) -> memoryview:
    """Return the bytes of an array that lies in C order, without a copy."""
    flat: Any = array.reshape(-1).view(np.uint8)
    return memoryview(flat)


def parts(content: memoryview) -> list[memoryview]:
    """Return bytes in parts that fit in the cache."""
    return [content[start : start + PART] for start in range(0, len(content), PART)]


def check_sum(part: memoryview) -> int:
    """Return a CRC of the sums of rows and columns of a part, a quarter of the work of one of all.

    The part is read as words of eight bytes in rows of 1,024. A byte that changed changes the sums
    of its row and its column; words that changed places leave one of the two, and not the other.
    """
    words = np.frombuffer(part, "<u8", len(part) // 8)
    rows = words[: words.size // _WIDTH * _WIDTH].reshape(-1, _WIDTH)
    total = zlib.crc32(rows.sum(0))
    total = zlib.crc32(rows.sum(1), total)
    return zlib.crc32(part[rows.nbytes :], total)


def read_at_once(content: memoryview, files: Sequence[Any], start: int) -> list[int]:
    """Fill memory with what a file has from a place on; return the check sums of its parts.

    Args:
        files: the file, opened without a buffer once for every thread that is to read.
    """
    pieces = parts(content)
    shares = threads.shares(len(pieces), len(files)) if len(pieces) > len(files) else []
    sums = [0] * len(pieces)

    def work(file: Any, first: int, last: int) -> None:
        file.seek(start + first * PART)
        for number in range(first, last):
            _fill(pieces[number], file.readinto)
            sums[number] = check_sum(pieces[number])

    spans = shares or [(0, len(pieces))]
    calls = [(work, file, *span) for file, span in zip(files, spans, strict=False)]
    threads.run_together(*calls)
    return sums


def _fill(part: memoryview, read: Callable[[memoryview], int]) -> None:
    while part:
        count = read(part)
        if not count:
            raise EOFError("it ends before the numbers do")
        part = part[count:]


# numpy has no such dtype; its arrays are read as float32, which has all of its numbers.
BFLOAT16 = "bfloat16"
# What a file may hold in the place of an array, and nobody reads.
PICKLE = "pickle"


class Header(NamedTuple):
    """Shape and dtype of an array."""

    shape: tuple[int, ...]
    # As numpy writes it, or as the file does where numpy has no such dtype.
    dtype: str


class Source(NamedTuple):
    """Arrays by name, which can be asked for their headers first."""

    headers: Mapping[str, Header]
    # Returns a copy of an array, in C order.
    array: Callable[[str], Array]

    def behind(self, prefix: str) -> Source:
        """Return the arrays whose names begin with a prefix, by the rest of their names."""
        headers = {
            name.removeprefix(prefix): header
            for name, header in self.headers.items()
            if name.startswith(prefix)
        }
        return Source(headers, lambda name: self.array(prefix + name))


def header_of(array: Array) -> Header:
    """Return the header of an array, whatever the order of its bytes."""
    return Header(array.shape, str(native(array.dtype)))


def write_atomically(path: Path, write: Callable[[Path], object]) -> None:
    """Let `write` make a file beside `path`, and put that in its place once it is on the disk.

    Whatever happens before that moment, an exception or a power cut, leaves what was there. A
    symbolic link stays one, and a file that was there keeps its permissions, which what is written
    before has as well.
    """
    target = Path(os.path.realpath(path))
    check_regular(target)
    # In the same directory, for a file cannot be moved between file systems in one go. Its name is
    # short, for that of the target may be as long as names can be.
    temporary = target.with_name(f".{secrets.token_hex(8)}.tmp")
    mode = 0o600 if target.exists() else 0o666
    os.close(os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, mode))
    try:
        write(temporary)
        if target.exists():
            shutil.copymode(target, temporary)
        _flush(temporary, os.O_RDWR)
        os.replace(temporary, target)
    finally:
        temporary.unlink(missing_ok=True)
    # So that the new name survives a power cut as well; elsewhere directories cannot be opened, or
    # be flushed.
    if os.name == "posix" and not IN_WEBASSEMBLY:
        _flush(target.parent, os.O_RDONLY)


def check_regular(path: Path) -> None:
    """Refuse a pipe or a device, which nobody may ever write into or read from."""
    with suppress(FileNotFoundError):
        mode = path.stat().st_mode
        if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
            raise OSError(errno.EINVAL, "it is a pipe or a device, and no file", os.fspath(path))


def _flush(path: Path, access: int) -> None:
    descriptor = os.open(path, access)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
