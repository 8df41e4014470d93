"""The ``.npz`` format: a zip archive of ``.npy`` files, numpy's own. Pickles are never read."""

from __future__ import annotations

import io
import math
import os
import zipfile
from collections.abc import Collection, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from typing_extensions import override

from tapetensor.arrays.array import Array, native
from tapetensor.arrays.libraries import to_numpy
from tapetensor.errors import FileFormatError
from tapetensor.io.disk import PICKLE, Header, as_bytes, parts

_ENDING = ".npy"
_LONGEST_NAME = (1 << 16) - 1
# numpy's headers have about a hundred bytes, and a thousand with many axes.
_LONGEST_HEADER = 1 << 14
# A table of contents has some 70 bytes for each array, and takes fifteen times as much in memory.
_LONGEST_CONTENTS = 1 << 20
# What ends an archive, with the longest comment.
_LONGEST_END = (1 << 16) + 98
# What numpy writes. The others inflate a thousand times more at once than zlib.
_KINDS = {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED}
# A text, as the history of a training, is deflated to a tenth or so.
_MOST_INFLATED_TEXT = 100


def refusal(names: Collection[str]) -> str:
    """Return why the format cannot have these names; empty if it can."""
    for name in names:
        entry = name + _ENDING
        # A name ends at a zero byte there, and on Windows has slashes for backslashes.
        if zipfile.ZipInfo(entry).filename != entry:
            return f"{name!r} would come back as another name"
        if len(entry.encode()) > _LONGEST_NAME:
            return f"{name[:30]!r}... has more than {_LONGEST_NAME - len(_ENDING)} bytes"
        if entry in names:
            return f"of {name!r} and {entry!r} numpy.load gives one array for both"
    return ""


def write(path: Path, arrays: Mapping[str, Array]) -> None:
    """Write arrays by name, of which none is refused."""
    with zipfile.ZipFile(path, "w") as archive:
        for name, array in arrays.items():
            # A ZipInfo of its own carries no time, so that equal arrays make equal files.
            entry = zipfile.ZipInfo(name + _ENDING)
            content = np.asarray(to_numpy(array), order="C")
            with archive.open(entry, "w", force_zip64=True) as member:
                header = np.lib.format.header_data_from_array_1_0(content)
                np.lib.format.write_array_header_1_0(member, header)
                for part in parts(as_bytes(content)):
                    member.write(part)


class Reader(AbstractContextManager["Reader"]):
    """An open archive, all of whose entries are arrays."""

    def __init__(self, path: Path) -> None:
        # Opened apart, so that a file that is not there is told from one that is no archive.
        self._file = path.open("rb")
        try:
            _check_contents(self._file)
            self._archive = zipfile.ZipFile(self._file)
            self.headers = self._read_headers()
        except BaseException:
            self._file.close()
            raise

    @override
    def __exit__(self, *_: object) -> None:
        self._archive.close()
        self._file.close()

    def array(self, name: str) -> Array:
        """Return an array; the archive's check sum is compared on the way."""
        with self._archive.open(name + _ENDING) as member:
            array: Array = np.lib.format.read_array(member, allow_pickle=False)
            # The check sum is compared at the end of the entry, which has to be reached for it.
            if member.read(1):
                raise FileFormatError(f"{name} is longer than its header says")
        return np.asarray(array, native(array.dtype), order="C")

    def check(self) -> None:
        """Do nothing: entries have check sums of their own, which are compared as they are read."""

    def _read_headers(self) -> dict[str, Header]:
        headers: dict[str, Header] = {}
        for entry in self._archive.infolist():
            name = entry.filename.removesuffix(_ENDING)
            if name == entry.filename or name in headers:
                what = "no array" if name == entry.filename else "there twice"
                raise FileFormatError(f"the entry {entry.filename!r} is {what}")
            if entry.compress_type not in _KINDS:
                raise FileFormatError(
                    f"{name} is compressed otherwise than numpy does; write it with numpy.savez"
                )
            with self._archive.open(entry) as member:
                shape, dtype = _read_header(name, member)
                length = member.tell()
            if dtype.hasobject:
                headers[name] = Header(shape, PICKLE)
                continue
            size = math.prod(shape) * dtype.itemsize
            if entry.file_size - length != size:
                raise FileFormatError(f"{name} has another size than its header says")
            if dtype == np.uint8 and size > _MOST_INFLATED_TEXT * entry.compress_size:
                raise FileFormatError(f"{name} inflates to {size} bytes, which no text does")
            headers[name] = Header(shape, str(native(dtype)))
        return headers


def _check_contents(file: BinaryIO) -> None:
    """Raise FileFormatError if the table of contents is too long for the numbers beside it."""
    size = file.seek(0, os.SEEK_END)
    file.seek(max(0, size - _LONGEST_END))
    end = file.read()
    # Where zipfile looks for it: right at the end, or in front of a comment.
    at = len(end) - 22 if end[-22:].startswith(b"PK\5\6") else end.rfind(b"PK\5\6")
    length = int.from_bytes(end[at + 12 : at + 16], "little") if at >= 0 else 0
    # An archive may say so once more, for what does not fit into four bytes.
    if at >= 76 and end[at - 20 :].startswith(b"PK\6\7"):
        length = int.from_bytes(end[at - 36 : at - 28], "little")
    if 0 <= size - length < 8 * (length - _LONGEST_CONTENTS):
        raise FileFormatError(
            f"the table of contents has {length} bytes for {size - length} bytes of arrays, which "
            "none need"
        )
    file.seek(0)


def _read_header(name: str, member: Any) -> tuple[tuple[int, ...], np.dtype[Any]]:
    # Its length is looked at first, for numpy would read as many bytes as it says.
    start = member.read(12)
    version = np.lib.format.read_magic(io.BytesIO(start))
    length = int.from_bytes(start[8 : 10 if version == (1, 0) else 12], "little")
    if length > _LONGEST_HEADER:
        raise FileFormatError(f"the header of {name} has {length} bytes, which no array needs")
    member.seek(8)
    read = (
        np.lib.format.read_array_header_1_0
        if version == (1, 0)
        # Versions 2 and 3 differ in the encoding of the names of fields only.
        else np.lib.format.read_array_header_2_0
    )
    shape, _, dtype = read(member)
    return shape, dtype
