"""Shapes that cannot become another, or stand together. Every thunk raises."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal as L

import tapetensor as tt
from tapetensor import Tensor1D, Tensor2D, Tensor3D
from tapetensor.typing import B, N
from tests.typing.operands import c, grid, m, m77, mi, positions, q, r, s, uu, v, v7, z

BAD: tuple[Callable[[], object], ...] = (
    lambda: m.reshape((4, 2)),  # E: reshape: (2, 3) holds 6 elements, which do not fill (4, 2)
    lambda: m.reshape((4, -1)),  # E: reshape: (2, 3) holds 6 elements, which do not fill (4, -1)
    lambda: z.reshape((-1, -1)),  # E: reshape: (4, 2, 3) holds 24 elements, which do not fill
    lambda: m.reshape((-2, -3)),  # E: reshape: (2, 3) holds 6 elements, which do not fill (-2, -3)
    lambda: m.reshape((0, -1)),  # E: reshape: (2, 3) holds 6 elements, which do not fill (0, -1)
    lambda: m.reshape(()),  # E: reshape: (2, 3) holds 6 elements, which do not fill ()
    lambda: s.reshape((2,)),  # E: reshape: () holds 1 elements, which do not fill (2,)
    lambda: m.trace().reshape(m77.shape),  # E: holds 6 elements, which do not fill (7, 7)
    lambda: z.permute_dims((0, 1)),  # E: permute_dims: axes (0, 1) must name every axis of shape
    lambda: z.permute_dims((0, 0, 1)),  # E: permute_dims: axes (0, 0, 1) must name every axis
    lambda: q.permute_dims((0, 1, 2, 4)),  # E: axis 4 is outside the shape (5, 4, 2, 3); allowed:
    lambda: m.squeeze(0),  # E: squeeze: axis 0 of shape (2, 3) has size 2, not 1
    lambda: c.squeeze((0, 1)),  # E: squeeze: axis 0 of shape (2, 1) has size 2, not 1
    lambda: uu.squeeze((0, 0)),  # E: squeeze: axes (0, 0) name one axis of (1, 1) twice
    lambda: r.squeeze(2),  # E: squeeze: axis 2 is outside the shape (1, 3); allowed: -2 to 1
    lambda: m.expand_dims(3),  # E: expand_dims: axis 3 is outside the shape (2, 3); allowed: -3 t
    lambda: m.broadcast_to((7, 3)),  # E: broadcast_to: shape (2, 3) does not broadcast to (7, 3)
    lambda: z.broadcast_to((2, 3)),  # E: broadcast_to: shape (4, 2, 3) does not broadcast to (2, 3)
    lambda: q.broadcast_to((5, 4, 2, 1)),  # E: does not broadcast to (5, 4, 2, 1)
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
    lambda: tt.segment_sum(m, positions, 7),  # E: segment_sum: operands of shape (2, 3) need seg
    lambda: m.inv(),  # E: inv: needs square matrices (*Ds, N, N), the shape is (2, 3)
    lambda: z.det(),  # E: det: needs square matrices (*Ds, N, N), the shape is (4, 2, 3)
    lambda: z.trace().cholesky(),  # E: cholesky: needs square matrices (*Ds, N, N), the shape is
    lambda: m77.solve(v),  # E: solve: matrices of shape (7, 7) need right-hand sides of shape (N,)
    lambda: m.eigh(),  # E: eigh: needs square matrices (*Ds, N, N), the shape is (2, 3)
    lambda: z.trace().slogdet(),  # E: slogdet: needs square matrices (*Ds, N, N), the shape is (4
    lambda: m77.qr()[0] + v,  # E: add: shapes (7, 7) and (3,) do not broadcast, 7 != 3
    lambda: m.pinv() + v,  # E: add: shapes (3, 2) and (3,) do not broadcast, 2 != 3
    lambda: z.svd()[1] + v,  # E: add: shapes (4, 2) and (3,) do not broadcast, 2 != 3
    lambda: m.solve(v),  # E: solve: needs square matrices (*Ds, N, N), the shape is (2, 3)
    lambda: m.diff(axis=2),  # E: diff: axis 2 is outside the shape (2, 3); allowed: -2 to 1
    lambda: m.roll(1, axis=2),  # E: roll: axis 2 is outside the shape (2, 3); allowed: -2 to 1
    lambda: z.split(0),  # E: split: sections must be > 0, got 0
    lambda: tt.concat((v, v), axis=1),  # E: concat: axis 1 is outside the shape (3,); allowed: -1
    lambda: tt.concat((q, q), axis=4),  # E: concat: axis 4 is outside the shape (5, 4, 2, 3)
    lambda: tt.stack((m, r)),  # E: stack: shapes (2, 3) and (1, 3) differ along axis 0, 2 != 1
    lambda: tt.stack((v, v), axis=2),  # E: stack: axis 2 is outside the shape (3,); allowed: -2 to
    lambda: z.split(3),  # E: split: axis 0 of shape (4, 2, 3) does not divide into 3 equal parts
    lambda: z.split([1, 2]),  # E: split: sections (1, 2) add up to 3, axis 0 of shape (4, 2, 3) has
    lambda: z.split(2, axis=3),  # E: split: axis 3 is outside the shape (4, 2, 3); allowed: -3 to 2
    lambda: z.take(positions, axis=3),  # E: take: axis 3 is outside the shape (4, 2, 3)
    lambda: m.take_along_axis(positions),  # E: indices of shape (7,) must have as many axes as the
    lambda: m.take_along_axis(grid, 0),  # E: shape (2, 3) and indices (7, 8) do not broadcast alo
    lambda: m.put_along_axis(mi, m[:1]),  # E: put_along_axis: indices and values have one shape
    lambda: m.put_along_axis(grid, m, 0),  # E: put_along_axis: indices and values have one shape
    lambda: m.put_along_axis(mi, m, 2),  # E: put_along_axis: axis 2 is outside the shape (2, 3)
    lambda: m.take_along_axis(mi, 2),  # E: take_along_axis: axis 2 is outside the shape (2, 3)
    lambda: m.flatten() + v7,  # E: add: shapes (6,) and (7,) do not broadcast, 6 != 7
    lambda: tt.concat((v, v)) + v7,  # E: add: shapes (6,) and (7,) do not broadcast, 6 != 7
)


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
    lambda: widened(tt.ones((6, 4))),
    lambda: halves(tt.zeros((5, 6))),
    lambda: joined(m, m.transpose()),
    lambda: spread(v7, m),
    lambda: named_axis(z),
)
