"""Operands, axes, indices and contractions that do not fit. Every thunk raises, and says why.

What ops refuse of literal shapes is in the table of ops. Here are names, and what is computed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from typing import Literal as L

import tapetensor as tt
from tapetensor import Tensor, Tensor1D, Tensor2D, Tensor3D
from tapetensor.typing import B, K, M, N, T
from tests.typing.operands import c, grid, m, m77, mi, positions, q, r, s, v, v7, w, z, zw

of_any_rank: Tensor[Any] = m

BAD: tuple[Callable[[], object], ...] = (
    lambda: m.trace() * m77,  # E: multiply: shapes (2, 3) and (7, 7) do not broadcast, 2 != 7
    lambda: z / zw.trace(),  # E: divide: shapes (4, 2, 3) and (4, 3, 6) do not broadcast, 2 != 3
    lambda: v7 ** m.trace(),  # E: power: shapes (7,) and (2, 3) do not broadcast, 7 != 3
    lambda: tt.minimum(m, m77.trace()),  # E: minimum: shapes (2, 3) and (7, 7) do not broadcast
    lambda: tt.ssm_scan(z, z, v7.trace()),  # E: b of shape (7,) does not broadcast to the shape
    lambda: m + (v + v7),  # E: add: shapes (3,) and (7,) do not broadcast, 3 != 7
    lambda: (m + v7) * 2.0 + v,  # E: add: shapes (2, 3) and (7,) do not broadcast, 3 != 7
    lambda: s + c.sum(axis=1) + v,  # E: add: shapes (2,) and (3,) do not broadcast, 2 != 3
    lambda: (of_any_rank @ w) + v,  # E: of the last axes, shapes (6,) and (3,) do not broadcast
    lambda: tt.where(v > 0.0, of_any_rank @ w, 0.0),  # E: where: of the last axes, shapes (6,) and
    lambda: tt.ssm_scan(of_any_rank @ w, v, v),  # E: ssm_scan: of the last axes, shapes (6,) and
    lambda: m.trace() @ m77,  # E: matmul: inner dims differ: (2, 3) @ (7, 7), 3 != 7
    lambda: v7 @ v.trace(),  # E: matmul: inner dims differ: (7,) @ (3,), 7 != 3
    lambda: (m @ w) @ w,  # E: matmul: inner dims differ: (2, 6) @ (3, 6), 6 != 3
    lambda: m.item(),  # E: item: a tensor of shape (2, 3) has 6 elements, not one; reduce it first
    lambda: m.trace().square().item(),  # E: item: a tensor of shape (2, 3) has 6 elements, not one
    lambda: m.topk(-1),  # E: topk: k must not be negative, got -1
    lambda: m[0:1:0],  # E: getitem: the step of a slice cannot be 0
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
    lambda: m.trace().reshape(m77.shape),  # E: holds 6 elements, which do not fill (7, 7)
    lambda: tt.concat((m, v)),  # E: concat: the ranks of shapes (2, 3) and (3,) differ
    lambda: tt.concat((m, m77)),  # E: concat: shapes (2, 3) and (7, 7) differ along axis 1, 3 != 7
    lambda: tt.concat((m, m, m77), axis=-1),  # E: differ along axis 0, 2 != 7
    lambda: tt.concat([m, m77]),  # E: concat: shapes (2, 3) and (7, 7) differ along axis 1, 3 != 7
    lambda: tt.concat([m, v.trace()]),  # E: concat: the ranks of shapes (2, 3) and (3,) differ
    lambda: tt.concat((m, v), axis=1),  # E: concat: the ranks of shapes (2, 3) and (3,) differ
    lambda: tt.concat((m, v), axis=-1),  # E: concat: the ranks of shapes (2, 3) and (3,) differ
    lambda: tt.stack([m, r]),  # E: stack: shapes (2, 3) and (1, 3) differ along axis 0, 2 != 1
    lambda: m.pad(((1, 1),)),  # E: pad: 1 pairs of widths for the axes of shape (2, 3)
    lambda: z.pad(((1, 1), (2, 2))),  # E: pad: 2 pairs of widths for the axes of shape (4, 2, 3)
    lambda: z.trace().cholesky(),  # E: cholesky: needs square matrices (*Ds, N, N), the shape is
    lambda: m.eigh(),  # E: eigh: needs square matrices (*Ds, N, N), the shape is (2, 3)
    lambda: z.trace().slogdet(),  # E: slogdet: needs square matrices (*Ds, N, N), the shape is (4
    lambda: m77.qr()[0] + v,  # E: add: shapes (7, 7) and (3,) do not broadcast, 7 != 3
    lambda: m.pinv() + v,  # E: add: shapes (3, 2) and (3,) do not broadcast, 2 != 3
    lambda: z.svd()[1] + v,  # E: add: shapes (4, 2) and (3,) do not broadcast, 2 != 3
    lambda: z.split(0),  # E: split: sections must be > 0, got 0
    lambda: tt.concat((v, v), axis=1),  # E: concat: axis 1 is outside the shape (3,); allowed: -1
    lambda: tt.concat((q, q), axis=4),  # E: concat: axis 4 is outside the shape (5, 4, 2, 3)
    lambda: tt.stack((m, r)),  # E: stack: shapes (2, 3) and (1, 3) differ along axis 0, 2 != 1
    lambda: tt.stack((v, v), axis=2),  # E: stack: axis 2 is outside the shape (3,); allowed: -2 to
    lambda: z.split(3),  # E: split: axis 0 of shape (4, 2, 3) does not divide into 3 equal parts
    lambda: z.split([1, 2]),  # E: split: sections (1, 2) add up to 3, axis 0 of shape (4, 2, 3) has
    lambda: z.split(2, axis=3),  # E: split: axis 3 is outside the shape (4, 2, 3); allowed: -3 to 2
    lambda: m.put_along_axis(mi, m[:1]),  # E: put_along_axis: indices and values have one shape
    lambda: m.put_along_axis(grid, m, 0),  # E: put_along_axis: indices and values have one shape
    lambda: m.put_along_axis(mi, m, 2),  # E: put_along_axis: axis 2 is outside the shape (2, 3)
    lambda: m.flatten() + v7,  # E: add: shapes (6,) and (7,) do not broadcast, 6 != 7
    lambda: tt.concat((v, v)) + v7,  # E: add: shapes (6,) and (7,) do not broadcast, 6 != 7
)


# Names are told apart.
def swapped(x: Tensor2D[M, N, T], y: Tensor2D[N, M]) -> object:
    return x + y  # E: add: shapes (M, N) and (N, M) do not broadcast, M != N


def scaled(x: Tensor3D[B, M, L[8], T], y: Tensor1D[M]) -> object:
    return x * y  # E: multiply: shapes (B, M, 8) and (M,) do not broadcast, 8 != M


def compared(x: Tensor2D[B, M], y: Tensor1D[B]) -> object:
    return x > y  # E: greater: shapes (B, M) and (B,) do not broadcast, M != B


def projected(x: Tensor2D[B, N, T], weight: Tensor2D[K, N]) -> object:
    return x @ weight  # E: matmul: inner dims differ: (B, N) @ (K, N), N != K


def contracted(x: Tensor2D[M, N], y: Tensor1D[M]) -> object:
    return tt.einsum("ij,j->i", x, y)  # E: einsum: 'j' in 'ij,j->i' has sizes N and M in shapes


def halves(x: Tensor2D[B, L[6]]) -> object:
    return x.reshape((x.shape[0], 4))  # E: reshape: (B, 6) holds 6*B elements, which do not fill


def joined(x: Tensor2D[B, N], y: Tensor2D[N, B]) -> object:
    return tt.concat((x, y))  # E: concat: shapes (B, N) and (N, B) differ along axis 1, N != B


def spread(x: Tensor1D[N], y: Tensor2D[B, L[3]]) -> object:
    return x.broadcast_to(y.shape)  # E: broadcast_to: shape (N,) does not broadcast to (B, 3)


def named_axis(x: Tensor3D[B, N, L[3]]) -> object:
    return x.squeeze(1)  # E: squeeze: axis 1 of shape (B, N, 3) has size N, not 1


def widened(x: Tensor2D[L[6], L[4]]) -> object:
    return x.pad(((0, 0), (5, 5)), "reflect")  # E: pad: widths (5, 5) are too large for an axis of


BAD += (
    lambda: swapped(m, m.transpose()),
    lambda: scaled(tt.zeros((2, 3, 8)), v),
    lambda: compared(m, tt.zeros((2,))),
    lambda: projected(m, tt.zeros((7, 3))),
    lambda: contracted(m, tt.zeros((2,))),
    lambda: widened(tt.ones((6, 4))),
    lambda: halves(tt.zeros((5, 6))),
    lambda: joined(m, m.transpose()),
    lambda: spread(v7, m),
    lambda: named_axis(z),
)
