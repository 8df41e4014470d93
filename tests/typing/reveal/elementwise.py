"""Functions of one tensor that keep its shape."""

from __future__ import annotations

from typing import Literal as L

import numpy as np

from tapetensor import NoneTape, OwnedTape, Tensor2D, Tensor3D
from tests.typing.check import assert_type, check
from tests.typing.operands import m, mask, md, mi, s, v, vd, z

rng = np.random.default_rng(0)

# Shape, tape and dtype stay.
check(assert_type(z.exp(), Tensor3D[L[4], L[2], L[3]]), (4, 2, 3))
check(assert_type(z.trace().exp(), Tensor3D[L[4], L[2], L[3], OwnedTape]), (4, 2, 3))
check(assert_type(md.trace().exp(), Tensor2D[L[2], L[3], OwnedTape, np.float64]), (2, 3))
check(assert_type(z.log(), Tensor3D[L[4], L[2], L[3]]), (4, 2, 3))
check(assert_type(z.trace().log(), Tensor3D[L[4], L[2], L[3], OwnedTape]), (4, 2, 3))
check(assert_type(md.trace().log(), Tensor2D[L[2], L[3], OwnedTape, np.float64]), (2, 3))
check(assert_type(z.sqrt(), Tensor3D[L[4], L[2], L[3]]), (4, 2, 3))
check(assert_type(z.trace().sqrt(), Tensor3D[L[4], L[2], L[3], OwnedTape]), (4, 2, 3))
check(assert_type(md.trace().sqrt(), Tensor2D[L[2], L[3], OwnedTape, np.float64]), (2, 3))
check(assert_type(z.sin(), Tensor3D[L[4], L[2], L[3]]), (4, 2, 3))
check(assert_type(z.trace().sin(), Tensor3D[L[4], L[2], L[3], OwnedTape]), (4, 2, 3))
check(assert_type(md.trace().sin(), Tensor2D[L[2], L[3], OwnedTape, np.float64]), (2, 3))
check(assert_type(z.cos(), Tensor3D[L[4], L[2], L[3]]), (4, 2, 3))
check(assert_type(z.trace().cos(), Tensor3D[L[4], L[2], L[3], OwnedTape]), (4, 2, 3))
check(assert_type(md.trace().cos(), Tensor2D[L[2], L[3], OwnedTape, np.float64]), (2, 3))
check(assert_type(z.tanh(), Tensor3D[L[4], L[2], L[3]]), (4, 2, 3))
check(assert_type(z.trace().tanh(), Tensor3D[L[4], L[2], L[3], OwnedTape]), (4, 2, 3))
check(assert_type(md.trace().tanh(), Tensor2D[L[2], L[3], OwnedTape, np.float64]), (2, 3))
check(assert_type(z.sigmoid(), Tensor3D[L[4], L[2], L[3]]), (4, 2, 3))
check(assert_type(z.trace().sigmoid(), Tensor3D[L[4], L[2], L[3], OwnedTape]), (4, 2, 3))
check(assert_type(md.trace().sigmoid(), Tensor2D[L[2], L[3], OwnedTape, np.float64]), (2, 3))
check(assert_type(z.silu(), Tensor3D[L[4], L[2], L[3]]), (4, 2, 3))
check(assert_type(z.trace().silu(), Tensor3D[L[4], L[2], L[3], OwnedTape]), (4, 2, 3))
check(assert_type(md.trace().silu(), Tensor2D[L[2], L[3], OwnedTape, np.float64]), (2, 3))
check(assert_type(z.gelu(), Tensor3D[L[4], L[2], L[3]]), (4, 2, 3))
check(assert_type(z.trace().gelu(), Tensor3D[L[4], L[2], L[3], OwnedTape]), (4, 2, 3))
check(assert_type(md.trace().gelu(), Tensor2D[L[2], L[3], OwnedTape, np.float64]), (2, 3))
check(assert_type(z.softplus(), Tensor3D[L[4], L[2], L[3]]), (4, 2, 3))
check(assert_type(z.trace().softplus(), Tensor3D[L[4], L[2], L[3], OwnedTape]), (4, 2, 3))
check(assert_type(md.trace().softplus(), Tensor2D[L[2], L[3], OwnedTape, np.float64]), (2, 3))
check(assert_type(z.leaky_relu(), Tensor3D[L[4], L[2], L[3]]), (4, 2, 3))
check(assert_type(z.trace().leaky_relu(0.1), Tensor3D[L[4], L[2], L[3], OwnedTape]), (4, 2, 3))
check(assert_type(md.trace().leaky_relu(), Tensor2D[L[2], L[3], OwnedTape, np.float64]), (2, 3))
check(assert_type(z.elu(), Tensor3D[L[4], L[2], L[3]]), (4, 2, 3))
check(assert_type(z.trace().elu(0.5), Tensor3D[L[4], L[2], L[3], OwnedTape]), (4, 2, 3))
check(assert_type(z.nans_to(0.0), Tensor3D[L[4], L[2], L[3]]), (4, 2, 3))
check(assert_type(z.trace().nans_to(0), Tensor3D[L[4], L[2], L[3], OwnedTape]), (4, 2, 3))
check(assert_type(z.dropout(0.5, rng=rng), Tensor3D[L[4], L[2], L[3]]), (4, 2, 3))
check(
    assert_type(z.trace().dropout(0.5, rng=rng), Tensor3D[L[4], L[2], L[3], OwnedTape]), (4, 2, 3)
)
check(assert_type(z.normalize(), Tensor3D[L[4], L[2], L[3]]), (4, 2, 3))
check(assert_type(md.trace().normalize(0), Tensor2D[L[2], L[3], OwnedTape, np.float64]), (2, 3))
check(assert_type(z.tril(), Tensor3D[L[4], L[2], L[3]]), (4, 2, 3))
check(assert_type(z.trace().triu(k=1), Tensor3D[L[4], L[2], L[3], OwnedTape]), (4, 2, 3))
check(assert_type(mask.tril(), Tensor2D[L[2], L[3], NoneTape, np.bool_]), (2, 3))

