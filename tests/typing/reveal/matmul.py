"""`@`: every static form in every tape combination."""

from __future__ import annotations

from typing import Any
from typing import Literal as L

import numpy as np

from tapetensor import NoneTape, OwnedTape, Tensor0D, Tensor1D, Tensor2D, Tensor3D, Tensor4D
from tests.typing.check import assert_type, check
from tests.typing.operands import m, m77, md, mi, q, v, v7, vi, w, wd, z, zw

# Vector with vector: a scalar.
check(assert_type(v @ v.trace(), Tensor0D[OwnedTape]), ())
check(assert_type(v.trace() @ v, Tensor0D[OwnedTape]), ())
check(assert_type(v.trace() @ v.trace(), Tensor0D[OwnedTape]), ())

# Anything with a vector: the last axis goes.
check(assert_type(m @ v.trace(), Tensor1D[L[2], OwnedTape]), (2,))
check(assert_type(m.trace() @ v, Tensor1D[L[2], OwnedTape]), (2,))
check(assert_type(m.trace() @ v.trace(), Tensor1D[L[2], OwnedTape]), (2,))
check(assert_type(z @ v.trace(), Tensor2D[L[4], L[2], OwnedTape]), (4, 2))
check(assert_type(z.trace() @ v, Tensor2D[L[4], L[2], OwnedTape]), (4, 2))
check(assert_type(z.trace() @ v.trace(), Tensor2D[L[4], L[2], OwnedTape]), (4, 2))
check(assert_type(q.trace() @ v, Tensor3D[L[5], L[4], L[2], OwnedTape]), (5, 4, 2))
check(assert_type(q.trace() @ v.trace(), Tensor3D[L[5], L[4], L[2], OwnedTape]), (5, 4, 2))

# Anything with a matrix: the last axis is replaced.
check(assert_type(v @ w.trace(), Tensor1D[L[6], OwnedTape]), (6,))
check(assert_type(v.trace() @ w, Tensor1D[L[6], OwnedTape]), (6,))
check(assert_type(v.trace() @ w.trace(), Tensor1D[L[6], OwnedTape]), (6,))
check(assert_type(m @ w.trace(), Tensor2D[L[2], L[6], OwnedTape]), (2, 6))
check(assert_type(m.trace() @ w, Tensor2D[L[2], L[6], OwnedTape]), (2, 6))
check(assert_type(m.trace() @ w.trace(), Tensor2D[L[2], L[6], OwnedTape]), (2, 6))
check(assert_type(z @ w.trace(), Tensor3D[L[4], L[2], L[6], OwnedTape]), (4, 2, 6))
check(assert_type(z.trace() @ w, Tensor3D[L[4], L[2], L[6], OwnedTape]), (4, 2, 6))
check(assert_type(z.trace() @ w.trace(), Tensor3D[L[4], L[2], L[6], OwnedTape]), (4, 2, 6))
check(assert_type(q.trace() @ w, Tensor4D[L[5], L[4], L[2], L[6], OwnedTape]), (5, 4, 2, 6))
check(assert_type(q.trace() @ w.trace(), Tensor4D[L[5], L[4], L[2], L[6], OwnedTape]), (5, 4, 2, 6))

# A stack with a stack, and a matrix with a stack.
check(assert_type(z @ zw.trace(), Tensor3D[L[4], L[2], L[6], OwnedTape]), (4, 2, 6))
check(assert_type(z.trace() @ zw, Tensor3D[L[4], L[2], L[6], OwnedTape]), (4, 2, 6))
check(assert_type(z.trace() @ zw.trace(), Tensor3D[L[4], L[2], L[6], OwnedTape]), (4, 2, 6))
check(assert_type(m @ zw.trace(), Tensor3D[L[4], L[2], L[6], OwnedTape]), (4, 2, 6))
check(assert_type(m.trace() @ zw, Tensor3D[L[4], L[2], L[6], OwnedTape]), (4, 2, 6))
check(assert_type(m.trace() @ zw.trace(), Tensor3D[L[4], L[2], L[6], OwnedTape]), (4, 2, 6))

# The dtype stays.
check(assert_type(md @ wd, Tensor2D[L[2], L[6], NoneTape, np.float64]), (2, 6))
check(assert_type(md @ wd.trace(), Tensor2D[L[2], L[6], OwnedTape, np.float64]), (2, 6))
check(assert_type(md.trace() @ wd, Tensor2D[L[2], L[6], OwnedTape, np.float64]), (2, 6))
check(assert_type(mi @ vi, Tensor1D[L[2], NoneTape, np.int64]), (2,))

# Equations and factors of square matrices.
check(assert_type(m77.trace().inv(), Tensor2D[L[7], L[7], OwnedTape]), (7, 7))
check(assert_type(m77.det(), Tensor0D), ())
check(assert_type(m77.cholesky(), Tensor2D[L[7], L[7]]), (7, 7))
check(assert_type(m77.solve(v7.trace()), Tensor1D[L[7], OwnedTape]), (7,))
check(assert_type(m77.trace().solve(v7), Tensor1D[L[7], OwnedTape]), (7,))
check(assert_type(m77.solve(m77), Tensor2D[L[7], L[7]]), (7, 7))
check(assert_type(z.trace().pinv(), Tensor3D[L[4], L[3], L[2], OwnedTape]), (4, 3, 2))
sign, logarithm = m77.trace().slogdet()
check(assert_type(sign, Tensor0D), ())
check(assert_type(logarithm, Tensor0D[OwnedTape]), ())
values, vectors = m77.trace().eigh()
check(assert_type(values, Tensor1D[L[7], OwnedTape]), (7,))
check(assert_type(vectors, Tensor2D[L[7], L[7], OwnedTape]), (7, 7))
columns, triangle = md.qr()
check(assert_type(columns, Tensor2D[L[2], Any, NoneTape, np.float64]), (2, 2))
check(assert_type(triangle, Tensor2D[Any, L[3], NoneTape, np.float64]), (2, 3))
u, singular, rows = z.trace().svd()
check(assert_type(u, Tensor3D[L[4], L[2], Any, OwnedTape]), (4, 2, 2))
check(assert_type(singular, Tensor2D[L[4], Any, OwnedTape]), (4, 2))
check(assert_type(rows, Tensor3D[L[4], Any, L[3], OwnedTape]), (4, 2, 3))
