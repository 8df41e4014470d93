"""`+`: every static form in every tape combination."""

from __future__ import annotations

from typing import Literal as L

import numpy as np

from tapetensor import NoneTape, OwnedTape, Tensor0D, Tensor2D, Tensor3D, Tensor4D
from tests.typing.check import assert_type, check
from tests.typing.operands import c, m, md, mi, q, r, s, si, v, vd, vi, z, z1, zc

# Equal shapes.
check(assert_type(m + m, Tensor2D[L[2], L[3]]), (2, 3))
check(assert_type(m + m.trace(), Tensor2D[L[2], L[3], OwnedTape]), (2, 3))
check(assert_type(m.trace() + m, Tensor2D[L[2], L[3], OwnedTape]), (2, 3))
check(assert_type(m.trace() + m.trace(), Tensor2D[L[2], L[3], OwnedTape]), (2, 3))

# A 0-d tensor beside anything.
check(assert_type(m + s, Tensor2D[L[2], L[3]]), (2, 3))
check(assert_type(m + s.trace(), Tensor2D[L[2], L[3], OwnedTape]), (2, 3))
check(assert_type(m.trace() + s, Tensor2D[L[2], L[3], OwnedTape]), (2, 3))
check(assert_type(m.trace() + s.trace(), Tensor2D[L[2], L[3], OwnedTape]), (2, 3))
check(assert_type(s + m, Tensor2D[L[2], L[3]]), (2, 3))
check(assert_type(s + m.trace(), Tensor2D[L[2], L[3], OwnedTape]), (2, 3))
check(assert_type(s.trace() + m, Tensor2D[L[2], L[3], OwnedTape]), (2, 3))
check(assert_type(s.trace() + m.trace(), Tensor2D[L[2], L[3], OwnedTape]), (2, 3))
check(assert_type(s + s, Tensor0D), ())
check(assert_type(s.trace() + s.trace(), Tensor0D[OwnedTape]), ())

# A row under leading axes.
check(assert_type(m + v, Tensor2D[L[2], L[3]]), (2, 3))
check(assert_type(z + v, Tensor3D[L[4], L[2], L[3]]), (4, 2, 3))
check(assert_type(z + v.trace(), Tensor3D[L[4], L[2], L[3], OwnedTape]), (4, 2, 3))
check(assert_type(z.trace() + v, Tensor3D[L[4], L[2], L[3], OwnedTape]), (4, 2, 3))
check(assert_type(z.trace() + v.trace(), Tensor3D[L[4], L[2], L[3], OwnedTape]), (4, 2, 3))
check(assert_type(v + m, Tensor2D[L[2], L[3]]), (2, 3))
check(assert_type(v + z, Tensor3D[L[4], L[2], L[3]]), (4, 2, 3))
check(assert_type(v + z.trace(), Tensor3D[L[4], L[2], L[3], OwnedTape]), (4, 2, 3))
check(assert_type(v.trace() + z, Tensor3D[L[4], L[2], L[3], OwnedTape]), (4, 2, 3))
check(assert_type(v.trace() + z.trace(), Tensor3D[L[4], L[2], L[3], OwnedTape]), (4, 2, 3))

# A matrix under leading axes.
check(assert_type(z + m, Tensor3D[L[4], L[2], L[3]]), (4, 2, 3))
check(assert_type(z + m.trace(), Tensor3D[L[4], L[2], L[3], OwnedTape]), (4, 2, 3))
check(assert_type(z.trace() + m, Tensor3D[L[4], L[2], L[3], OwnedTape]), (4, 2, 3))
check(assert_type(z.trace() + m.trace(), Tensor3D[L[4], L[2], L[3], OwnedTape]), (4, 2, 3))
check(assert_type(m + z, Tensor3D[L[4], L[2], L[3]]), (4, 2, 3))
check(assert_type(m + z.trace(), Tensor3D[L[4], L[2], L[3], OwnedTape]), (4, 2, 3))
check(assert_type(m.trace() + z, Tensor3D[L[4], L[2], L[3], OwnedTape]), (4, 2, 3))
check(assert_type(m.trace() + z.trace(), Tensor3D[L[4], L[2], L[3], OwnedTape]), (4, 2, 3))
check(assert_type(z + c, Tensor3D[L[4], L[2], L[3]]), (4, 2, 3))
check(assert_type(z + r.trace(), Tensor3D[L[4], L[2], L[3], OwnedTape]), (4, 2, 3))
check(assert_type(c + z, Tensor3D[L[4], L[2], L[3]]), (4, 2, 3))
check(assert_type(c + z.trace(), Tensor3D[L[4], L[2], L[3], OwnedTape]), (4, 2, 3))
check(assert_type(r.trace() + z, Tensor3D[L[4], L[2], L[3], OwnedTape]), (4, 2, 3))
check(assert_type(q.trace() + m, Tensor4D[L[5], L[4], L[2], L[3], OwnedTape]), (5, 4, 2, 3))

