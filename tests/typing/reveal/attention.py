"""Attention: queries give the rows of the result, values its columns."""

from __future__ import annotations

from typing import Any
from typing import Literal as L

import numpy as np

import tapetensor as tt
from tapetensor import (
    NoneTape,
    OwnedTape,
    Tensor2D,
    Tensor3D,
    Tensor4D,
    nn,
    scaled_dot_product_attention,
)
from tapetensor.typing import B, K, M, N, P, T
from tests.typing.check import assert_type, check
from tests.typing.operands import m, md, q, z

keys: Tensor2D[L[5], L[3]] = tt.ones((5, 3))
values: Tensor2D[L[5], L[6]] = tt.ones((5, 6))
seen: Tensor2D[L[2], L[5], NoneTape, np.bool_] = tt.ones((2, 5), np.bool_)

# All combinations of tapes.
check(assert_type(scaled_dot_product_attention(m, keys, values), Tensor2D[L[2], L[6]]), (2, 6))
check(
    assert_type(
        scaled_dot_product_attention(m.trace(), keys, values), Tensor2D[L[2], L[6], OwnedTape]
    ),
    (2, 6),
)
check(
    assert_type(
        scaled_dot_product_attention(m, keys.trace(), values), Tensor2D[L[2], L[6], OwnedTape]
    ),
    (2, 6),
)
check(
    assert_type(
        scaled_dot_product_attention(m, keys, values.trace()), Tensor2D[L[2], L[6], OwnedTape]
    ),
    (2, 6),
)
check(
    assert_type(
        scaled_dot_product_attention(m, keys.trace(), values.trace()),
        Tensor2D[L[2], L[6], OwnedTape],
    ),
    (2, 6),
)
check(
    assert_type(
        scaled_dot_product_attention(m.trace(), keys, values.trace()),
        Tensor2D[L[2], L[6], OwnedTape],
    ),
    (2, 6),
)

# A bias, which may be what is traced.
bias: Tensor2D[L[2], L[5]] = tt.ones((2, 5))
check(
    assert_type(scaled_dot_product_attention(m, keys, values, bias=bias), Tensor2D[L[2], L[6]]),
    (2, 6),
)
check(
    assert_type(
        scaled_dot_product_attention(m, keys, values, bias=bias.trace()),
        Tensor2D[L[2], L[6], OwnedTape],
    ),
    (2, 6),
)
check(
    assert_type(
        scaled_dot_product_attention(m.trace(), keys, values.trace(), bias=bias.trace()),
        Tensor2D[L[2], L[6], OwnedTape],
    ),
    (2, 6),
)

# Leading axes, a mask, doubles.
check(
    assert_type(
        scaled_dot_product_attention(q.trace(), q, q, causal=True),
        Tensor4D[L[5], L[4], L[2], L[3], OwnedTape],
    ),
    (5, 4, 2, 3),
)
check(
    assert_type(scaled_dot_product_attention(z, z, z, scale=0.5), Tensor3D[L[4], L[2], L[3]]),
    (4, 2, 3),
)
check(
    assert_type(scaled_dot_product_attention(m, keys, values, mask=seen), Tensor2D[L[2], L[6]]),
    (2, 6),
)
check(
    assert_type(
        scaled_dot_product_attention(md.trace(), md, md),
        Tensor2D[L[2], L[3], OwnedTape, np.float64],
    ),
    (2, 3),
)


def attend(
    query: Tensor3D[B, M, K, T], key: Tensor3D[B, N, K, T], value: Tensor3D[B, N, P, T]
) -> Tensor3D[B, M, P, T]:
    return scaled_dot_product_attention(query, key, value)


def attend_plainly(
    query: Tensor3D[B, M, K], key: Tensor3D[B, N, K], value: Tensor3D[B, N, P, T]
) -> Tensor3D[B, M, P, T]:
    return assert_type(scaled_dot_product_attention(query, key, value), Tensor3D[B, M, P, T])


def attend_to_keys(
    query: Tensor3D[B, M, K, T], key: Tensor3D[B, N, K, T], value: Tensor3D[B, N, P]
) -> Tensor3D[B, M, P, T]:
    return assert_type(scaled_dot_product_attention(query, key, value), Tensor3D[B, M, P, T])


def read(
    layer: nn.MultiHeadAttention[L[4], L[2]],
    query: Tensor3D[B, M, L[4]],
    key: Tensor3D[B, M, L[4], T],
    value: Tensor3D[B, M, L[4], T],
) -> Tensor3D[B, M, L[4], T]:
    return assert_type(layer.forward(query, key, value), Tensor3D[B, M, L[4], T])


def masked(
    layer: nn.MultiHeadAttention[L[4], L[2]],
    block: nn.EncoderBlock[L[4], L[2], L[8]],
    query: Tensor3D[B, M, L[4], T],
    key: Tensor3D[B, N, L[4]],
    own: Tensor2D[B, M, NoneTape, np.bool_],
    there: Tensor2D[B, N, NoneTape, np.bool_],
    seen: Tensor2D[M, M, NoneTape, np.bool_],
) -> Tensor3D[B, M, L[4], T]:
    x = assert_type(layer.forward(query, keys_mask=own, mask=seen), Tensor3D[B, M, L[4], T])
    x = assert_type(layer.forward(x, key, key, keys_mask=there), Tensor3D[B, M, L[4], T])
    return assert_type(block.forward(x, keys_mask=own), Tensor3D[B, M, L[4], T])


def of_one_sequence(
    layer: nn.MultiHeadAttention[L[4], L[2]],
    x: Tensor2D[M, L[4]],
    by_head: Tensor3D[L[2], M, M, NoneTape, np.bool_],
) -> Tensor2D[M, L[4]]:
    return assert_type(layer.forward(x, mask=by_head), Tensor2D[M, L[4]])


# A mask that is made from a run-time batch.
lengths: Tensor4D[Any, Any, Any, Any, NoneTape, np.bool_] = tt.ones((5, 1, 1, 2), np.bool_)
check(scaled_dot_product_attention(q, q, q, mask=lengths), (5, 4, 2, 3))
check(assert_type(attend(z, z, z), Tensor3D[L[4], L[2], L[3]]), (4, 2, 3))