# `prelu`: one slope, one for each place of the last axis, one for each element.
check(assert_type(z.prelu(s), Tensor3D[L[4], L[2], L[3]]), (4, 2, 3))
check(assert_type(z.prelu(v), Tensor3D[L[4], L[2], L[3]]), (4, 2, 3))
check(assert_type(z.prelu(z), Tensor3D[L[4], L[2], L[3]]), (4, 2, 3))
check(assert_type(z.prelu(s.trace()), Tensor3D[L[4], L[2], L[3], OwnedTape]), (4, 2, 3))
check(assert_type(z.prelu(v.trace()), Tensor3D[L[4], L[2], L[3], OwnedTape]), (4, 2, 3))
check(assert_type(z.trace().prelu(v), Tensor3D[L[4], L[2], L[3], OwnedTape]), (4, 2, 3))
check(assert_type(z.trace().prelu(z), Tensor3D[L[4], L[2], L[3], OwnedTape]), (4, 2, 3))
check(assert_type(z.trace().prelu(s.trace()), Tensor3D[L[4], L[2], L[3], OwnedTape]), (4, 2, 3))
check(assert_type(md.prelu(vd), Tensor2D[L[2], L[3], NoneTape, np.float64]), (2, 3))
check(assert_type(z.reciprocal(), Tensor3D[L[4], L[2], L[3]]), (4, 2, 3))
check(assert_type(z.trace().reciprocal(), Tensor3D[L[4], L[2], L[3], OwnedTape]), (4, 2, 3))
check(assert_type(md.trace().reciprocal(), Tensor2D[L[2], L[3], OwnedTape, np.float64]), (2, 3))
check(assert_type(z.softmax(), Tensor3D[L[4], L[2], L[3]]), (4, 2, 3))
check(assert_type(z.trace().softmax(), Tensor3D[L[4], L[2], L[3], OwnedTape]), (4, 2, 3))
check(assert_type(md.trace().softmax(), Tensor2D[L[2], L[3], OwnedTape, np.float64]), (2, 3))
check(assert_type(z.log_softmax(), Tensor3D[L[4], L[2], L[3]]), (4, 2, 3))
check(assert_type(z.trace().log_softmax(), Tensor3D[L[4], L[2], L[3], OwnedTape]), (4, 2, 3))
check(assert_type(md.trace().log_softmax(), Tensor2D[L[2], L[3], OwnedTape, np.float64]), (2, 3))
check(assert_type(z.square(), Tensor3D[L[4], L[2], L[3]]), (4, 2, 3))
check(assert_type(z.trace().square(), Tensor3D[L[4], L[2], L[3], OwnedTape]), (4, 2, 3))
check(assert_type(md.trace().square(), Tensor2D[L[2], L[3], OwnedTape, np.float64]), (2, 3))
check(assert_type(z.abs(), Tensor3D[L[4], L[2], L[3]]), (4, 2, 3))
check(assert_type(z.trace().abs(), Tensor3D[L[4], L[2], L[3], OwnedTape]), (4, 2, 3))
check(assert_type(md.trace().abs(), Tensor2D[L[2], L[3], OwnedTape, np.float64]), (2, 3))
check(assert_type(z.relu(), Tensor3D[L[4], L[2], L[3]]), (4, 2, 3))
check(assert_type(z.trace().relu(), Tensor3D[L[4], L[2], L[3], OwnedTape]), (4, 2, 3))
check(assert_type(md.trace().relu(), Tensor2D[L[2], L[3], OwnedTape, np.float64]), (2, 3))

