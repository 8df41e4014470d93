# Axes that a reduction refuses, and results that do not fit.

from typing import Literal as L

from tapetensor import Tensor0D, Tensor1D
from tests.typing.operands import m, mi, s, v, z

v.sum(axis=1)  # type: ignore[call-overload]  # a vector has one axis
v.sum(axis=-2)  # type: ignore[call-overload]  # a vector has one axis
m.sum(axis=2)  # type: ignore[call-overload]  # a matrix has two axes
m.sum(axis=-3)  # type: ignore[call-overload]  # a matrix has two axes
z.sum(axis=3)  # type: ignore[call-overload]  # a stack has three axes
s.sum(axis=0)  # type: ignore[call-overload]  # a scalar has none
m.max(axis=2)  # type: ignore[call-overload]  # `max` as `sum`
v.min(axis=1)  # type: ignore[call-overload]  # `min` as `sum`
m.mean(axis=2)  # type: ignore[call-overload]  # a matrix has two axes
v.mean(axis=-2, keepdims=True)  # type: ignore[call-overload]  # a vector has one axis
s.mean(axis=0)  # type: ignore[call-overload]  # a scalar has none
m.var(axis=2)  # type: ignore[call-overload]  # a matrix has two axes
v.std(axis=1)  # type: ignore[call-overload]  # `std` as `var`
v.median(axis=1)  # type: ignore[call-overload]  # `median` as `mean`
mi.median()  # type: ignore[misc]  # there is nothing between integers
v.quantile()  # type: ignore[call-overload]  # of which share
v.quantile("0.5")  # type: ignore[call-overload]  # a share is a number
mi.quantile(0.5)  # type: ignore[misc]  # there is nothing between integers
v.argmax(axis=1)  # type: ignore[call-overload]  # a vector has one axis
s.argmax(-1)  # type: ignore[arg-type]  # a scalar has none
s.argsort()  # type: ignore[misc]  # a scalar has none
m.argsort(descending=1)  # type: ignore[arg-type]  # a bool
m.argsort(0, True)  # type: ignore[call-arg]  # the direction goes by keyword
m.sort(descending=1)  # type: ignore[arg-type]  # a bool
s.sort()  # type: ignore[misc]  # a scalar has none
s.topk(1)  # type: ignore[misc]  # a scalar has none
v.topk(1, axis=1)  # type: ignore[call-overload]  # a vector has one axis
m.topk(1, 0, False)  # type: ignore[call-overload]  # the direction goes by keyword

# An axis is an int, never a shape to reduce to.
m.sum(axis="rows")  # type: ignore[call-overload]  # no axis
m.mean(axis=[0, 1])  # type: ignore[call-overload]  # several axes are a tuple
m.sum(v)  # type: ignore[call-overload]  # a tensor is no axis
m.sum(keepdims=1)  # type: ignore[call-overload]  # keepdims is a bool
m.var(correction=None)  # type: ignore[call-overload]  # the correction is a number

def wants_vector(x: Tensor1D[L[3]]) -> None: ...
def wants_scalar(x: Tensor0D) -> None: ...

wants_vector(m.sum(axis=1))  # type: ignore[arg-type]  # rows are left, of which there are 2
wants_vector(m.sum(axis=0, keepdims=True))  # type: ignore[arg-type]  # keepdims keeps the rank
wants_vector(m.mean())  # type: ignore[arg-type]  # all axes are gone
wants_vector(z.max(axis=0))  # type: ignore[arg-type]  # two axes are left
wants_scalar(m.sum(axis=0))  # type: ignore[arg-type]  # an axis is left
wants_scalar(v.mean(axis=0, keepdims=True))  # type: ignore[arg-type]  # keepdims keeps the rank
