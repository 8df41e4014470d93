"""Causal attention over named dims, written once for every batch, head and time."""

from __future__ import annotations

from typing import Literal as L
from typing import NewType

import numpy as np

import tapetensor as tt
from tapetensor import NoneTape, Tensor, Tensor2D, Tensor4D
from tapetensor.typing import Ds, K, M, N, T

Batch = NewType("Batch", int)
Time = NewType("Time", int)
Heads = L[2]


def attention(
    query: Tensor[tuple[*Ds, M, K], T],
    key: Tensor[tuple[*Ds, N, K], T],
    value: Tensor[tuple[*Ds, N, K], T],
    visible: Tensor2D[M, N, NoneTape, np.bool_],
) -> Tensor[tuple[*Ds, M, K], T]:
    scores = query @ key.transpose()
    return tt.where(visible, scores, -1e9).softmax(axis=-1) @ value


def with_a_learned_bias(
    query: Tensor[tuple[*Ds, M, K], T],
    key: Tensor[tuple[*Ds, N, K], T],
    value: Tensor[tuple[*Ds, N, K], T],
    bias: Tensor2D[M, N, T],
) -> Tensor[tuple[*Ds, M, K], T]:
    return tt.scaled_dot_product_attention(query, key, value, bias=bias)


def causal(size: Time) -> Tensor2D[Time, Time, NoneTape, np.bool_]:
    mask: Tensor2D[Time, Time, NoneTape, np.bool_] = tt.from_numpy(
        np.tri(size, dtype=np.bool_), (size, size)
    )
    return mask


def attend_to_itself(
    x: Tensor4D[Batch, Heads, Time, L[4], T],
) -> Tensor4D[Batch, Heads, Time, L[4], T]:
    return attention(x, x, x, causal(x.shape[2]))


if __name__ == "__main__":
    rng = np.random.default_rng(0)
    x: Tensor4D[Batch, Heads, Time, L[4]] = tt.normal((Batch(3), 2, Time(5), 4), rng=rng)

    plain = attend_to_itself(x)
    bias: Tensor2D[Time, Time] = tt.zeros((Time(5), Time(5)))
    learned = with_a_learned_bias(x, x, x, bias)
    of_bias = with_a_learned_bias(x.trace(), x.trace(), x.trace(), bias.trace()).sum().backward()
    grads = attend_to_itself(x.trace()).square().sum().backward()

    # The first position sees only itself.
    np.testing.assert_allclose(plain.numpy()[:, :, 0], x.numpy()[:, :, 0], rtol=1e-6)
    assert grads[x].shape == learned.shape == (3, 2, 5, 4)
    assert of_bias[bias].shape == (5, 5)
