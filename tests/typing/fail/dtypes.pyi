# Dtypes are never mixed, and an op has the dtypes that it is defined for.
# ruff: noqa: B015

from typing import Literal as L

import numpy as np

import tapetensor as tt
from tapetensor import Tensor2D
from tests.typing.operands import m, mask, md, mi, sd, v, vd, wd

# Two dtypes never meet.
m + md  # type: ignore[operator]  # float32 and float64
md + v  # type: ignore[operator]  # float64 and float32, as a row
m / md  # type: ignore[operator]  # float32 and float64
m**md  # type: ignore[operator]  # float32 and float64
m + mi  # type: ignore[operator]  # float32 and int64
m + mask  # type: ignore[operator]  # a mask is no number: where() it
m + sd  # type: ignore[operator]  # float32 and a float64 scalar
m @ wd  # type: ignore[operator]  # float32 and float64
tt.maximum(m, md)  # type: ignore[arg-type]  # float32 and float64
tt.minimum(m, mi)  # type: ignore[arg-type]  # float32 and int64
tt.where(mask, m, md)  # type: ignore[arg-type]  # float32 and float64
tt.concat((m, md))  # type: ignore[arg-type]  # float32 and float64
tt.concat([m, mi], axis=-1)  # type: ignore[call-overload]  # float32 and int64
tt.stack((m, md))  # type: ignore[arg-type]  # float32 and float64
tt.einsum("ij,jk", m, wd)  # type: ignore[arg-type]  # float32 and float64
m > md  # type: ignore[operator]  # float32 and float64
m == mi  # type: ignore[operator]  # float32 and int64

# Floating dtypes only.
mi.exp()  # type: ignore[misc]  # integers have no exponential
mi.floor()  # type: ignore[misc]  # whole numbers are whole
mi.isnan()  # type: ignore[misc]  # no integer is NaN
m.any()  # type: ignore[misc]  # compare first
mi.norm()  # type: ignore[misc]  # a length is no integer
mi.atan2(mi)  # type: ignore[misc]  # nor is an angle
mask.sign()  # type: ignore[misc]  # a mask has no sign
mi.sigmoid()  # type: ignore[misc]  # nor a sigmoid
mi.softmax()  # type: ignore[misc]  # nor a softmax
mi.clip(0, 0.5)  # type: ignore[arg-type]  # a bound that is no integer
mask.clip(0, 1)  # type: ignore[misc]  # not for bools
tt.maximum(mask, 1)  # type: ignore[type-var]  # not for bools
mi.mean()  # type: ignore[misc]  # a mean of integers is no integer
mi.var(axis=0)  # type: ignore[misc]  # nor is their variance
mi.logsumexp(axis=-1)  # type: ignore[misc]  # nor a logsumexp
mi / mi  # type: ignore[misc]  # a quotient of integers is no integer
mi + 0.5  # type: ignore[operator]  # an integer tensor beside a fraction
mi**2  # type: ignore[operator]  # powers are floating
tt.maximum(mi, 0.5)  # type: ignore[type-var]  # an integer tensor beside a fraction
tt.ssm_scan(m, vd, m)  # type: ignore[arg-type]  # float32 and float64
tt.where(mask, mi, 0.0)  # type: ignore[type-var]  # an integer tensor beside a fraction

# Numbers, not masks.
mask + mask  # type: ignore[misc]  # masks are combined with & | ^
-mask  # type: ignore[misc]  # and inverted with ~
mask.sum()  # type: ignore[misc]  # counted after astype()
mask @ mask.transpose()  # type: ignore[operator]  # and not multiplied
mask.relu()  # type: ignore[misc]  # nor rectified
~m  # type: ignore[misc]  # and only masks are inverted
m & m  # type: ignore[misc, operator]  # only masks are combined
mi | mi  # type: ignore[misc, operator]  # integers neither

# Indices are integers, masks are bool.
m.take(v)  # type: ignore[arg-type, type-var]  # float32 is no index
m[v]  # type: ignore[type-var]  # nor in brackets
tt.where(m, m, m)  # type: ignore[arg-type]  # compare first: m > 0.0
tt.where(mi, m, m)  # type: ignore[arg-type]  # an integer is no truth

# The dtype is part of the type.
def wants_float32(x: Tensor2D[L[2], L[3]]) -> None: ...

wants_float32(md)  # type: ignore[arg-type]  # float64
wants_float32(mi)  # type: ignore[arg-type]  # int64
wants_float32(m.astype(np.float64))  # type: ignore[arg-type]  # converted to float64
wants_float32(m > 0.0)  # type: ignore[arg-type]  # a mask
wants_float32(tt.zeros(m.shape, np.float64))  # type: ignore[arg-type]  # made as float64
wants_float32(tt.zeros(m.shape, np.int64))  # type: ignore[arg-type]  # made as int64
wants_float32(tt.from_numpy(np.ones((2, 3)), m.shape))  # type: ignore[arg-type]  # numpy's default is float64
wants_float32(md.mean(axis=0, keepdims=True).broadcast_to(m.shape))  # type: ignore[arg-type]  # still float64
wants_float32(m.argmax(axis=-1).expand_dims(-1).broadcast_to(m.shape))  # type: ignore[arg-type]  # positions are int64
tt.zeros(m.shape, "float64")  # type: ignore[call-overload]  # a dtype is a numpy type
tt.normal(m.shape, np.int64, rng=np.random.default_rng())  # type: ignore[type-var]  # samples are floating
m.astype(float)  # type: ignore[type-var]  # a dtype is a numpy type
m.astype("flot32")  # type: ignore[call-overload]  # or the name of one
