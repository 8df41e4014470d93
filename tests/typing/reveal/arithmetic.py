"""`-`, `*`, `**` and the sign."""

from __future__ import annotations

from typing import Literal as L

import numpy as np

from tapetensor import NoneTape, OwnedTape, Tensor0D, Tensor2D, Tensor3D
from tests.typing.check import assert_type, check
from tests.typing.operands import m, md, mi, s, v, z, z1

# Subtraction has the signatures of `+`: a line for each kind of operands.
check(assert_type(m - m, Tensor2D[L[2], L[3]]), (2, 3))
check(assert_type(m - v.trace(), Tensor2D[L[2], L[3], OwnedTape]), (2, 3))
check(assert_type(v - z.trace(), Tensor3D[L[4], L[2], L[3], OwnedTape]), (4, 2, 3))
check(assert_type(z.trace() - z1, Tensor3D[L[4], L[2], L[3], OwnedTape]), (4, 2, 3))

# A number on either side takes the dtype of the tensor.
check(assert_type(2.0 - md.trace(), Tensor2D[L[2], L[3], OwnedTape, np.float64]), (2, 3))
check(assert_type(mi - 2, Tensor2D[L[2], L[3], NoneTape, np.int64]), (2, 3))
check(assert_type(2 - mi, Tensor2D[L[2], L[3], NoneTape, np.int64]), (2, 3))

# So has multiplication.
check(assert_type(m * m, Tensor2D[L[2], L[3]]), (2, 3))
check(assert_type(m * v.trace(), Tensor2D[L[2], L[3], OwnedTape]), (2, 3))
check(assert_type(v * z.trace(), Tensor3D[L[4], L[2], L[3], OwnedTape]), (4, 2, 3))
check(assert_type(z.trace() * z1, Tensor3D[L[4], L[2], L[3], OwnedTape]), (4, 2, 3))

# A number on either side takes the dtype of the tensor.
check(assert_type(2.0 * md.trace(), Tensor2D[L[2], L[3], OwnedTape, np.float64]), (2, 3))
check(assert_type(mi * 2, Tensor2D[L[2], L[3], NoneTape, np.int64]), (2, 3))
check(assert_type(2 * mi, Tensor2D[L[2], L[3], NoneTape, np.int64]), (2, 3))

# Powers: of equal shapes, or a number on either side.
check(assert_type(m**m, Tensor2D[L[2], L[3]]), (2, 3))
check(assert_type(m ** m.trace(), Tensor2D[L[2], L[3], OwnedTape]), (2, 3))
check(assert_type(m.trace() ** m, Tensor2D[L[2], L[3], OwnedTape]), (2, 3))
check(assert_type(m.trace() ** m.trace(), Tensor2D[L[2], L[3], OwnedTape]), (2, 3))
check(assert_type(md**md, Tensor2D[L[2], L[3], NoneTape, np.float64]), (2, 3))
check(assert_type(s**s, Tensor0D), ())
check(assert_type(z**2.0, Tensor3D[L[4], L[2], L[3]]), (4, 2, 3))
check(assert_type(z.trace() ** 2, Tensor3D[L[4], L[2], L[3], OwnedTape]), (4, 2, 3))
check(assert_type(2.0**z, Tensor3D[L[4], L[2], L[3]]), (4, 2, 3))
check(assert_type(2 ** z.trace(), Tensor3D[L[4], L[2], L[3], OwnedTape]), (4, 2, 3))
check(assert_type(md**0.5, Tensor2D[L[2], L[3], NoneTape, np.float64]), (2, 3))

# Signs.
check(assert_type(-z, Tensor3D[L[4], L[2], L[3]]), (4, 2, 3))
check(assert_type(-z.trace(), Tensor3D[L[4], L[2], L[3], OwnedTape]), (4, 2, 3))
check(assert_type(-mi, Tensor2D[L[2], L[3], NoneTape, np.int64]), (2, 3))
check(assert_type(-md.trace(), Tensor2D[L[2], L[3], OwnedTape, np.float64]), (2, 3))
