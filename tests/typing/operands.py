"""The plain operands of the cases, named by kind; `.trace()` gives each a tape."""

from __future__ import annotations

from typing import Literal as L

import numpy as np

from tapetensor import NoneTape, Tensor0D, Tensor1D, Tensor2D, Tensor3D, Tensor4D, eye, full, ones

# A scalar, a vector, a matrix and stacks of matrices: every shape is the end of the next.
s: Tensor0D = full((), 2.0)
v: Tensor1D[L[3]] = ones((3,))
m: Tensor2D[L[2], L[3]] = ones((2, 3))
z: Tensor3D[L[4], L[2], L[3]] = ones((4, 2, 3))
q: Tensor4D[L[5], L[4], L[2], L[3]] = ones((5, 4, 2, 3))

# Rows, columns and others with a 1, which broadcast against them.
r: Tensor2D[L[1], L[3]] = ones((1, 3))
c: Tensor2D[L[2], L[1]] = ones((2, 1))
z1: Tensor3D[L[1], L[2], L[3]] = ones((1, 2, 3))
zr: Tensor3D[L[4], L[1], L[3]] = ones((4, 1, 3))
zc: Tensor3D[L[4], L[2], L[1]] = ones((4, 2, 1))
u: Tensor1D[L[1]] = ones((1,))
uu: Tensor2D[L[1], L[1]] = ones((1, 1))

# What they can be multiplied with as matrices.
w: Tensor2D[L[3], L[6]] = ones((3, 6))
zw: Tensor3D[L[4], L[3], L[6]] = ones((4, 3, 6))

# What fits none of them.
v7: Tensor1D[L[7]] = ones((7,))
m77: Tensor2D[L[7], L[7]] = eye(7)

# Other dtypes: doubles, integers, masks.
sd: Tensor0D[NoneTape, np.float64] = full((), 2.0, np.float64)
vd: Tensor1D[L[3], NoneTape, np.float64] = ones((3,), np.float64)
md: Tensor2D[L[2], L[3], NoneTape, np.float64] = ones((2, 3), np.float64)
wd: Tensor2D[L[3], L[6], NoneTape, np.float64] = ones((3, 6), np.float64)
si: Tensor0D[NoneTape, np.int64] = full((), 1, np.int64)
vi: Tensor1D[L[3], NoneTape, np.int64] = ones((3,), np.int64)
mi: Tensor2D[L[2], L[3], NoneTape, np.int64] = ones((2, 3), np.int64)
positions: Tensor1D[L[7], NoneTape, np.int64] = full((7,), 0, np.int64)
grid: Tensor2D[L[7], L[8], NoneTape, np.int64] = full((7, 8), 0, np.int64)
box: Tensor3D[L[7], L[8], L[9], NoneTape, np.int64] = full((7, 8, 9), 0, np.int64)
mask: Tensor2D[L[2], L[3], NoneTape, np.bool_] = ones((2, 3), np.bool_)
vmask: Tensor1D[L[3], NoneTape, np.bool_] = ones((3,), np.bool_)
