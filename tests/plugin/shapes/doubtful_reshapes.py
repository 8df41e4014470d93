"""Reshapes that mix the elements of a dim that keeps its name: they run, and are not meant."""

from __future__ import annotations

from typing import Literal as L
from typing import NewType

import tapetensor as tt
from tapetensor import Tensor2D, Tensor3D, Tensor4D
from tapetensor.typing import B, K, M, N, T

H = NewType("H", int)
W = NewType("W", int)


def heads(x: Tensor3D[B, M, L[32], T]) -> Tensor4D[B, L[4], M, L[8], T]:
    b, m, _ = x.shape
    # E: reshape: (B, M, 32) to (B, 4, M, 8) mixes the elements of M: what lies before it is B in
    return x.reshape((b, 4, m, 8))


def swapped(x: Tensor2D[B, K]) -> Tensor2D[K, B]:
    b, k = x.shape
    return x.reshape((k, b))  # E: reshape: (B, K) to (K, B) mixes the elements of B: what lies


def channels_last(x: Tensor4D[B, L[3], H, W, T]) -> Tensor4D[B, H, W, L[3], T]:
    b, c, h, w = x.shape
    return x.reshape((b, h, w, c))  # E: before it is 3*B in the one and B in the other; reshape()


def hidden_size(x: Tensor3D[B, M, K]) -> None:
    b, m, _ = x.shape
    x.reshape((-1, b, m))  # E: reshape: (B, M, K) to (K, B, M) mixes the elements of B


def right(x: Tensor3D[B, M, L[32], T], pairs: Tensor3D[B, N, N], rows: Tensor2D[H, K]) -> None:
    b, m, _ = x.shape
    x.reshape((b, m, 4, 8)).permute_dims((0, 2, 1, 3))
    x.reshape((b * m, 32)).reshape((b, m, 32))
    x.reshape((1, b, 1, m, -1))
    x.reshape((b, m * 32)).reshape((b, -1, 32))
    x.reshape((b, m // 2, 64))
    n = pairs.shape[1]
    pairs.reshape((b, 1, n, n)).reshape((b, n, 1, n))
    # The rows are a batch of steps, as only the caller knows.
    rows.reshape((b, m, rows.shape[1]))


def shifted(scores: Tensor3D[B, M, M]) -> object:
    """Shift each row by one more than the last: a trick that is meant."""
    b, m, _ = scores.shape
    padded = tt.concat((scores, scores[:, :, :1]), axis=2)
    return padded.reshape((b, m + 1, m))


x: Tensor3D[L[2], L[6], L[32]] = tt.ones((2, 6, 32))
heads(x)
swapped(tt.ones((2, 3)))
channels_last(tt.ones((2, 3, H(4), W(5))))
hidden_size(x)
right(x, tt.ones((2, 3, 3)), tt.ones((H(12), 5)))
shifted(tt.ones((2, 3, 3)))
