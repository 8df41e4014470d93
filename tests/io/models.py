"""Models of every kind of tensor, and the formats that they are saved in."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from typing import Any
from typing import Literal as L

import numpy as np
import pytest

import tapetensor as tt
from tapetensor import NoneTape, Tensor0D, Tensor1D, Tensor2D, io, nn
from tapetensor.typing import B, T

Array = np.ndarray[Any, np.dtype[Any]]

needs_safetensors = pytest.mark.skipif(
    importlib.util.find_spec("safetensors") is None, reason="safetensors is not installed"
)
FORMATS = [".npz", pytest.param(".safetensors", marks=needs_safetensors)]


def seeds(shape: tuple[int, ...], dtype: Any, rng: np.random.Generator) -> Array:
    return rng.integers(100, size=shape).astype(dtype)


class Net(nn.Module):
    """Layers, a buffer, tensors of rank 0 and of integers."""

    hidden: nn.Linear[L[3], L[4]]
    norm: nn.BatchNorm1d[L[4]]
    scale: Tensor0D[NoneTape, np.float64] = nn.parameter(nn.init.ones)
    mask: Tensor1D[L[4], NoneTape, np.bool_] = nn.buffer(seeds)
    order: Tensor1D[L[2], NoneTape, np.int64] = nn.buffer(seeds)
    empty: Tensor2D[L[0], L[2]] = nn.parameter(nn.init.zeros)
    layers: list[nn.Linear[L[4], L[4]]] = nn.repeat(2)

    def forward(self, x: Tensor2D[B, L[3], T]) -> Tensor2D[B, L[4], T]:
        return self.norm.forward(self.hidden.forward(x))


class Tied(nn.Module):
    """One weight under two names."""

    embed: nn.Embedding[L[5], L[4]]
    out: nn.Linear[L[4], L[5]]

    def __init__(self, embed: nn.Embedding[L[5], L[4]], out: nn.Linear[L[4], L[5]]) -> None:
        out.weight = embed.weight
        self.embed, self.out = embed, out


def net(seed: int) -> Net:
    return tt.build(Net, rng=np.random.default_rng(seed))


def tied(seed: int) -> Tied:
    rng = np.random.default_rng(seed)
    return Tied(nn.Embedding(5, 4, rng=rng), nn.Linear(4, 5, rng=rng))


def layer(seed: int = 0, dtype: Any = np.float32) -> nn.Linear[Any, Any, Any]:
    return nn.Linear(2, 3, dtype, rng=np.random.default_rng(seed))


def assert_same(one: dict[str, Array], other: dict[str, Array]) -> None:
    assert list(one) == list(other)
    for name, array in one.items():
        assert array.dtype == other[name].dtype
        np.testing.assert_array_equal(array, other[name], err_msg=name)


def write(path: Path, arrays: dict[str, Any]) -> None:
    """Write arrays as someone else would."""
    if path.suffix == ".npz":
        np.savez(path, **arrays)
    else:
        library: Any = pytest.importorskip("safetensors.numpy")
        library.save_file({name: np.asarray(array) for name, array in arrays.items()}, path)


def write_raw(path: Path, entries: dict[str, tuple[str, list[int], bytes]]) -> None:
    """Write safetensors of any bytes under any names of dtypes and shapes."""
    header, content = {}, b""
    for name, (dtype, shape, raw) in entries.items():
        place = [len(content), len(content) + len(raw)]
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": place}
        content += raw
    written = json.dumps(header).encode()
    path.write_bytes(len(written).to_bytes(8, "little") + written + content)


def saved(path: Path, seed: int = 1) -> dict[str, Array]:
    """Save a net; return what it holds."""
    model = net(seed)
    io.save(path, model)
    return io.state_dict(model)
