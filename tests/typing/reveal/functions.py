"""Functions of several tensors."""

from __future__ import annotations

from typing import Any
from typing import Literal as L

import numpy as np

import tapetensor as tt
from tapetensor import NoneTape, OwnedTape, Tensor, Tensor1D, Tensor2D, Tensor3D
from tests.typing.check import assert_type, check
from tests.typing.operands import c, m, mask, md, mi, r, s, u, v, vd, w, wd, z, z1, zc, zr

# `maximum`.
check(assert_type(tt.maximum(m, m), Tensor2D[L[2], L[3]]), (2, 3))
check(assert_type(tt.maximum(m, m.trace()), Tensor2D[L[2], L[3], OwnedTape]), (2, 3))
check(assert_type(tt.maximum(m.trace(), m), Tensor2D[L[2], L[3], OwnedTape]), (2, 3))
check(assert_type(tt.maximum(m.trace(), m.trace()), Tensor2D[L[2], L[3], OwnedTape]), (2, 3))
check(assert_type(tt.maximum(m, s.trace()), Tensor2D[L[2], L[3], OwnedTape]), (2, 3))
check(assert_type(tt.maximum(m.trace(), s), Tensor2D[L[2], L[3], OwnedTape]), (2, 3))
check(assert_type(tt.maximum(m.trace(), s.trace()), Tensor2D[L[2], L[3], OwnedTape]), (2, 3))
check(assert_type(tt.maximum(z, v.trace()), Tensor3D[L[4], L[2], L[3], OwnedTape]), (4, 2, 3))
check(assert_type(tt.maximum(z.trace(), v), Tensor3D[L[4], L[2], L[3], OwnedTape]), (4, 2, 3))
check(
    assert_type(tt.maximum(z.trace(), v.trace()), Tensor3D[L[4], L[2], L[3], OwnedTape]), (4, 2, 3)
)
check(assert_type(tt.maximum(z, zc.trace()), Tensor3D[L[4], L[2], L[3], OwnedTape]), (4, 2, 3))
check(assert_type(tt.maximum(z.trace(), zc), Tensor3D[L[4], L[2], L[3], OwnedTape]), (4, 2, 3))
check(
    assert_type(tt.maximum(z.trace(), zc.trace()), Tensor3D[L[4], L[2], L[3], OwnedTape]), (4, 2, 3)
)
check(assert_type(tt.maximum(z, 0.0), Tensor3D[L[4], L[2], L[3]]), (4, 2, 3))
check(assert_type(tt.maximum(z.trace(), 0), Tensor3D[L[4], L[2], L[3], OwnedTape]), (4, 2, 3))
check(assert_type(tt.maximum(mi, 1), Tensor2D[L[2], L[3], NoneTape, np.int64]), (2, 3))
check(assert_type(tt.maximum(mi, mi), Tensor2D[L[2], L[3], NoneTape, np.int64]), (2, 3))
check(assert_type(tt.maximum(md.trace(), md), Tensor2D[L[2], L[3], OwnedTape, np.float64]), (2, 3))
# `minimum`.
check(assert_type(tt.minimum(m, m.trace()), Tensor2D[L[2], L[3], OwnedTape]), (2, 3))
check(assert_type(tt.minimum(z.trace(), v), Tensor3D[L[4], L[2], L[3], OwnedTape]), (4, 2, 3))
check(assert_type(tt.minimum(mi, 1), Tensor2D[L[2], L[3], NoneTape, np.int64]), (2, 3))

