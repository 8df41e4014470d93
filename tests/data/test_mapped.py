"""Tensors over files: nothing is copied but what a batch has, and nobody can write through them."""

from __future__ import annotations

import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tapetensor as tt
from tapetensor import losses, nn, optim
from tapetensor.data import batches

ROWS, COLUMNS = 50_000, 8


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A file of rows of their number."""
    rows = np.repeat(np.arange(ROWS, dtype=np.float32)[:, None], COLUMNS, axis=1)
    np.save(tmp_path / "rows.npy", rows)
    return tmp_path / "rows.npy"


@pytest.mark.parametrize("order", ["C", "F"])
def test_an_epoch_of_a_file_holds_no_more_than_a_batch(path: Path, order: Any) -> None:
    whole = np.load(path)
    np.save(path, np.asarray(whole, order=order))
    tracemalloc.start()
    try:
        x: Any = tt.from_memmap(np.load(path, mmap_mode="r"), (ROWS, COLUMNS))
        total = 0.0
        for batch in batches(x, size=100):
            total += batch.sum().item()
        # A random order is one number for each row, and the batches are copies.
        for batch in batches(x, size=100, rng=np.random.default_rng(0)):
            total += batch.sum().item()
        assert tracemalloc.get_traced_memory()[1] < whole.nbytes / 2
    finally:
        tracemalloc.stop()
    assert total == pytest.approx(2 * whole.sum(dtype=np.float64), rel=1e-6)


def test_a_model_learns_from_a_file_what_it_learns_from_memory(path: Path) -> None:
    def trained(data: Any) -> Any:
        layer: Any = nn.Linear(COLUMNS, 1, rng=np.random.default_rng(1))
        optimizer = optim.Adam(layer)
        for batch in batches(data[:64], size=16, rng=np.random.default_rng(2)):
            loss = losses.mse(layer.forward(batch.trace()), tt.zeros((16, 1)))
            optimizer.step(loss.backward())
        return layer.weight.numpy()

    mapped = tt.from_memmap(np.load(path, mmap_mode="r"))
    np.testing.assert_array_equal(trained(mapped), trained(tt.from_numpy(np.load(path))))


def test_parts_of_a_file_are_borrowed_too(path: Path) -> None:
    mapped = np.load(path, mmap_mode="r")
    x = tt.from_memmap(mapped[10:20, :2], (10, 2))
    assert x.numpy()[:, 0].tolist() == list(range(10, 20))
    assert np.shares_memory(x.numpy(), mapped)


@pytest.mark.parametrize("mode", ["r+", "c"])
def test_what_can_be_written_through_is_refused(path: Path, mode: Any) -> None:
    mapped = np.load(path, mmap_mode=mode)
    mapped.flags.writeable = False
    for array in (np.load(path, mmap_mode=mode), mapped):
        with pytest.raises(tt.ArgumentValueError, match="can be written through"):
            tt.from_memmap(array)


def test_a_tensor_over_a_file_cannot_be_written_to(path: Path) -> None:
    x = tt.from_memmap(np.load(path, mmap_mode="r"))
    array = x.numpy()
    with pytest.raises(ValueError, match="read-only"):
        array[0, 0] = 1
    with pytest.raises(ValueError, match="cannot set WRITEABLE"):
        array.flags.writeable = True
