"""A step of Adam on a table of 64 columns, of which 512 rows are read, by the rows of the table.

python -m benchmarks.scale.embedding --sizes 100000 1000000
"""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.scale.turns import Growth, Step, main

WIDTH, READ = 64, 512


def _ids(rows: int) -> Any:
    return np.random.default_rng(0).integers(rows, size=READ)


def whole(rows: int) -> Step:
    """Return a step of tapetensor with gradients of the whole table."""
    return _ours(rows, sparse=False)


def eager(rows: int) -> Step:
    """Return a step of tapetensor with gradients of rows, which SparseAdam takes."""
    return _ours(rows, sparse=True)


def _ours(rows: int, *, sparse: bool) -> Step:
    import tapetensor as tt
    from tapetensor import nn, optim

    model: Any = nn.Embedding(rows, WIDTH, rng=np.random.default_rng(1), sparse=sparse)
    optimizer = optim.SparseAdam(model) if sparse else optim.Adam(model)
    ids: Any = tt.from_numpy(_ids(rows))

    def step() -> object:
        loss = model.forward(ids.trace()).square().mean()
        optimizer.step(loss.backward(wrt=model))
        return loss.item()

    return step


def dense(rows: int) -> Step:
    """Return a step of PyTorch with gradients of the whole table."""
    return _theirs(rows, sparse=False)


def theirs(rows: int) -> Step:
    """Return a step of PyTorch with gradients of rows, which SparseAdam takes."""
    return _theirs(rows, sparse=True)


def _theirs(rows: int, *, sparse: bool) -> Step:
    import torch

    model = torch.nn.Embedding(rows, WIDTH, sparse=sparse)
    adam = torch.optim.SparseAdam if sparse else torch.optim.Adam
    optimizer = adam(list(model.parameters()))
    ids = torch.from_numpy(_ids(rows))

    def step() -> object:
        optimizer.zero_grad()
        loss = model(ids).square().mean()
        loss.backward()
        optimizer.step()
        return loss.item()

    return step


if __name__ == "__main__":
    main(
        Growth(
            "Embedding of 64 with Adam, 512 ids, by rows",
            {
                "tapetensor, dense": whole,
                "torch, dense": dense,
                "tapetensor, sparse": eager,
                "torch, sparse": theirs,
            },
            (100_000, 1_000_000),
            1000,
        )
    )
