"""Files are written and read a part at a time: no copy of the whole, the same bytes and sums."""

from __future__ import annotations

import tracemalloc
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tapetensor as tt
from tapetensor import io, nn
from tapetensor.io import disk
from tests.io.models import FORMATS, needs_safetensors

# More than a part, and no multiple of one.
SIDE = 1100


class Large(nn.Module):
    """A few matrices."""

    weights: list[tt.Tensor2D[int, int]]


def large(seed: int) -> Large:
    rng = np.random.default_rng(seed)
    return Large(weights=[tt.normal((SIDE, SIDE), rng=rng) for _ in range(4)])


@pytest.mark.parametrize("length", [0, 1, 7, 1000, 1 << 20])
def test_sums_of_parts_are_joined_to_that_of_the_whole(
    length: int, rng: np.random.Generator
) -> None:
    first, second = rng.bytes(99), rng.bytes(length)
    joined = disk.joined(zlib.crc32(first), zlib.crc32(second), length)
    assert joined == zlib.crc32(first + second)


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


@pytest.mark.parametrize("suffix", FORMATS)
def test_a_byte_that_changed_far_inside_is_noticed(tmp_path: Path, suffix: str) -> None:
    path, model = tmp_path / f"model{suffix}", large(1)
    io.save(path, model)
    other = large(2)
    io.load(path, other)
    before = io.state_dict(other)
    for name, array in io.state_dict(model).items():
        np.testing.assert_array_equal(before[name], array)

    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    with pytest.raises(tt.FileFormatError):
        io.load(path, other)
    for name, array in io.state_dict(other).items():
        np.testing.assert_array_equal(before[name], array)


@needs_safetensors
@pytest.mark.parametrize("fits", [True, False])
def test_damage_is_noticed_where_nobody_reads(tmp_path: Path, fits: bool) -> None:
    path, model = tmp_path / "run.safetensors", large(1)
    io.save_checkpoint(path, model=model, other=large(2))
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)

    fresh = large(3) if fits else nn.Linear(2, 1, rng=np.random.default_rng(0))
    with pytest.raises(tt.FileFormatError, match="not those that were written"):
        io.load_checkpoint(path, model=fresh)


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
