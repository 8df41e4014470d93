"""Functions of one tensor that keep its shape."""

from __future__ import annotations

from typing import Any
from typing import Literal as L

import numpy as np

from tapetensor import NoneTape, OwnedTape, Tensor, Tensor2D, Tensor3D
from tests.typing.check import assert_type, check
from tests.typing.operands import m, mask, md, mi, s, v, vd, z

rng = np.random.default_rng(0)

# Shape, tape and dtype stay.
check(assert_type(md.trace().exp(), Tensor2D[L[2], L[3], OwnedTape, np.float64]), (2, 3))
check(assert_type(md.trace().log(), Tensor2D[L[2], L[3], OwnedTape, np.float64]), (2, 3))
check(assert_type(md.trace().sqrt(), Tensor2D[L[2], L[3], OwnedTape, np.float64]), (2, 3))
check(assert_type(md.trace().sin(), Tensor2D[L[2], L[3], OwnedTape, np.float64]), (2, 3))
check(assert_type(md.trace().cos(), Tensor2D[L[2], L[3], OwnedTape, np.float64]), (2, 3))
check(assert_type(md.trace().tanh(), Tensor2D[L[2], L[3], OwnedTape, np.float64]), (2, 3))
check(assert_type(md.trace().sigmoid(), Tensor2D[L[2], L[3], OwnedTape, np.float64]), (2, 3))
check(assert_type(md.trace().silu(), Tensor2D[L[2], L[3], OwnedTape, np.float64]), (2, 3))
check(assert_type(md.trace().gelu(), Tensor2D[L[2], L[3], OwnedTape, np.float64]), (2, 3))
check(assert_type(md.trace().softplus(), Tensor2D[L[2], L[3], OwnedTape, np.float64]), (2, 3))
check(assert_type(z.trace().leaky_relu(0.1), Tensor3D[L[4], L[2], L[3], OwnedTape]), (4, 2, 3))
check(assert_type(z.trace().elu(0.5), Tensor3D[L[4], L[2], L[3], OwnedTape]), (4, 2, 3))
check(assert_type(z.trace().nans_to(0), Tensor3D[L[4], L[2], L[3], OwnedTape]), (4, 2, 3))
check(
    assert_type(z.trace().dropout(0.5, rng=rng), Tensor3D[L[4], L[2], L[3], OwnedTape]), (4, 2, 3)
)
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
check(assert_type(md.trace().reciprocal(), Tensor2D[L[2], L[3], OwnedTape, np.float64]), (2, 3))
check(assert_type(md.trace().softmax(), Tensor2D[L[2], L[3], OwnedTape, np.float64]), (2, 3))
check(assert_type(md.trace().log_softmax(), Tensor2D[L[2], L[3], OwnedTape, np.float64]), (2, 3))
check(assert_type(md.trace().square(), Tensor2D[L[2], L[3], OwnedTape, np.float64]), (2, 3))
check(assert_type(md.trace().abs(), Tensor2D[L[2], L[3], OwnedTape, np.float64]), (2, 3))
check(assert_type(md.trace().relu(), Tensor2D[L[2], L[3], OwnedTape, np.float64]), (2, 3))

# Integers where they make sense.
check(assert_type(mi.square(), Tensor2D[L[2], L[3], NoneTape, np.int64]), (2, 3))
check(assert_type(mi.abs(), Tensor2D[L[2], L[3], NoneTape, np.int64]), (2, 3))
check(assert_type(mi.relu(), Tensor2D[L[2], L[3], NoneTape, np.int64]), (2, 3))
check(assert_type(abs(mi), Tensor2D[L[2], L[3], NoneTape, np.int64]), (2, 3))

# Arguments change nothing of it.
check(assert_type(m.clip(low=0.0), Tensor2D[L[2], L[3]]), (2, 3))
check(assert_type(m.clip(high=1), Tensor2D[L[2], L[3]]), (2, 3))
check(assert_type(mi.clip(0, 1), Tensor2D[L[2], L[3], NoneTape, np.int64]), (2, 3))
check(assert_type(mi.clip(high=1), Tensor2D[L[2], L[3], NoneTape, np.int64]), (2, 3))
check(assert_type(m.gelu("tanh"), Tensor2D[L[2], L[3]]), (2, 3))
check(assert_type(m.gelu(approximate="none"), Tensor2D[L[2], L[3]]), (2, 3))
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
check(assert_type(md.astype("float32"), Tensor2D[L[2], L[3]]), (2, 3))
check(assert_type(m.astype("float64"), Tensor2D[L[2], L[3], NoneTape, np.float64]), (2, 3))
check(assert_type(m.astype("int64"), Tensor2D[L[2], L[3], NoneTape, np.int64]), (2, 3))
check(assert_type(mi.astype("bool"), Tensor2D[L[2], L[3], NoneTape, np.bool_]), (2, 3))
truth: Tensor2D[L[2], L[3], NoneTape, np.bool_] = mi.astype(np.bool_)
check(assert_type(truth, Tensor2D[L[2], L[3], NoneTape, np.bool_]), (2, 3))