# `where`: the mask is plain.
check(assert_type(tt.where(mask, m, m), Tensor2D[L[2], L[3]]), (2, 3))
check(assert_type(tt.where(mask, m, m.trace()), Tensor2D[L[2], L[3], OwnedTape]), (2, 3))
check(assert_type(tt.where(mask, m.trace(), m), Tensor2D[L[2], L[3], OwnedTape]), (2, 3))
check(assert_type(tt.where(mask, m.trace(), m.trace()), Tensor2D[L[2], L[3], OwnedTape]), (2, 3))
check(assert_type(tt.where(mask, m, 0.0), Tensor2D[L[2], L[3]]), (2, 3))
check(assert_type(tt.where(mask, m.trace(), 0.0), Tensor2D[L[2], L[3], OwnedTape]), (2, 3))
check(assert_type(tt.where(mask, 0.0, m), Tensor2D[L[2], L[3]]), (2, 3))
check(assert_type(tt.where(mask, 1, m.trace()), Tensor2D[L[2], L[3], OwnedTape]), (2, 3))
check(assert_type(tt.where(mask, z.trace(), 0.0), Tensor3D[L[4], L[2], L[3], OwnedTape]), (4, 2, 3))
check(assert_type(tt.where(mask, 0, mi), Tensor2D[L[2], L[3], NoneTape, np.int64]), (2, 3))
zi: Tensor3D[L[4], L[2], L[3], NoneTape, np.int64] = tt.zeros((4, 2, 3), np.int64)
check(assert_type(tt.where(mask, zi, 0), Tensor3D[L[4], L[2], L[3], NoneTape, np.int64]), (4, 2, 3))
check(
    assert_type(tt.where(mask, md, md.trace()), Tensor2D[L[2], L[3], OwnedTape, np.float64]), (2, 3)
)

# `concat`: the axis that grows is open, the others are exact.
check(assert_type(tt.concat((m, r)), Tensor2D[Any, L[3]]), (3, 3))
check(assert_type(tt.concat((m, r.trace())), Tensor2D[Any, L[3], OwnedTape]), (3, 3))
check(assert_type(tt.concat((m.trace(), r)), Tensor2D[Any, L[3], OwnedTape]), (3, 3))
check(assert_type(tt.concat((m.trace(), r.trace())), Tensor2D[Any, L[3], OwnedTape]), (3, 3))
check(assert_type(tt.concat((z, z1), axis=0), Tensor3D[Any, L[2], L[3]]), (5, 2, 3))
check(
    assert_type(tt.concat((z, z1.trace()), axis=0), Tensor3D[Any, L[2], L[3], OwnedTape]), (5, 2, 3)
)
check(assert_type(tt.concat((m, c), axis=-1), Tensor2D[L[2], Any]), (2, 4))
check(assert_type(tt.concat((m, c.trace()), axis=-1), Tensor2D[L[2], Any, OwnedTape]), (2, 4))
check(assert_type(tt.concat((m.trace(), c), axis=-1), Tensor2D[L[2], Any, OwnedTape]), (2, 4))
check(assert_type(tt.concat((z, zr), axis=1), Tensor3D[L[4], Any, L[3]]), (4, 3, 3))
check(
    assert_type(tt.concat((z, zr.trace()), axis=1), Tensor3D[L[4], Any, L[3], OwnedTape]), (4, 3, 3)
)
check(
    assert_type(tt.concat((z.trace(), zr), axis=1), Tensor3D[L[4], Any, L[3], OwnedTape]), (4, 3, 3)
)
check(assert_type(tt.concat((v, u)), Tensor1D[Any]), (4,))
check(assert_type(tt.concat((v.trace(), u)), Tensor1D[Any, OwnedTape]), (4,))
check(assert_type(tt.concat((m, r, m)), Tensor2D[Any, L[3]]), (5, 3))
check(
    assert_type(tt.concat((m.trace(), r.trace(), m.trace())), Tensor2D[Any, L[3], OwnedTape]),
    (5, 3),
)
check(assert_type(tt.concat([m, m, m, m]), Tensor2D[Any, L[3]]), (8, 3))
check(assert_type(tt.concat([m, m], axis=-1), Tensor2D[L[2], Any]), (2, 6))
check(assert_type(tt.concat([z, z], axis=1), Tensor3D[L[4], Any, L[3]]), (4, 4, 3))
check(assert_type(tt.concat((mi, mi)), Tensor2D[Any, L[3], NoneTape, np.int64]), (4, 3))

