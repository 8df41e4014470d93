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
from tapetensor.io.headers import BFLOAT16, Header

# The format itself has no check sum. Ours stands in its metadata, which other readers ignore, and
# a file of another writer is not expected to have one.
_CHECK_SUM = "tapetensor.crc32"
_METADATA = "__metadata__"
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


def refusal(names: Collection[str]) -> str:
    """Return why the format cannot have these names; empty if it can."""
    return f"{_METADATA!r} is where a header has its notes" if _METADATA in names else ""


def write(path: Path, arrays: Mapping[str, Array]) -> None:
    """Write arrays by name, of which none is refused.

    Raises:
        MissingDependencyError: if the library is not installed.
    """
    in_order = {name: np.asarray(to_numpy(array), order="C") for name, array in arrays.items()}
    metadata = {_CHECK_SUM: _check_sum(in_order)}
    # Written by us, so that a disk that is full is the error that Python has for it.
    path.write_bytes(_library("safetensors.numpy").save(in_order, metadata=metadata))


class Reader(AbstractContextManager["Reader"]):
    """An open file.

    Raises:
        MissingDependencyError: if the library is not installed.
        FileFormatError: if the arrays are not those that were written.
    """

    def __init__(self, path: Path) -> None:
        # Opened apart, so that a file that is not there is told from one of another format.
        with path.open("rb") as file:
            length = int.from_bytes(file.read(8), "little")
            rest = file.seek(0, os.SEEK_END) - 8 - length
        # One that is longer than the file is told by the library.
        if 0 <= rest < 8 * (length - _LONGEST_HEADER):
            raise FileFormatError(
                f"the header has {length} bytes for {rest} bytes of numbers, which no arrays need"
            )
        self._path = path
        self._file: Any = _library("safetensors").safe_open(path, framework="np")
        self.headers: dict[str, Header] = {}
        for name in self._file.keys():  # noqa: SIM118
            found = self._file.get_slice(name)
            dtype = found.get_dtype()
            dtype = _NUMPY_NAMES.get(dtype, dtype.lower())
            self.headers[name] = Header(tuple(found.get_shape()), dtype)
        self._check()

    @override
    def __exit__(self, *_: object) -> None:
        self._file = None

    def array(self, name: str) -> Array:
        """Return an array; the library has none of bfloat16 for numpy."""
        if self.headers[name].dtype == BFLOAT16:
            return self._widened(name)
        return np.array(self._file.get_tensor(name), order="C")

    def _widened(self, name: str) -> Array:
        """Return an array of bfloat16 as float32, of which it is the first half of the bits."""
        with self._path.open("rb") as file:
            length = int.from_bytes(file.read(8), "little")
            begin, end = json.loads(file.read(length))[name]["data_offsets"]
            file.seek(8 + length + begin)
            halves = np.frombuffer(file.read(end - begin), "<u2")
        bits = halves.astype(np.uint32) << 16
        return bits.view(np.float32).reshape(self.headers[name].shape)

    def _check(self) -> None:
        """Compare the check sum, if there is one."""
        metadata = self._file.metadata() or {}
        wanted = metadata.get(_CHECK_SUM)
        if wanted is None:
            # Its name may be what was damaged.
            if difflib.get_close_matches(_CHECK_SUM, metadata, cutoff=0.8):
                raise FileFormatError("the check sum has another name than it was written under")
            return
        if wanted != _check_sum({name: self.array(name) for name in self.headers}):
            raise FileFormatError("the values are not those that were written")


def _library(name: str) -> Any:
    return import_extra(
        name, ".safetensors files", "safetensors", ".npz files need nothing but numpy"
    )


def _check_sum(arrays: Mapping[str, Array]) -> str:
    total = 0
    for name in sorted(arrays):
        total = zlib.crc32(arrays[name].tobytes(), zlib.crc32(name.encode(), total))
    return f"{total:08x}"