# A 1 in the last place (keepdims=True).
check(assert_type(m + c.trace(), Tensor2D[L[2], L[3], OwnedTape]), (2, 3))
check(assert_type(z + zc, Tensor3D[L[4], L[2], L[3]]), (4, 2, 3))
check(assert_type(z + zc.trace(), Tensor3D[L[4], L[2], L[3], OwnedTape]), (4, 2, 3))
check(assert_type(z.trace() + zc, Tensor3D[L[4], L[2], L[3], OwnedTape]), (4, 2, 3))
check(assert_type(z.trace() + zc.trace(), Tensor3D[L[4], L[2], L[3], OwnedTape]), (4, 2, 3))
check(assert_type(c.trace() + m, Tensor2D[L[2], L[3], OwnedTape]), (2, 3))
check(assert_type(zc + z, Tensor3D[L[4], L[2], L[3]]), (4, 2, 3))
check(assert_type(zc + z.trace(), Tensor3D[L[4], L[2], L[3], OwnedTape]), (4, 2, 3))
check(assert_type(zc.trace() + z, Tensor3D[L[4], L[2], L[3], OwnedTape]), (4, 2, 3))
check(assert_type(zc.trace() + z.trace(), Tensor3D[L[4], L[2], L[3], OwnedTape]), (4, 2, 3))

# A 1 in the last or the second-last place under leading axes.
check(assert_type(z + c, Tensor3D[L[4], L[2], L[3]]), (4, 2, 3))
check(assert_type(z + c.trace(), Tensor3D[L[4], L[2], L[3], OwnedTape]), (4, 2, 3))
check(assert_type(z.trace() + c, Tensor3D[L[4], L[2], L[3], OwnedTape]), (4, 2, 3))
check(assert_type(z.trace() + c.trace(), Tensor3D[L[4], L[2], L[3], OwnedTape]), (4, 2, 3))
check(assert_type(z + r, Tensor3D[L[4], L[2], L[3]]), (4, 2, 3))
check(assert_type(z + r.trace(), Tensor3D[L[4], L[2], L[3], OwnedTape]), (4, 2, 3))
check(assert_type(z.trace() + r, Tensor3D[L[4], L[2], L[3], OwnedTape]), (4, 2, 3))
check(assert_type(z.trace() + r.trace(), Tensor3D[L[4], L[2], L[3], OwnedTape]), (4, 2, 3))

# A 1 in the first place.
check(assert_type(m + r, Tensor2D[L[2], L[3]]), (2, 3))
check(assert_type(z + z1, Tensor3D[L[4], L[2], L[3]]), (4, 2, 3))
check(assert_type(z + z1.trace(), Tensor3D[L[4], L[2], L[3], OwnedTape]), (4, 2, 3))
check(assert_type(z.trace() + z1, Tensor3D[L[4], L[2], L[3], OwnedTape]), (4, 2, 3))
check(assert_type(z.trace() + z1.trace(), Tensor3D[L[4], L[2], L[3], OwnedTape]), (4, 2, 3))
check(assert_type(r + m, Tensor2D[L[2], L[3]]), (2, 3))
check(assert_type(z1 + z, Tensor3D[L[4], L[2], L[3]]), (4, 2, 3))
check(assert_type(z1 + z.trace(), Tensor3D[L[4], L[2], L[3], OwnedTape]), (4, 2, 3))
check(assert_type(z1.trace() + z, Tensor3D[L[4], L[2], L[3], OwnedTape]), (4, 2, 3))
check(assert_type(z1.trace() + z.trace(), Tensor3D[L[4], L[2], L[3], OwnedTape]), (4, 2, 3))

# A column beside a row.
check(assert_type(c + r, Tensor2D[L[2], L[3]]), (2, 3))
check(assert_type(c + r.trace(), Tensor2D[L[2], L[3], OwnedTape]), (2, 3))
check(assert_type(c.trace() + r, Tensor2D[L[2], L[3], OwnedTape]), (2, 3))
check(assert_type(c.trace() + r.trace(), Tensor2D[L[2], L[3], OwnedTape]), (2, 3))
check(assert_type(c + v, Tensor2D[L[2], L[3]]), (2, 3))
check(assert_type(c.trace() + v.trace(), Tensor2D[L[2], L[3], OwnedTape]), (2, 3))

# A number on either side takes the dtype of the tensor.
check(assert_type(m + 2.0, Tensor2D[L[2], L[3]]), (2, 3))
check(assert_type(2.0 + m, Tensor2D[L[2], L[3]]), (2, 3))
check(assert_type(m + 2, Tensor2D[L[2], L[3]]), (2, 3))
check(assert_type(m.trace() + 2.0, Tensor2D[L[2], L[3], OwnedTape]), (2, 3))
check(assert_type(2.0 + m.trace(), Tensor2D[L[2], L[3], OwnedTape]), (2, 3))
check(assert_type(md + 2.0, Tensor2D[L[2], L[3], NoneTape, np.float64]), (2, 3))
check(assert_type(2.0 + md.trace(), Tensor2D[L[2], L[3], OwnedTape, np.float64]), (2, 3))
check(assert_type(mi + 2, Tensor2D[L[2], L[3], NoneTape, np.int64]), (2, 3))
check(assert_type(2 + mi, Tensor2D[L[2], L[3], NoneTape, np.int64]), (2, 3))

# The dtype stays.
check(assert_type(md.trace() + vd, Tensor2D[L[2], L[3], OwnedTape, np.float64]), (2, 3))
check(assert_type(mi + vi, Tensor2D[L[2], L[3], NoneTape, np.int64]), (2, 3))
check(assert_type(mi + si, Tensor2D[L[2], L[3], NoneTape, np.int64]), (2, 3))
