"""Queries, keys, values and masks that do not go together. Every thunk raises."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal as L

import numpy as np

import tapetensor as tt
from tapetensor import NoneTape, Tensor2D, Tensor3D, Tensor4D, nn
from tapetensor import scaled_dot_product_attention as attention
from tapetensor.typing import B, K, M, N

q, k, v = tt.ones((2, 5, 8)), tt.ones((2, 7, 8)), tt.ones((2, 7, 6))
k9, k3 = tt.ones((2, 7, 9)), tt.ones((3, 7, 8))
kd = tt.ones((2, 7, 8), np.float64)
bare = nn.UnbiasedMultiHeadAttention(8, 2, rng=np.random.default_rng(0))
layer = nn.MultiHeadAttention(8, 2, rng=np.random.default_rng(0))
encoder = tt.build(nn.EncoderBlock[L[8], L[2], L[16]], rng=np.random.default_rng(0))
decoder = tt.build(nn.DecoderBlock[L[8], L[2], L[16]], rng=np.random.default_rng(0))
model = tt.build(nn.Transformer[L[8], L[2], L[16], L[1], L[1]], rng=np.random.default_rng(0))
see, pad = tt.ones((5, 6), np.bool_), tt.ones((2, 1, 5), np.bool_)
p, row2 = tt.ones((2, 2, 5, 8)), tt.ones((2, 5), np.bool_)

BAD: tuple[Callable[[], object], ...] = (
    lambda: attention(q.trace(), k9, v),  # E: the features of queries and keys differ, 8 != 9
    lambda: attention(q, kd, v),  # E: dtypes differ: float32 and float64 and float32; convert one
    lambda: attention(q, k, v, bias=q),  # E: a bias of shape (2, 5, 8) does not broadcast to the sc
    lambda: attention(q, k, v, bias=tt.ones((5, 7), np.float64)),  # E: dtypes differ: float32 and f
    lambda: layer(k9),  # E: MultiHeadAttention: the last axis of the input must have size 8, got sh
    lambda: layer(q, k9, k9),  # E: the last axis of the input must have size 8, got shape (2, 7, 9)
    lambda: layer.forward(q, k, q),  # E: MultiHeadAttention: query (2, 5, 8), key (2, 7, 8) and val
    lambda: layer(q, k3, k3),  # E: do not fit: the leading axes differ, 2 != 3
    lambda: bare(q, k3, k3),  # E: UnbiasedMultiHeadAttention: query (2, 5, 8), key (3, 7, 8) and va
    lambda: layer(q, mask=see),  # E: a mask of shape (5, 6) does not broadcast to the scores (2, 2,
    lambda: layer(q, bias=q),  # E: a bias of shape (2, 5, 8) does not broadcast to the scores (2,
    lambda: layer(q, k),  # E: MultiHeadAttention: the argument value is missing
    lambda: encoder(q, mask=see),  # E: EncoderBlock: a mask of shape (5, 6) does not broadcast to t
    lambda: encoder(k9),  # E: EncoderBlock: the last axis of the input must have size 8, got shape
    lambda: decoder(q, k3),  # E: DecoderBlock: x (2, 5, 8) and memory (3, 7, 8) do not fit; they ar
    lambda: decoder(q, k9),  # E: DecoderBlock: the last axis of the input must have size 8, got sha
    lambda: model.forward(k3, q),  # E: Transformer: source (3, 7, 8) and target (2, 5, 8) do not fi
    lambda: layer(q, mask=pad),  # E: MultiHeadAttention: a mask of shape (2, 1, 5) has more axes th
    lambda: encoder(q, mask=pad),  # E: EncoderBlock: a mask of shape (2, 1, 5) has more axes than
    lambda: attention(p, p, p, mask=pad),  # E: a mask of shape (2, 1, 5) has more axes than queries
    lambda: layer(q, keys_mask=see),  # E: MultiHeadAttention: a keys_mask says of each key whether
    lambda: layer(q, k, k, keys_mask=row2),  # E: whether it is there, (2, 7), got shape (2, 5)
    lambda: encoder(q, keys_mask=pad),  # E: EncoderBlock: a keys_mask says of each key whether it i
    lambda: attention(q, k, v, mask=see),  # E: a mask of shape (5, 6) does not broadcast to the sco
)


def swapped(x: Tensor3D[B, M, K], y: Tensor3D[B, N, K]) -> object:
    return attention(x, y, x)  # E: the numbers of keys and values differ, N != M


def one_wide(x: Tensor3D[B, M, K], y: Tensor3D[B, N, L[8]]) -> object:
    return attention(x, y, y)  # E: the features of queries and keys differ, K != 8


def masked(
    x: Tensor3D[B, M, K], y: Tensor3D[B, N, K], see: Tensor2D[M, M, NoneTape, np.bool_]
) -> object:
    return attention(x, y, y, mask=see)  # E: a mask of shape (M, M) does not broadcast to the score


Mask = Tensor4D[B, L[1], L[1], M, NoneTape, np.bool_]


def by_heads(
    x: Tensor3D[B, M, L[8]], y: Tensor3D[B, N, L[8]], see: Mask[B, M], own: Mask[B, N]
) -> Tensor3D[B, M, L[8]]:
    layer.forward(x, y, y, mask=see)  # E: a mask of shape (B, 1, 1, M) does not broadcast to the sc
    return encoder.forward(x, mask=own)  # E: a mask of shape (B, 1, 1, N) does not broadcast to the


seen, unseen = [tt.ones((2, 1, 1, size), np.bool_) for size in (5, 7)]
BAD += (
    lambda: by_heads(q, k, seen, seen),
    lambda: by_heads(q, q, seen, unseen),
    lambda: swapped(q, k),
    lambda: one_wide(k9, k),
    lambda: masked(q, k, tt.ones((5, 5), np.bool_)),
)