# The rest of the functions of one number.
check(assert_type(md.trace().tan(), Tensor2D[L[2], L[3], OwnedTape, np.float64]), (2, 3))
check(assert_type(md.trace().asin(), Tensor2D[L[2], L[3], OwnedTape, np.float64]), (2, 3))
check(assert_type(md.trace().acos(), Tensor2D[L[2], L[3], OwnedTape, np.float64]), (2, 3))
check(assert_type(md.trace().atan(), Tensor2D[L[2], L[3], OwnedTape, np.float64]), (2, 3))
check(assert_type(md.trace().sinh(), Tensor2D[L[2], L[3], OwnedTape, np.float64]), (2, 3))
check(assert_type(md.trace().cosh(), Tensor2D[L[2], L[3], OwnedTape, np.float64]), (2, 3))
check(assert_type(md.trace().asinh(), Tensor2D[L[2], L[3], OwnedTape, np.float64]), (2, 3))
check(assert_type(md.trace().acosh(), Tensor2D[L[2], L[3], OwnedTape, np.float64]), (2, 3))
check(assert_type((md.trace() * 0.5).atanh(), Tensor2D[L[2], L[3], OwnedTape, np.float64]), (2, 3))
check(assert_type(md.trace().expm1(), Tensor2D[L[2], L[3], OwnedTape, np.float64]), (2, 3))
check(assert_type(md.trace().log1p(), Tensor2D[L[2], L[3], OwnedTape, np.float64]), (2, 3))
check(assert_type(md.trace().log2(), Tensor2D[L[2], L[3], OwnedTape, np.float64]), (2, 3))
check(assert_type(md.trace().log10(), Tensor2D[L[2], L[3], OwnedTape, np.float64]), (2, 3))
check(assert_type(md.trace().rsqrt(), Tensor2D[L[2], L[3], OwnedTape, np.float64]), (2, 3))
check(assert_type(md.trace().erf(), Tensor2D[L[2], L[3], OwnedTape, np.float64]), (2, 3))
check(assert_type(md.trace().floor(), Tensor2D[L[2], L[3], OwnedTape, np.float64]), (2, 3))
check(assert_type(md.trace().ceil(), Tensor2D[L[2], L[3], OwnedTape, np.float64]), (2, 3))
check(assert_type(md.trace().round(), Tensor2D[L[2], L[3], OwnedTape, np.float64]), (2, 3))
check(assert_type(md.trace().trunc(), Tensor2D[L[2], L[3], OwnedTape, np.float64]), (2, 3))
check(assert_type(mi.sign(), Tensor2D[L[2], L[3], NoneTape, np.int64]), (2, 3))
check(assert_type(md.trace().isnan(), Tensor2D[L[2], L[3], NoneTape, np.bool_]), (2, 3))
check(assert_type(md.trace().isinf(), Tensor2D[L[2], L[3], NoneTape, np.bool_]), (2, 3))
check(assert_type(md.trace().isfinite(), Tensor2D[L[2], L[3], NoneTape, np.bool_]), (2, 3))
check(
    assert_type(md.trace().cumulative_prod(0), Tensor2D[L[2], L[3], OwnedTape, np.float64]), (2, 3)
)
check(assert_type(mi.cumulative_max(0), Tensor2D[L[2], L[3], NoneTape, np.int64]), (2, 3))
check(assert_type(m.trace().cumulative_min(-1), Tensor2D[L[2], L[3], OwnedTape]), (2, 3))
check(assert_type(md.cumulative_logsumexp(1), Tensor2D[L[2], L[3], NoneTape, np.float64]), (2, 3))
check(assert_type(m.diff(), Tensor2D[L[2], Any]), (2, 2))
check(assert_type(mi.diff(0), Tensor[Any, NoneTape, np.int64]), (1, 3))
check(assert_type(m.trace().logaddexp(v), Tensor2D[L[2], L[3], OwnedTape]), (2, 3))
check(assert_type(m.atan2(v.trace()), Tensor2D[L[2], L[3], OwnedTape]), (2, 3))
check(assert_type(mi // 2, Tensor2D[L[2], L[3], NoneTape, np.int64]), (2, 3))
check(assert_type(2.0 // m.trace(), Tensor2D[L[2], L[3], OwnedTape]), (2, 3))
check(assert_type(m % v.trace(), Tensor2D[L[2], L[3], OwnedTape]), (2, 3))
check(assert_type(2.0 % m, Tensor2D[L[2], L[3]]), (2, 3))
