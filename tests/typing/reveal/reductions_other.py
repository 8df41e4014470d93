"""Reductions with the sets of overloads of `sum` and `mean`; `std`, positions, masks; dtypes."""

from __future__ import annotations

from typing import Literal as L

import numpy as np

from tapetensor import NoneTape, OwnedTape, Tensor0D, Tensor1D, Tensor2D, Tensor3D, Tensor4D
from tests.typing.check import assert_type, check
from tests.typing.operands import m, md, mi, q, s, v, z

# `max`, `min` and `prod` have the signatures of `sum`.
check(assert_type(q.trace().max(), Tensor0D[OwnedTape]), ())
check(assert_type(m.trace().max(axis=-1, keepdims=True), Tensor2D[L[2], L[1], OwnedTape]), (2, 1))
check(assert_type(q.max(axis=1), Tensor3D[L[5], L[2], L[3]]), (5, 2, 3))
check(assert_type(q.trace().min(axis=1), Tensor3D[L[5], L[2], L[3], OwnedTape]), (5, 2, 3))
check(assert_type(m.trace().prod(-1, True), Tensor2D[L[2], L[1], OwnedTape]), (2, 1))

# `median`, as `mean`, and `quantile`, which is exact for all axes, the first and the last.
check(assert_type(q.trace().median(axis=-2), Tensor3D[L[5], L[4], L[3], OwnedTape]), (5, 4, 3))
check(assert_type(md.median(), Tensor0D[NoneTape, np.float64]), ())
check(assert_type(z.trace().quantile(0.9, axis=0), Tensor2D[L[2], L[3], OwnedTape]), (2, 3))
check(assert_type(z.quantile(0.9, -1), Tensor2D[L[4], L[2]]), (4, 2))
check(assert_type(md.quantile(1), Tensor0D[NoneTape, np.float64]), ())

# `logsumexp` has those of `mean`.
check(assert_type(q.trace().logsumexp(), Tensor0D[OwnedTape]), ())
check(assert_type(m.trace().logsumexp(-1, True), Tensor2D[L[2], L[1], OwnedTape]), (2, 1))
check(assert_type(q.logsumexp(axis=1), Tensor3D[L[5], L[2], L[3]]), (5, 2, 3))

# `std`, with one of the two tapes for each axis.
check(assert_type(q.std(), Tensor0D), ())
check(assert_type(q.trace().std(), Tensor0D[OwnedTape]), ())
check(assert_type(q.std(axis=-1), Tensor3D[L[5], L[4], L[2]]), (5, 4, 2))
check(assert_type(m.trace().std(axis=-1, keepdims=True), Tensor2D[L[2], L[1], OwnedTape]), (2, 1))
check(assert_type(q.trace().std(axis=-2), Tensor3D[L[5], L[4], L[3], OwnedTape]), (5, 4, 3))
check(assert_type(q.std(axis=-2, keepdims=True), Tensor4D[L[5], L[4], L[1], L[3]]), (5, 4, 1, 3))
check(assert_type(q.std(axis=-3), Tensor3D[L[5], L[2], L[3]]), (5, 2, 3))
check(assert_type(z.trace().std(-3, True), Tensor3D[L[1], L[2], L[3], OwnedTape]), (1, 2, 3))
check(assert_type(q.trace().std(axis=0), Tensor3D[L[4], L[2], L[3], OwnedTape]), (4, 2, 3))
check(assert_type(q.std(axis=0, keepdims=True), Tensor4D[L[1], L[4], L[2], L[3]]), (1, 4, 2, 3))
check(assert_type(q.std(axis=1), Tensor3D[L[5], L[2], L[3]]), (5, 2, 3))
check(assert_type(m.trace().std(axis=1, keepdims=True), Tensor2D[L[2], L[1], OwnedTape]), (2, 1))
check(assert_type(q.trace().std(axis=2), Tensor3D[L[5], L[4], L[3], OwnedTape]), (5, 4, 3))
check(assert_type(q.std(axis=2, keepdims=True), Tensor4D[L[5], L[4], L[1], L[3]]), (5, 4, 1, 3))
check(assert_type(q.std(axis=3), Tensor3D[L[5], L[4], L[2]]), (5, 4, 2))
check(
    assert_type(q.trace().std(axis=3, keepdims=True), Tensor4D[L[5], L[4], L[2], L[1], OwnedTape]),
    (5, 4, 2, 1),
)

