"""Axes, indices and contractions that do not fit. Every thunk raises."""

from __future__ import annotations

from collections.abc import Callable

import tapetensor as tt
from tapetensor import Tensor1D, Tensor2D
from tapetensor.typing import B, K, M, N, T
from tests.typing.operands import grid, m, m77, positions, q, s, v, v7, w, z, zw

BAD: tuple[Callable[[], object], ...] = (
    lambda: m @ m,  # E: matmul: inner dims differ: (2, 3) @ (2, 3), 3 != 2
    lambda: m.trace() @ m77,  # E: matmul: inner dims differ: (2, 3) @ (7, 7), 3 != 7
    lambda: m @ v7,  # E: matmul: inner dims differ: (2, 3) @ (7,), 3 != 7
    lambda: v7 @ v.trace(),  # E: matmul: inner dims differ: (7,) @ (3,), 7 != 3
    lambda: v7 @ zw,  # E: matmul: inner dims differ: (7,) @ (4, 3, 6), 7 != 3
    lambda: q @ q,  # E: matmul: inner dims differ: (5, 4, 2, 3) @ (5, 4, 2, 3), 3 != 2
    lambda: z @ tt.zeros((5, 3, 6)),  # E: do not broadcast, 4 != 5
    lambda: s @ m,  # E: matmul: () @ (2, 3): a 0-d tensor has no axis to contract; multiply with *
    lambda: m @ s,  # E: matmul: (2, 3) @ (): a 0-d tensor has no axis to contract; multiply with *
    lambda: (m @ w) @ w,  # E: matmul: inner dims differ: (2, 6) @ (3, 6), 6 != 3
    lambda: m.item(),  # E: item: a tensor of shape (2, 3) has 6 elements, not one; reduce it first
    lambda: m.trace().square().item(),  # E: item: a tensor of shape (2, 3) has 6 elements, not one
    lambda: m.sum(axis=2),  # E: sum: axis 2 is outside the shape (2, 3); allowed: -2 to 1
    lambda: m.mean(axis=(0, 2)),  # E: mean: axis 2 is outside the shape (2, 3); allowed: -2 to 1
    lambda: z.max(axis=(0, -3)),  # E: max: axes (0, -3) name one axis of (4, 2, 3) twice
    lambda: s.min(axis=0),  # E: min: axis 0 is outside the shape (); allowed: none, a 0-d tensor
    lambda: q.var(axis=4, keepdims=True),  # E: var: axis 4 is outside the shape (5, 4, 2, 3)
    lambda: q.std(axis=-5),  # E: std: axis -5 is outside the shape (5, 4, 2, 3); allowed: -4 to 3
    lambda: v.logsumexp(axis=(1,)),  # E: logsumexp: axis 1 is outside the shape (3,); allowed: -1
    lambda: m.argmax(axis=2),  # E: argmax: axis 2 is outside the shape (2, 3); allowed: -2 to 1
    lambda: v.softmax(axis=1),  # E: softmax: axis 1 is outside the shape (3,); allowed: -1 to 0
    lambda: m.log_softmax(2),  # E: log_softmax: axis 2 is outside the shape (2, 3); allowed: -2 t
    lambda: m.quantile(0.5, axis=2),  # E: quantile: axis 2 is outside the shape (2, 3); allowed: -2
    lambda: m.median((0, 0)),  # E: median: axes (0, 0) name one axis of (2, 3) twice
    lambda: m.topk(4),  # E: topk: k=4 is more than axis 1 of shape (2, 3) has elements
    lambda: m.topk(1, axis=2),  # E: topk: axis 2 is outside the shape (2, 3); allowed: -2 to 1
    lambda: m.topk(-1),  # E: topk: k must not be negative, got -1
    lambda: m.sort(axis=2),  # E: sort: axis 2 is outside the shape (2, 3); allowed: -2 to 1
    lambda: m.argsort(axis=2),  # E: argsort: axis 2 is outside the shape (2, 3); allowed: -2 to 1
    lambda: m.cumulative_prod(axis=2),  # E: cumulative_prod: axis 2 is outside the shape (2, 3)
    lambda: m.cumulative_max(axis=2),  # E: cumulative_max: axis 2 is outside the shape (2, 3)
    lambda: m.norm(axis=2),  # E: norm: axis 2 is outside the shape (2, 3); allowed: -2 to 1
    lambda: (m > 0.0).any(axis=2),  # E: any: axis 2 is outside the shape (2, 3); allowed: -2 to 1
    lambda: m.cumulative_sum(axis=2),  # E: cumulative_sum: axis 2 is outside the shape (2, 3); all
    lambda: z.normalize(3),  # E: normalize: axis 3 is outside the shape (4, 2, 3); allowed: -3 to 2
    lambda: m[0:1:0],  # E: getitem: the step of a slice cannot be 0
    lambda: z[m > 0],  # E: getitem: a mask of shape (2, 3) does not fit the first axes of shape (4,
    lambda: v[m > 0],  # E: getitem: a mask of shape (2, 3) does not fit the first axes of
    lambda: m[2],  # E: getitem: index 2 is outside axis 0 of shape (2, 3), which has size 2
    lambda: z[0, -3],  # E: getitem: index -3 is outside axis 1 of shape (4, 2, 3), which has size 2
    lambda: z[..., 3],  # E: getitem: index 3 is outside axis 2 of shape (4, 2, 3), which has size 3
    lambda: v[0, 0],  # E: getitem: 2 indices for shape (3,), which has 1 axes
    lambda: z[0, :, None, 1, 1],  # E: getitem: 4 indices for shape (4, 2, 3), which has 3 axes
    lambda: z[..., 0, ...],  # E: getitem: an index can only have one ...
    lambda: z[positions * 0, grid * 0],  # E: getitem: shapes (7,) and (7, 8) do not broadcast, 7
    lambda: m[0] @ v7,  # E: matmul: inner dims differ: (3,) @ (7,), 3 != 7
    lambda: m[:, 1:] + v,  # E: add: shapes (2, 2) and (3,) do not broadcast, 2 != 3
    lambda: tt.einsum("ij,jk->ik", m, m),  # E: einsum: 'j' in 'ij,jk->ik' has sizes 3 and 2 in shap
    lambda: tt.einsum("ij,jk", m),  # E: einsum: 'ij,jk' names 2 operands, 1 were given
    lambda: tt.einsum("ijk->i", m),  # E: einsum: 'ijk' in 'ijk->i' does not fit shape (2, 3)
    lambda: tt.einsum("ij->ik", m),  # E: the output of 'ij->ik' must name letters of the operands
    lambda: tt.einsum("ij->ii", m),  # E: the output of 'ij->ii' must name letters of the operands
    lambda: tt.einsum("i-j", m),  # E: einsum: cannot read 'i-j'; write groups of letters
    lambda: tt.einsum("...i,...i->i...", z, m77),  # E: einsum: '...' in '...i,...i->i...' has
)


def projected(x: Tensor2D[B, N, T], weight: Tensor2D[K, N]) -> object:
    return x @ weight  # E: matmul: inner dims differ: (B, N) @ (K, N), N != K


def contracted(x: Tensor2D[M, N], y: Tensor1D[M]) -> object:
    return tt.einsum("ij,j->i", x, y)  # E: einsum: 'j' in 'ij,j->i' has sizes N and M in shapes


BAD += (
    lambda: projected(m, tt.zeros((7, 3))),
    lambda: contracted(m, tt.zeros((2,))),
)
