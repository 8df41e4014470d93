"""Files of any bytes, and files that do not fit into memory: all, or an error and nothing."""

from __future__ import annotations

import errno
import pickle
import tracemalloc
import zipfile
from collections.abc import Callable, Iterator
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typing_extensions import override

import tapetensor as tt
from tapetensor import io, nn
from tests.io.models import FORMATS, Array, assert_same, layer, needs_safetensors, write_raw


def loaded(path: Path) -> bool:
    """Load a file into a layer; tell whether it was, having checked that all or nothing was."""
    model = layer(2)
    try:
        io.load(path, model)
    except (tt.FileFormatError, tt.StateMismatchError):
        expected, was_loaded = io.state_dict(layer(2)), False
    else:
        expected, was_loaded = io.state_dict(layer(1)), True
    assert_same(io.state_dict(model), expected)
    return was_loaded


@pytest.mark.parametrize("suffix", FORMATS)
def test_a_file_that_was_cut_short_is_refused(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"layer{suffix}"
    io.save(path, layer(1))
    whole = path.read_bytes()
    assert loaded(path)
    for length in (*range(0, len(whole), 3), len(whole) - 1):
        path.write_bytes(whole[:length])
        assert not loaded(path), length


@pytest.mark.parametrize("suffix", FORMATS)
def test_a_byte_that_changed_is_noticed_or_does_no_harm(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"layer{suffix}"
    io.save(path, layer(1))
    whole = path.read_bytes()
    noticed = 0
    for position in range(len(whole)):
        changed = bytearray(whole)
        changed[position] ^= (0x01, 0x20, 0xFF)[position % 3]
        path.write_bytes(changed)
        noticed += not loaded(path)

    assert noticed > len(whole) / 2


@pytest.mark.parametrize("suffix", FORMATS)
def test_words_that_changed_places_are_noticed(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"rows{suffix}"
    # Of two parts, with a rest that fills no row.
    numbers = np.arange((1 << 19) + 4099, dtype=np.float32)
    io.write(path, {"numbers": numbers})
    whole = path.read_bytes()
    start = whole.index(numbers.tobytes())
    # Words of a row, rows of a part, parts, and words of the rest.
    for size, distance in ((8, 8), (8192, 8192), (8, 8192), (1 << 19, 1 << 20), (8, -24)):
        one = start if distance > 0 else start + numbers.nbytes - 8
        other = one + distance
        first, second = whole[one : one + size], whole[other : other + size]
        changed = bytearray(whole)
        changed[one : one + size], changed[other : other + size] = second, first
        path.write_bytes(changed)
        with pytest.raises(tt.FileFormatError):
            io.read(path)


@pytest.mark.parametrize("suffix", FORMATS)
def test_bytes_of_something_else_are_refused(
    tmp_path: Path, suffix: str, rng: np.random.Generator
) -> None:
    path = tmp_path / f"layer{suffix}"
    others = [b"", b"\0" * 100, b"PK\x03\x04", b"\x93NUMPY", rng.bytes(1000), pickle.dumps([1.0])]
    for content in others:
        path.write_bytes(content)
        with pytest.raises(tt.FileFormatError, match=rf"^load: {path} is damaged, or no {suffix}"):
            io.load(path, layer(1))


class Malicious:
    """Leaves a trace when it is unpickled."""

    ran: bool = False

    @override
    def __reduce__(self) -> tuple[Any, ...]:
        return setattr, (Malicious, "ran", True)


def test_a_pickle_in_an_npz_file_is_refused_and_does_not_run(tmp_path: Path) -> None:
    path = tmp_path / "layer.npz"
    weight = np.array([[Malicious(), None]] * 3, dtype=object)
    np.savez(path, weight=weight, bias=np.zeros(3, np.float32), allow_pickle=True)
    model = layer(1)
    with pytest.raises(tt.FileFormatError, match=r"weight is a pickle, which .*is not read"):
        io.load(path, model)

    assert not Malicious.ran
    assert not loaded(path)


def members(**contents: bytes) -> Iterator[tuple[str, bytes]]:
    yield from ((f"{name}.npy", content) for name, content in contents.items())


def npy(array: Array, shape: str | None = None) -> bytes:
    """Return an array as a file of its own; with another shape in its header."""
    header = repr({"descr": array.dtype.str, "fortran_order": False, "shape": array.shape})
    if shape is not None:
        header = header.replace(repr(array.shape), shape)
    text = header.encode()
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text + array.tobytes()


WEIGHT, BIAS = np.ones((3, 2), np.float32), np.ones((3,), np.float32)


@pytest.mark.parametrize(
    "entries",
    [
        [("readme.txt", b"hello"), *members(weight=npy(WEIGHT), bias=npy(BIAS))],
        [*members(weight=npy(WEIGHT) + b"more", bias=npy(BIAS))],
        [*members(weight=npy(WEIGHT, "(3, 200)"), bias=npy(BIAS))],
        [*members(weight=npy(WEIGHT, "(3, 1000000000000)"), bias=npy(BIAS))],
        [*members(weight=npy(WEIGHT, "(-3, -2)"), bias=npy(BIAS))],
        [*members(weight=npy(WEIGHT, "__import__('os')"), bias=npy(BIAS))],
        [*members(weight=npy(WEIGHT, "(" * 4000), bias=npy(BIAS))],
        [*members(weight=npy(WEIGHT)[:-1], bias=npy(BIAS))],
        [*members(weight=b"", bias=npy(BIAS))],
        [*members(weight=b"\x93NUMPY\x09\x00" + npy(WEIGHT)[8:], bias=npy(BIAS))],
    ],
)
def test_an_archive_of_crooked_entries_is_refused(
    tmp_path: Path, entries: list[tuple[str, bytes]]
) -> None:
    with zipfile.ZipFile(tmp_path / "layer.npz", "w") as archive:
        for name, content in entries:
            archive.writestr(name, content)

    assert not loaded(tmp_path / "layer.npz")


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_an_archive_with_one_name_twice_is_refused(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "layer.npz", "w") as archive:
        for name, content in members(weight=npy(WEIGHT), bias=npy(BIAS)):
            archive.writestr(name, content)
        archive.writestr("bias.npy", npy(BIAS))
    with pytest.raises(tt.FileFormatError, match=r"the entry 'bias.npy' is there twice"):
        io.load(tmp_path / "layer.npz", layer(1))


def bomb(header: bytes, size: int) -> bytes:
    return b"\x93NUMPY\x02\x00" + len(header).to_bytes(4, "little") + header + b" " * size


@pytest.mark.parametrize(
    ("kind", "make", "message"),
    [
        (
            zipfile.ZIP_DEFLATED,
            lambda: bomb(b" " * 10**8, 0),
            "the header of more has 100000000 bytes",
        ),
        (zipfile.ZIP_BZIP2, lambda: npy(BIAS), "more is compressed otherwise than numpy does"),
        (zipfile.ZIP_LZMA, lambda: npy(BIAS), "more is compressed otherwise than numpy does"),
        (
            zipfile.ZIP_DEFLATED,
            lambda: bomb(
                b"{'descr': '|u1', 'fortran_order': False, 'shape': (100000000,), }", 10**8
            ),
            "more inflates to 100000000 bytes, which no text does",
        ),
    ],
)
def test_a_small_file_that_inflates_is_refused_before_it_does(
    tmp_path: Path, kind: int, make: Callable[[], bytes], message: str
) -> None:
    path = tmp_path / "layer.npz"
    with zipfile.ZipFile(path, "w") as archive:
        for name, plain in members(weight=npy(WEIGHT), bias=npy(BIAS)):
            archive.writestr(name, plain)
        archive.writestr("more.npy", make(), kind)
    assert path.stat().st_size < 200_000
    tracemalloc.start()
    try:
        with pytest.raises(tt.FileFormatError, match=message):
            io.load(path, layer(1))
        assert tracemalloc.get_traced_memory()[1] < 1_000_000
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("read", [io.read, lambda path: io.load(path, layer(1), strict=False)])
def test_a_header_of_names_without_numbers_is_not_read(read: Any, tmp_path: Path) -> None:
    pytest.importorskip("safetensors")
    path = tmp_path / "layer.safetensors"
    write_raw(path, {f"weight{number}": ("F32", [0], b"") for number in range(20_000)})

    with pytest.raises(tt.FileFormatError, match=r"the header has \d{7} bytes for 0 bytes"):
        read(path)


@pytest.mark.parametrize("read", [io.read, lambda path: io.load(path, layer(1), strict=False)])
@pytest.mark.parametrize("says_so_twice", [False, True])
def test_a_table_of_contents_without_numbers_is_not_read(
    read: Any, says_so_twice: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if says_so_twice:
        # zipfile writes the second end that archives of more entries have.
        monkeypatch.setattr(zipfile, "ZIP_FILECOUNT_LIMIT", 10)
    path, empty = tmp_path / "layer.npz", BytesIO()
    np.lib.format.write_array(empty, np.empty(0, np.float32))
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for number in range(5000):
            archive.writestr(f"{number:0>240}.npy", empty.getvalue())

    with pytest.raises(tt.FileFormatError, match=r"the table of contents has \d{7} bytes"):
        read(path)


@pytest.mark.parametrize("error", [MemoryError(), OSError(errno.EIO, "Input/output error")])
def test_a_disk_or_a_memory_that_fails_is_not_called_a_damaged_file(
    tmp_path: Path, error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "layer.npz"
    io.save(path, layer(1))

    def fail(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(zipfile.ZipExtFile, "read", fail)
    with pytest.raises(type(error)) as raised:
        io.load(path, layer(2))
    assert raised.value is error


# More than a part, and no multiple of one.
SIDE = 1100


class Large(nn.Module):
    """A few matrices."""

    weights: list[tt.Tensor2D[int, int]]


def large(seed: int) -> Large:
    rng = np.random.default_rng(seed)
    return Large(weights=[tt.normal((SIDE, SIDE), rng=rng) for _ in range(4)])


@needs_safetensors
def test_a_safetensors_file_has_the_bytes_that_the_library_writes(tmp_path: Path) -> None:
    library: Any = pytest.importorskip("safetensors.numpy")
    arrays = {
        "b": np.arange(6, dtype=np.int16).reshape(2, 3),
        "\u00e4": np.asfortranarray(np.arange(6.0).reshape(2, 3)),
        "a": np.array(True),
        "empty": np.empty((0, 3), np.float32),
        "one": np.array(1.5),
    }
    path = tmp_path / "arrays.safetensors"
    io.write(path, arrays)
    content = path.read_bytes()
    with pytest.importorskip("safetensors").safe_open(path, framework="np") as file:
        metadata = file.metadata()

    in_order = {name: np.asarray(array, order="C") for name, array in arrays.items()}
    assert content == library.save(in_order, metadata=metadata)


@pytest.mark.parametrize("suffix", FORMATS)
def test_nothing_of_the_size_of_a_model_is_held_while_it_is_saved(
    tmp_path: Path, suffix: str
) -> None:
    model = large(1)
    size = sum([one.array.nbytes for one in model.parameters().values()])
    # What is imported on the way is no part of it.
    io.save(tmp_path / f"first{suffix}", model)
    tracemalloc.start()
    try:
        io.save(tmp_path / f"model{suffix}", model)
        assert tracemalloc.get_traced_memory()[1] < size / 10
        tracemalloc.reset_peak()
        io.load(tmp_path / f"model{suffix}", model)
        # What is loaded, and no more than one array beside it.
        assert tracemalloc.get_traced_memory()[1] < 1.3 * size
    finally:
        tracemalloc.stop()


@needs_safetensors
def test_a_file_that_is_cut_while_it_is_read_is_damaged(tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    io.save(path, large(1))
    reader = io.safetensors.Reader(path)
    with reader:
        path.write_bytes(path.read_bytes()[:-1])
        name = list(reader.headers)[-1]
        with pytest.raises(EOFError, match="it ends before the numbers do"):
            reader.array(name)