# Integers where they make sense.
check(assert_type(mi.square(), Tensor2D[L[2], L[3], NoneTape, np.int64]), (2, 3))
check(assert_type(mi.abs(), Tensor2D[L[2], L[3], NoneTape, np.int64]), (2, 3))
check(assert_type(mi.relu(), Tensor2D[L[2], L[3], NoneTape, np.int64]), (2, 3))
check(assert_type(abs(mi), Tensor2D[L[2], L[3], NoneTape, np.int64]), (2, 3))

# Arguments change nothing of it.
check(assert_type(m.clip(0.0, 1.0), Tensor2D[L[2], L[3]]), (2, 3))
check(assert_type(m.clip(low=0.0), Tensor2D[L[2], L[3]]), (2, 3))
check(assert_type(m.clip(high=1), Tensor2D[L[2], L[3]]), (2, 3))
check(assert_type(m.gelu("tanh"), Tensor2D[L[2], L[3]]), (2, 3))
check(assert_type(m.gelu(approximate="none"), Tensor2D[L[2], L[3]]), (2, 3))
check(assert_type(m.softmax(axis=0), Tensor2D[L[2], L[3]]), (2, 3))
check(assert_type(m.cumulative_sum(axis=0), Tensor2D[L[2], L[3]]), (2, 3))
check(assert_type(z.trace().cumulative_sum(-1), Tensor3D[L[4], L[2], L[3], OwnedTape]), (4, 2, 3))
check(assert_type(mi.cumulative_sum(1), Tensor2D[L[2], L[3], NoneTape, np.int64]), (2, 3))
check(assert_type(m.log_softmax(axis=0), Tensor2D[L[2], L[3]]), (2, 3))
check(assert_type(m.trace().clip(0.0, 1.0), Tensor2D[L[2], L[3], OwnedTape]), (2, 3))
check(assert_type(m.trace().softmax(0), Tensor2D[L[2], L[3], OwnedTape]), (2, 3))
check(assert_type(abs(m.trace()), Tensor2D[L[2], L[3], OwnedTape]), (2, 3))

# Conversion changes the dtype alone.
check(assert_type(m.astype(np.float64), Tensor2D[L[2], L[3], NoneTape, np.float64]), (2, 3))
check(
    assert_type(m.trace().astype(np.float64), Tensor2D[L[2], L[3], OwnedTape, np.float64]), (2, 3)
)
check(assert_type(m.astype(np.int64), Tensor2D[L[2], L[3], NoneTape, np.int64]), (2, 3))
check(assert_type(mask.astype(np.float32), Tensor2D[L[2], L[3]]), (2, 3))
truth: Tensor2D[L[2], L[3], NoneTape, np.bool_] = mi.astype(np.bool_)
check(assert_type(truth, Tensor2D[L[2], L[3], NoneTape, np.bool_]), (2, 3))