# Down to rank zero, and from every smaller rank.
check(assert_type(v.sum(axis=0), Tensor0D), ())
check(assert_type(v.trace().sum(-1), Tensor0D[OwnedTape]), ())
check(assert_type(m.sum(0), Tensor1D[L[3]]), (3,))
check(assert_type(m.trace().sum(-2), Tensor1D[L[3], OwnedTape]), (3,))
check(assert_type(m.sum(1, keepdims=True), Tensor2D[L[2], L[1]]), (2, 1))
check(assert_type(z.trace().sum(-3, True), Tensor3D[L[1], L[2], L[3], OwnedTape]), (1, 2, 3))
check(assert_type(s.sum(), Tensor0D), ())
check(assert_type(m.trace().mean(-2), Tensor1D[L[3], OwnedTape]), (3,))
check(assert_type(s.mean(), Tensor0D), ())
check(assert_type(m.std(0), Tensor1D[L[3]]), (3,))
check(assert_type(m.trace().std(-2), Tensor1D[L[3], OwnedTape]), (3,))
check(assert_type(m.std(1, keepdims=True), Tensor2D[L[2], L[1]]), (2, 1))
check(assert_type(z.trace().std(-3, True), Tensor3D[L[1], L[2], L[3], OwnedTape]), (1, 2, 3))

# The default arguments, spelled out.
check(assert_type(m.sum(None), Tensor0D), ())
check(assert_type(m.sum(axis=None, keepdims=False), Tensor0D), ())
check(assert_type(m.mean(axis=-1, keepdims=False), Tensor1D[L[2]]), (2,))
check(assert_type(m.trace().var(axis=0, correction=1), Tensor1D[L[3], OwnedTape]), (3,))
check(assert_type(m.std(-1, True, 1.0), Tensor2D[L[2], L[1]]), (2, 1))

# The dtype stays.
check(assert_type(mi.sum(), Tensor0D[NoneTape, np.int64]), ())
check(assert_type(mi.max(axis=0), Tensor1D[L[3], NoneTape, np.int64]), (3,))
check(assert_type(md.mean(axis=-1), Tensor1D[L[2], NoneTape, np.float64]), (2,))
check(assert_type(md.trace().std(), Tensor0D[OwnedTape, np.float64]), ())

# `argmax` gives plain positions and takes no tape.
check(assert_type(q.argmax(-1), Tensor3D[L[5], L[4], L[2], NoneTape, np.int64]), (5, 4, 2))
check(assert_type(q.argmax(axis=0), Tensor3D[L[4], L[2], L[3], NoneTape, np.int64]), (4, 2, 3))
check(assert_type(q.argmax(axis=1), Tensor3D[L[5], L[2], L[3], NoneTape, np.int64]), (5, 2, 3))
check(assert_type(q.trace().argmax(-1), Tensor3D[L[5], L[4], L[2], NoneTape, np.int64]), (5, 4, 2))
check(
    assert_type(q.trace().argmax(axis=0), Tensor3D[L[4], L[2], L[3], NoneTape, np.int64]), (4, 2, 3)
)
check(
    assert_type(q.trace().argmax(axis=1), Tensor3D[L[5], L[2], L[3], NoneTape, np.int64]), (5, 2, 3)
)
check(assert_type(mi.argmax(-1), Tensor1D[L[2], NoneTape, np.int64]), (2,))
check(assert_type(mi.argmax(), Tensor0D[NoneTape, np.int64]), ())
check(assert_type(q.trace().argmin(), Tensor0D[NoneTape, np.int64]), ())
check(assert_type(mi.argmin(axis=0), Tensor1D[L[3], NoneTape, np.int64]), (3,))

# `norm`, and the reductions of masks.
check(assert_type(z.trace().norm(), Tensor0D[OwnedTape]), ())
check(assert_type(z.norm(axis=-1, keepdims=True), Tensor3D[L[4], L[2], L[1]]), (4, 2, 1))
check(assert_type((m > 0.0).any(), Tensor0D[NoneTape, np.bool_]), ())
check(assert_type((m > 0.0).all(axis=0), Tensor1D[L[3], NoneTape, np.bool_]), (3,))
check(assert_type((m > 0.0).all(axis=-1), Tensor1D[L[2], NoneTape, np.bool_]), (2,))
