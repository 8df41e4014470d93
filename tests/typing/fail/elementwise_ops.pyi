# Shapes that `+ - * / **` and comparisons refuse.
# ruff: noqa: B015

from typing import Any
from typing import Literal as L

import numpy as np

from tapetensor import Tensor1D, Tensor2D
from tests.typing.operands import c, m, m77, mask, mi, uu, v, v7, vd, vmask, z, zw

rng: np.random.Generator

# Neither equal nor one of the usual broadcasts.
m + v7  # type: ignore[operator]  # the last axes differ, 3 and 7
m + m77  # type: ignore[operator]  # both axes differ
v + v7  # type: ignore[operator]  # two vectors of different sizes
m + zw  # type: ignore[operator]  # nothing lines up
m.trace() + v7.trace()  # type: ignore[operator]  # and on both
v7 + m  # type: ignore[operator]  # a row of the wrong size on the left
c + v7.expand_dims(-1)  # type: ignore[operator]  # two columns of different lengths
m - v7  # type: ignore[operator]  # `-` as `+`
m * v7  # type: ignore[operator]  # `*` as `+`
m / m77  # type: ignore[operator]  # both axes differ
v7 / m.trace()  # type: ignore[operator]  # a row of the wrong size on the left
z / zw  # type: ignore[operator]  # the last two axes differ
m // v7  # type: ignore[operator]  # the last axes differ
m % m77  # type: ignore[operator]  # both axes differ
m.logaddexp(v7)  # type: ignore[arg-type]  # the last axes differ
m.atan2(m77)  # type: ignore[arg-type]  # both axes differ
m**m77  # type: ignore[operator]  # a power of another shape
m ** v7.trace()  # type: ignore[operator]  # an exponent of another shape

# The result does not fit where it goes.
def wants_23(x: Tensor2D[L[2], L[3], Any]) -> None: ...
def wants_vector(x: Tensor1D[L[3]]) -> None: ...

wants_23(c + uu)  # type: ignore[arg-type]  # the sum has shape (2, 1)
wants_23(z + m)  # type: ignore[arg-type]  # the sum has rank 3
wants_vector(m + v)  # type: ignore[arg-type]  # the sum has rank 2
wants_vector(v + m[0:1])  # type: ignore[arg-type]  # the sum has rank 2

# Comparisons and masks.
m > v7  # type: ignore[operator]  # the last axes differ
m == m77  # type: ignore[operator]  # both axes differ
m <= zw  # type: ignore[operator]  # the ranks differ
mask & vmask  # type: ignore[operator]  # masks of two ranks
mask | (m77 > 0.0)  # type: ignore[operator]  # masks of two shapes

# What stands beside a tensor is a tensor or a number.
m + np.ones((2, 3))  # type: ignore[operator]  # an array has no tape and no static shape: from_numpy() it
m + "1"  # type: ignore[operator]  # no number
m + None  # type: ignore[operator]  # no number
np.ones((2, 3)) + m  # type: ignore[operator]  # an array on the left
np.sum(m)  # type: ignore[call-overload]  # the same: m.sum()
m * [1.0, 2.0, 3.0]  # type: ignore[operator]  # a list: from_numpy() it
1.0 / "m" + m  # type: ignore[operator]  # no number either

# Functions of one tensor with arguments.
m.leaky_relu("0.1")  # type: ignore[arg-type]  # no number
mi.leaky_relu()  # type: ignore[misc]  # integers
mi.elu()  # type: ignore[misc]  # integers
m.prelu(0.1)  # type: ignore[call-overload]  # a slope that is trained is a tensor
m.prelu(v7)  # type: ignore[arg-type]  # the last axis has 3 places
m.prelu(vd)  # type: ignore[arg-type]  # another dtype
m.nans_to()  # type: ignore[call-arg]  # to what?
mask.nans_to(0.0)  # type: ignore[misc]  # a mask has no NaN
m.dropout(0.5)  # type: ignore[call-arg]  # chance needs an rng
m.dropout("0.5", rng=rng)  # type: ignore[arg-type]  # no number
m.normalize(axis=None)  # type: ignore[arg-type]  # one axis
mi.normalize()  # type: ignore[misc]  # integers
v.tril()  # type: ignore[misc]  # a vector has no triangle
m.triu(0.5)  # type: ignore[arg-type]  # no diagonal
