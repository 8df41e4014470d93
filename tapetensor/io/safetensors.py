"""The ``.safetensors`` format, by the library of that name, which is an optional dependency."""

from __future__ import annotations

import difflib
import json
import os
import zlib
from collections.abc import Collection, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import numpy as np
from typing_extensions import override

from tapetensor.arrays.array import Array
from tapetensor.arrays.libraries import to_numpy
from tapetensor.errors import FileFormatError
from tapetensor.extras import import_extra
from tapetensor.io.disk import BFLOAT16, Header, as_bytes, check_sum, parts, read_at_once
from tapetensor.kernels.numerics import threads

# The format itself has no check sum. Ours stands in its metadata, which other readers ignore, and
# a file of another writer is not expected to have one.
_CHECK_SUM = "tapetensor.sums"
_METADATA = "__metadata__"
# What stands in its place until all is written.
_UNKNOWN = "0" * 8
# A header has about a hundred bytes for each array, and takes fifteen times as much in memory.
_LONGEST_HEADER = 1 << 20

_NUMPY_NAMES = {
    "BF16": BFLOAT16,
    "BOOL": "bool",
    "C64": "complex64",
    **{f"I{bits}": f"int{bits}" for bits in (8, 16, 32, 64)},
    **{f"U{bits}": f"uint{bits}" for bits in (8, 16, 32, 64)},
    **{f"F{bits}": f"float{bits}" for bits in (16, 32, 64)},
}
_THEIR_NAMES = {ours: theirs for theirs, ours in _NUMPY_NAMES.items()}


def refusal(names: Collection[str]) -> str:
    """Return why the format cannot have these names; empty if it can."""
    return f"{_METADATA!r} is where a header has its notes" if _METADATA in names else ""


def write(path: Path, arrays: Mapping[str, Array]) -> None:
    """Write arrays by name, of which none is refused, without a copy of them all."""
    _library("safetensors")
    # Those of large elements first, so that each begins at a multiple of their size.
    names = sorted(arrays, key=lambda name: (-arrays[name].dtype.itemsize, name))
    entries: dict[str, Any] = {"__metadata__": {_CHECK_SUM: _UNKNOWN}}
    end = 0
    for name in names:
        begin, end = end, end + _length(arrays[name])
        kind = _THEIR_NAMES[str(arrays[name].dtype)]
        entries[name] = {"dtype": kind, "shape": arrays[name].shape, "data_offsets": [begin, end]}
    header = json.dumps(entries, ensure_ascii=False, separators=(",", ":")).encode()
    header += b" " * (-len(header) % 8)
    sums: dict[str, list[int]] = {}
    with path.open("wb") as file:
        file.write(len(header).to_bytes(8, "little") + header)
        for name in names:
            content = as_bytes(np.asarray(to_numpy(arrays[name]), _stored(arrays[name]), order="C"))
            sums[name] = []
            for part in parts(content):
                sums[name].append(check_sum(part))
                file.write(part)
        file.seek(8 + header.index(_UNKNOWN.encode()))
        file.write(_check_sum(sums).encode())


def _length(array: Array) -> int:
    """Return how many bytes the elements have; an array of another library has no `nbytes`."""
    return int(array.size * array.dtype.itemsize)


class Reader(AbstractContextManager["Reader"]):
    """An open file."""

    def __init__(self, path: Path) -> None:
        # Opened apart, so that a file that is not there is told from one of another format.
        with path.open("rb") as file:
            length = int.from_bytes(file.read(8), "little")
            rest = file.seek(0, os.SEEK_END) - 8 - length
            # One that is longer than the file is told by the library.
            if 0 <= rest < 8 * (length - _LONGEST_HEADER):
                raise FileFormatError(
                    f"the header has {length} bytes for {rest} bytes of numbers, which no arrays "
                    "need"
                )
            # The library checks that the parts of the file are those that the header says.
            metadata = self._read_headers(path)
            file.seek(8)
            entries = json.loads(file.read(length))
        self._places = {
            name: 8 + length + entries[name]["data_offsets"][0] for name in self.headers
        }
        self._wanted = metadata.get(_CHECK_SUM)
        # Its name may be what was damaged.
        if self._wanted is None and difflib.get_close_matches(_CHECK_SUM, metadata, cutoff=0.8):
            raise FileFormatError("the check sum has another name than it was written under")
        self._sums: dict[str, list[int]] = {}
        self._files = [path.open("rb", buffering=0) for _ in range(threads.count())]

    def _read_headers(self, path: Path) -> dict[str, str]:
        """Read what the file says of each array; return what it says beside that."""
        with _library("safetensors").safe_open(path, framework="np") as file:
            self.headers: dict[str, Header] = {}
            for name in file.keys():  # noqa: SIM118  # it is no dict
                found = file.get_slice(name)
                dtype = found.get_dtype()
                dtype = _NUMPY_NAMES.get(dtype, dtype.lower())
                self.headers[name] = Header(tuple(found.get_shape()), dtype)
            metadata: dict[str, str] = file.metadata() or {}
        return metadata

    @override
    def __exit__(self, *_: object) -> None:
        for file in self._files:
            file.close()

    def array(self, name: str) -> Array:
        """Return an array, having noted the check sums of its parts."""
        shape, dtype = self.headers[name]
        stored = np.empty(shape, "<u2" if dtype == BFLOAT16 else np.dtype(dtype).newbyteorder("<"))
        content = as_bytes(stored)
        self._sums[name] = read_at_once(content, self._files, self._places[name])
        if dtype == BFLOAT16:
            # numpy has none. It is the first half of the bits of a float32.
            bits = stored.astype(np.uint32) << 16
            return bits.view(np.float32)
        return stored.astype(dtype, copy=False)

    def check(self) -> None:
        """Compare the check sum, if there is one; what was not read so far is read for it."""
        if self._wanted is None:
            return
        for name in self.headers:
            if name not in self._sums:
                self.array(name)
        if self._wanted != _check_sum(self._sums):
            raise FileFormatError("the values are not those that were written")


def _library(name: str) -> Any:
    return import_extra(
        name, ".safetensors files", "safetensors", ".npz files need nothing but numpy"
    )


def _stored(array: Array) -> np.dtype[Any]:
    """Return the dtype that an array has in a file, where the first byte is the lowest."""
    return array.dtype.newbyteorder("<")


def _check_sum(sums: Mapping[str, list[int]]) -> str:
    """Return the check sum of all names, with those of the parts of their arrays."""
    return f"{zlib.crc32(json.dumps(sums, sort_keys=True).encode()):08x}"
