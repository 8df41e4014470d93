"""What mypy alone says. Pyright must reject every `check` here."""

from __future__ import annotations

from typing import Literal as L

import numpy as np

import tapetensor as tt
from tapetensor import NoneTape, OwnedTape, Tensor1D, Tensor2D, Tensor3D
from tests.typing.check import assert_type, check
from tests.typing.operands import c, m, r, u, uu, v

# Dims that pyright widens when it infers them from an argument. With an annotation both checkers
# are exact: see creation.py and shape.py.
FEATURES: L[3] = 3
row: tuple[L[3]] = (3,)
matrix: tuple[L[2], L[3]] = (2, 3)
stack: tuple[L[4], L[2], L[3]] = (4, 2, 3)
check(assert_type(tt.arange(FEATURES), Tensor1D[L[3], NoneTape, np.int64]), (3,))
check(assert_type(tt.arange(FEATURES, np.float32), Tensor1D[L[3]]), (3,))
check(assert_type(tt.eye(FEATURES), Tensor2D[L[3], L[3]]), (3, 3))
check(assert_type(tt.eye(FEATURES, np.float64), Tensor2D[L[3], L[3], NoneTape, np.float64]), (3, 3))
check(assert_type(u.broadcast_to(row), Tensor1D[L[3]]), (3,))
check(assert_type(u.broadcast_to(matrix), Tensor2D[L[2], L[3]]), (2, 3))
check(assert_type(u.broadcast_to(stack), Tensor3D[L[4], L[2], L[3]]), (4, 2, 3))
check(assert_type(u.trace().broadcast_to(stack), Tensor3D[L[4], L[2], L[3], OwnedTape]), (4, 2, 3))
check(assert_type(v.broadcast_to(matrix), Tensor2D[L[2], L[3]]), (2, 3))
check(assert_type(v.broadcast_to(stack), Tensor3D[L[4], L[2], L[3]]), (4, 2, 3))
check(assert_type(v.trace().broadcast_to(stack), Tensor3D[L[4], L[2], L[3], OwnedTape]), (4, 2, 3))
check(assert_type(uu.broadcast_to(matrix), Tensor2D[L[2], L[3]]), (2, 3))
check(assert_type(uu.broadcast_to(stack), Tensor3D[L[4], L[2], L[3]]), (4, 2, 3))
check(assert_type(uu.trace().broadcast_to(stack), Tensor3D[L[4], L[2], L[3], OwnedTape]), (4, 2, 3))
check(assert_type(r.broadcast_to(matrix), Tensor2D[L[2], L[3]]), (2, 3))
check(assert_type(r.broadcast_to(stack), Tensor3D[L[4], L[2], L[3]]), (4, 2, 3))
check(assert_type(r.trace().broadcast_to(stack), Tensor3D[L[4], L[2], L[3], OwnedTape]), (4, 2, 3))
check(assert_type(c.broadcast_to(matrix), Tensor2D[L[2], L[3]]), (2, 3))
check(assert_type(c.broadcast_to(stack), Tensor3D[L[4], L[2], L[3]]), (4, 2, 3))
check(assert_type(c.trace().broadcast_to(stack), Tensor3D[L[4], L[2], L[3], OwnedTape]), (4, 2, 3))
check(assert_type(m.broadcast_to(stack), Tensor3D[L[4], L[2], L[3]]), (4, 2, 3))
check(assert_type(m.trace().broadcast_to(stack), Tensor3D[L[4], L[2], L[3], OwnedTape]), (4, 2, 3))

# Bare ints that mypy widens when they are bound to a name; to pyright they keep their size.
bare = tt.zeros((2, 3))
check(assert_type(bare, Tensor2D[int, int]), (2, 3))
check(assert_type(bare.trace().sum(axis=0), Tensor1D[int, OwnedTape]), (3,))