# `stack`: two or three are counted, more are open.
check(assert_type(tt.stack((m, m)), Tensor3D[L[2], L[2], L[3]]), (2, 2, 3))
check(assert_type(tt.stack((m, m.trace())), Tensor3D[L[2], L[2], L[3], OwnedTape]), (2, 2, 3))
check(assert_type(tt.stack((m.trace(), m)), Tensor3D[L[2], L[2], L[3], OwnedTape]), (2, 2, 3))
check(
    assert_type(tt.stack((m.trace(), m.trace())), Tensor3D[L[2], L[2], L[3], OwnedTape]), (2, 2, 3)
)
check(
    assert_type(tt.stack((m, m.trace()), axis=-1), Tensor3D[L[2], L[3], L[2], OwnedTape]), (2, 3, 2)
)
check(
    assert_type(tt.stack((m.trace(), m), axis=-1), Tensor3D[L[2], L[3], L[2], OwnedTape]), (2, 3, 2)
)
check(assert_type(tt.stack((s, s)), Tensor1D[L[2]]), (2,))
check(assert_type(tt.stack((v, v, v)), Tensor2D[L[3], L[3]]), (3, 3))
check(
    assert_type(tt.stack((v.trace(), v.trace(), v.trace())), Tensor2D[L[3], L[3], OwnedTape]),
    (3, 3),
)
check(assert_type(tt.stack([v, v, v, v]), Tensor2D[Any, L[3]]), (4, 3))
check(assert_type(tt.stack([m, m, m], axis=-1), Tensor3D[L[2], L[3], Any]), (2, 3, 3))
check(assert_type(tt.stack([m, m, m], axis=1), Tensor3D[L[2], Any, L[3]]), (2, 3, 3))
check(
    assert_type(tt.stack((md, md.trace())), Tensor3D[L[2], L[2], L[3], OwnedTape, np.float64]),
    (2, 2, 3),
)

# `einsum`: tape and dtype are exact, the shape is what the subscripts say.
check(assert_type(tt.einsum("ij,jk->ik", m, w), Tensor[Any, NoneTape]), (2, 6))
check(assert_type(tt.einsum("ij,jk->ik", m, w.trace()), Tensor[Any, OwnedTape]), (2, 6))
check(assert_type(tt.einsum("ij,jk->ik", m.trace(), w), Tensor[Any, OwnedTape]), (2, 6))
check(assert_type(tt.einsum("ij->ji", m), Tensor[Any, NoneTape]), (3, 2))
check(assert_type(tt.einsum("ij->", m.trace()), Tensor[Any, OwnedTape]), ())
check(assert_type(tt.einsum("i,i,i->", v, v, v), Tensor[Any, NoneTape]), ())
check(
    assert_type(tt.einsum("i,i,i->i", v.trace(), v.trace(), v.trace()), Tensor[Any, OwnedTape]),
    (3,),
)
check(assert_type(tt.einsum("ij,jk", md, wd), Tensor[Any, NoneTape, np.float64]), (2, 6))

# `ssm_scan`: coefficients for every step, or one for all.
check(assert_type(tt.ssm_scan(z, z, z), Tensor3D[L[4], L[2], L[3]]), (4, 2, 3))
check(assert_type(tt.ssm_scan(z, z, z.trace()), Tensor3D[L[4], L[2], L[3], OwnedTape]), (4, 2, 3))
check(assert_type(tt.ssm_scan(z, z.trace(), z), Tensor3D[L[4], L[2], L[3], OwnedTape]), (4, 2, 3))
check(assert_type(tt.ssm_scan(z.trace(), z, z), Tensor3D[L[4], L[2], L[3], OwnedTape]), (4, 2, 3))
check(
    assert_type(tt.ssm_scan(z, z.trace(), z.trace()), Tensor3D[L[4], L[2], L[3], OwnedTape]),
    (4, 2, 3),
)
check(
    assert_type(
        tt.ssm_scan(z.trace(), z.trace(), z.trace()), Tensor3D[L[4], L[2], L[3], OwnedTape]
    ),
    (4, 2, 3),
)
check(assert_type(tt.ssm_scan(z, v, v.trace()), Tensor3D[L[4], L[2], L[3], OwnedTape]), (4, 2, 3))
check(assert_type(tt.ssm_scan(z, v.trace(), v), Tensor3D[L[4], L[2], L[3], OwnedTape]), (4, 2, 3))
check(assert_type(tt.ssm_scan(z.trace(), v, z), Tensor3D[L[4], L[2], L[3], OwnedTape]), (4, 2, 3))
check(
    assert_type(tt.ssm_scan(z, z.trace(), v.trace()), Tensor3D[L[4], L[2], L[3], OwnedTape]),
    (4, 2, 3),
)
check(assert_type(tt.ssm_scan(m, v, m), Tensor2D[L[2], L[3]]), (2, 3))
check(assert_type(tt.ssm_scan(md, vd, md), Tensor2D[L[2], L[3], NoneTape, np.float64]), (2, 3))
check(assert_type(tt.ssm_scan(mi, mi, mi), Tensor2D[L[2], L[3], NoneTape, np.int64]), (2, 3))
