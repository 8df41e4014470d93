"""Saving and loading a model, and a checkpoint of it with Adam, by its megabytes.

python -m benchmarks.scale.files --sizes 128 512
"""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.scale.turns import Growth, Step, main

# A matrix of so many rows and columns is 4 MB.
SIDE = 1024


def _layers(megabytes: int) -> int:
    return max(1, megabytes // 4)


def _place(name: str) -> Path:
    folder = tempfile.mkdtemp()
    atexit.register(shutil.rmtree, folder)
    return Path(folder) / name


def _model(megabytes: int) -> Any:
    import tapetensor as tt
    from tapetensor import nn

    class Layers(nn.Module):
        weights: list[tt.Tensor[Any, Any, Any]]

        def forward(self, x: Any) -> Any:
            for weight in self.weights:
                x = x @ weight
            return x

    shape = (SIDE, SIDE)
    return Layers(weights=[tt.full(shape, float(i)) for i in range(_layers(megabytes))])


def saving(name: str) -> Callable[[int], Step]:
    """Return what saves a model of tapetensor under a name, which says the format."""

    def build(megabytes: int) -> Step:
        from tapetensor import io

        model, path = _model(megabytes), _place(name)
        return lambda: io.save(path, model)

    return build


def loading(name: str) -> Callable[[int], Step]:
    """Return what loads a model of tapetensor."""

    def build(megabytes: int) -> Step:
        from tapetensor import io

        model, path = _model(megabytes), _place(name)
        io.save(path, model)
        return lambda: io.load(path, model)

    return build


def checkpoint(name: str) -> Callable[[int], Step]:
    """Return what writes a model of tapetensor with its optimizer."""

    def build(megabytes: int) -> Step:
        from tapetensor import Gradients, io, optim

        model, path = _model(megabytes), _place(name)
        optimizer = optim.Adam(model)
        grads = Gradients()
        for tensor in model.parameters().values():
            grads.insert(tensor, np.ones((SIDE, SIDE), np.float32))
        optimizer.step(grads)
        del grads
        return lambda: io.save_checkpoint(path, model=model, optimizer=optimizer)

    return build


def _their_model(megabytes: int) -> Any:
    import torch

    weights = [torch.full((SIDE, SIDE), float(i)) for i in range(_layers(megabytes))]
    return torch.nn.ParameterList(weights)


def their_saving(megabytes: int) -> Step:
    """Return what saves a model of PyTorch by the library safetensors, on the disk as ours."""
    from safetensors.torch import save_file

    model, path = _their_model(megabytes), _place("model.safetensors")

    def step() -> None:
        save_file({name: one.detach() for name, one in model.state_dict().items()}, path)
        _flush(path)

    return step


def their_loading(megabytes: int) -> Step:
    """Return what loads it."""
    from safetensors.torch import load_file, save_file

    model, path = _their_model(megabytes), _place("model.safetensors")
    save_file({name: one.detach() for name, one in model.state_dict().items()}, path)
    return lambda: model.load_state_dict(load_file(path))


def their_checkpoint(megabytes: int) -> Step:
    """Return what writes a model of PyTorch with its optimizer, as its users do."""
    import torch

    model, path = _their_model(megabytes), _place("run.pt")
    optimizer = torch.optim.Adam(model.parameters())
    for parameter in model.parameters():
        parameter.grad = torch.ones_like(parameter)
    optimizer.step()
    optimizer.zero_grad()

    def step() -> None:
        torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, path)
        _flush(path)

    return step


def _flush(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    os.fsync(descriptor)
    os.close(descriptor)


if __name__ == "__main__":
    main(
        *[
            Growth(
                title,
                {
                    ".safetensors": ours("model.safetensors"),
                    ".npz": ours("model.npz"),
                    "torch": theirs,
                },
                (128, 512),
                4,
            )
            for title, ours, theirs in (
                ("Saving a model, by MB", saving, their_saving),
                ("Loading a model, by MB", loading, their_loading),
                (
                    "Writing a checkpoint with Adam, by MB of the model",
                    checkpoint,
                    their_checkpoint,
                ),
            )
        ]
    )
