"""Attention that sees only the past, any leading dims."""
# ruff: noqa: D103

from __future__ import annotations

from typing import Literal as L
from typing import NewType

import numpy as np

import tapetensor as tt
from tapetensor import NoneTape, Tensor, Tensor2D, Tensor3D
from tapetensor.typing import Ds, K, M, N, T

Batch = NewType("Batch", int)
Time = NewType("Time", int)


def attention(
    query: Tensor[tuple[*Ds, M, K], T],
    key: Tensor[tuple[*Ds, N, K], T],
    value: Tensor[tuple[*Ds, N, K], T],
    visible: Tensor2D[M, N, NoneTape, np.bool_],
) -> Tensor[tuple[*Ds, M, K], T]:
    scores = query @ key.transpose()
    return tt.where(visible, scores, -1e9).softmax(axis=-1) @ value


def main() -> None:
    rng = np.random.default_rng(0)
    batch, time = Batch(3), Time(5)
    visible: Tensor2D[Time, Time, NoneTape, np.bool_] = tt.from_numpy(
        np.tri(time, dtype=np.bool_), (time, time)
    )
    query: Tensor3D[Batch, Time, L[4]] = tt.normal((batch, time, 4), rng=rng)
    memory: Tensor3D[Batch, Time, L[4]] = tt.normal((batch, time, 4), rng=rng)
    key, value = memory.trace(), memory.trace()
    mixed = attention(query.trace(), key, value, visible)
    grads = mixed.sum().backward()
    assert grads[query].shape == (3, 5, 4)
    assert attention(query, memory, memory, visible).shape == (3, 5, 4)


if __name__ == "__main__":
    main()
