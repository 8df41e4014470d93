# What shape ops, indexing and joining refuse.
# ruff: noqa: PYI017

from typing import Any
from typing import Literal as L

import numpy as np

import tapetensor as tt
from tapetensor import Tensor, Tensor1D, Tensor2D
from tests.typing.operands import c, m, m77, mask, mi, positions, q, r, s, v, v7, vmask, w, z

def wants_32(x: Tensor2D[L[3], L[2], Any]) -> None: ...
def wants_vector(x: Tensor1D[L[3]]) -> None: ...

# reshape, permute_dims, transpose, broadcast_to, squeeze, expand_dims, split.
wants_32(m.reshape((2, 3)))  # type: ignore[arg-type]  # reshaped to something else
wants_32(m.reshape((6,)))  # type: ignore[arg-type]  # reshaped to another rank
m.reshape(6)  # type: ignore[type-var]  # a shape is a tuple
m.reshape(("a",)).sum(axis=1)  # type: ignore[call-overload]  # and the result has one axis
m.permute_dims((0, 1, 2))  # type: ignore[arg-type]  # three axes of a matrix
m.permute_dims((1,))  # type: ignore[arg-type]  # one axis of a matrix
z.permute_dims((0, 0, 1))  # type: ignore[arg-type]  # an axis twice
z.permute_dims((1, 0))  # type: ignore[arg-type]  # two axes of three
v.permute_dims((0, 1))  # type: ignore[arg-type]  # two axes of a vector
q.permute_dims((0, 1, 1, 3)).exp()  # type: ignore[attr-defined]  # an axis twice
q.permute_dims((0, 1, 2, 4)).exp()  # type: ignore[attr-defined]  # no such axis
q.expand_dims(0).permute_dims((0, 1, 3, 3, 4)).exp()  # type: ignore[attr-defined]  # an axis twice
q.permute_dims((0, 1, 2))  # type: ignore[arg-type]  # three axes of four
v.transpose()  # type: ignore[misc]  # a vector has no matrix to transpose
s.transpose()  # type: ignore[misc]  # nor has a scalar
wants_32(m)  # type: ignore[arg-type]  # (2, 3) is not transposed
wants_32(m.transpose().transpose())  # type: ignore[arg-type]  # transposed twice
m.broadcast_to(m77.shape)  # type: ignore[arg-type]  # neither dim is equal or 1
v.broadcast_to(m77.shape)  # type: ignore[arg-type]  # 3 is not 7
m.broadcast_to(v.shape)  # type: ignore[arg-type]  # fewer axes
m.squeeze(0)  # type: ignore[arg-type]  # its size is 2
c.squeeze(0)  # type: ignore[call-overload]  # the other axis has size 1
r.squeeze(-1)  # type: ignore[call-overload]  # the other axis has size 1
m.squeeze()  # type: ignore[call-arg]  # the axis has to be named
m.expand_dims()  # type: ignore[call-overload]  # the axis has to be named
s.expand_dims(1)  # type: ignore[call-overload]  # the result has one axis
v.split(3, axis=1)  # type: ignore[call-overload]  # a vector has one axis
m.split("2")  # type: ignore[arg-type]  # no number of parts
v.roll(1, axis=1)  # type: ignore[call-overload]  # a vector has one axis
v.roll(1)  # type: ignore[call-overload]  # the axis has to be named
s.diff()  # type: ignore[call-arg]  # there is no axis
v.cumulative_sum()  # type: ignore[call-arg]  # the axis has to be named
v.cumulative_prod()  # type: ignore[call-arg]  # the axis has to be named
m.pad(1)  # type: ignore[arg-type]  # a pair of widths for each axis
m.pad(((1, 1),))  # type: ignore[arg-type]  # one pair for two axes
m.pad(((1, 1), (1, 1)), "same")  # type: ignore[arg-type]  # none of the four modes
mask.cumulative_sum(axis=0)  # type: ignore[misc]  # masks are no numbers
mask.cumulative_logsumexp(axis=0)  # type: ignore[misc]  # masks have no logarithm
m.roll(0.5, axis=0)  # type: ignore[call-overload]  # no number of places
m.realize((3, 2))  # type: ignore[arg-type]  # the dims are known, and others
m.realize((6,))  # type: ignore[arg-type]  # nor does the rank change

# Reading elements.
m.item()  # type: ignore[call-arg]  # six elements
v.trace().item()  # type: ignore[call-arg]  # three elements
z.argmax(-1).item()  # type: ignore[call-arg]  # eight integers
mask.item()  # type: ignore[call-arg]  # six bools
tt.from_numpy(m, (2, 3))  # type: ignore[call-overload]  # a tensor, not an array
m["a"]  # type: ignore[call-overload]  # no index
m[0.5]  # type: ignore[call-overload]  # no index
wants_vector(m[0:1])  # type: ignore[arg-type]  # a slice keeps the axis
wants_vector(z[0])  # type: ignore[arg-type]  # an int takes one axis away, not two
wants_vector(m.take(positions))  # type: ignore[arg-type]  # the positions are seven
m.take(0)  # type: ignore[call-overload]  # indices are a tensor
v.take(positions, axis=1)  # type: ignore[call-overload]  # a vector has one axis
m.take_along_axis(positions)  # type: ignore[arg-type]  # as many axes as the tensor
m.take_along_axis(mi.transpose())  # type: ignore[arg-type]  # the other axis differs
m.put_along_axis(m, m)  # type: ignore[type-var]  # no integers
m.put_along_axis(mi, m.astype(np.float64))  # type: ignore[arg-type]  # float64 into float32
mask.put_along_axis(mi, mask)  # type: ignore[misc]  # masks are no numbers
m.take_along_axis(m)  # type: ignore[type-var]  # no integers
m[0] + m[0:1] + v7  # type: ignore[operator]  # rows of 3 beside 7

# Elements cannot be written.
m[0] = v  # type: ignore[index]  # a tensor is a value
m[0, 0] = 1.0  # type: ignore[index]  # a tensor is a value
del m[0]  # type: ignore[attr-defined]  # a tensor is a value

# Joining.
tt.concat((m, v))  # type: ignore[arg-type]  # two ranks
tt.concat((m, w.transpose(), v7))  # type: ignore[arg-type]  # three shapes
tt.concat((m, m77))  # type: ignore[arg-type]  # the columns differ
tt.concat((m, r), axis=-1)  # type: ignore[call-overload]  # the rows differ
tt.concat((m, m.trace(), v7))  # type: ignore[arg-type]  # three with one of another rank
tt.concat((v, v), axis=1)  # type: ignore[call-overload]  # a vector has one axis
tt.concat(m)  # type: ignore[call-overload]  # one tensor is no sequence
tt.stack((m, r))  # type: ignore[arg-type]  # two shapes
tt.stack((v, v7))  # type: ignore[arg-type]  # two sizes
tt.stack([v, m, v, m])  # type: ignore[arg-type]  # two ranks
wants_vector(tt.stack((s, s)))  # type: ignore[arg-type]  # two are two
tt.maximum(m, v7)  # type: ignore[arg-type]  # the last axes differ
tt.maximum(m, m77.trace())  # type: ignore[misc]  # both axes differ
tt.minimum(m, "0")  # type: ignore[call-overload]  # no number
tt.maximum(0.0, m)  # type: ignore[call-overload]  # the tensor comes first
tt.where(mask, m, v7)  # type: ignore[arg-type]  # another shape
tt.where(vmask, m77, m77)  # type: ignore[misc]  # a mask of another shape
tt.where(mask, 0.0, 1.0)  # type: ignore[call-overload]  # nothing to choose from
tt.where(m > 0.0, m77, 0.0)  # type: ignore[misc]  # a mask of another shape
tt.einsum(m, w)  # type: ignore[call-overload]  # subscripts come first

# Making tensors.
Tensor(np.ones(3))  # type: ignore[arg-type]  # made by from_numpy(), zeros(), ...
tt.zeros(3)  # type: ignore[call-overload]  # a shape is a tuple
tt.zeros(2, 3)  # type: ignore[call-overload]  # a shape is one tuple
tt.full((2, 3))  # type: ignore[call-overload]  # full of what?
tt.full((2, 3), "1")  # type: ignore[call-overload]  # no number
tt.zeros(["2", "3"])  # type: ignore[list-item]  # sizes are ints
tt.ones([2, 3])[["a"]]  # type: ignore[index]  # positions are ints
tt.normal((2, 3))  # type: ignore[call-overload]  # samples need an rng
tt.normal((2, 3), rng=0)  # type: ignore[call-overload]  # a seed is no generator
tt.uniform((2, 3), np.random.default_rng())  # type: ignore[call-overload]  # rng goes by name
tt.from_array([1.0])  # type: ignore[call-overload]  # a list has no dtype: from_numpy
tt.from_memmap([1.0])  # type: ignore[call-overload]  # a list is in no file: from_numpy
tt.from_array(m)  # type: ignore[call-overload]  # a tensor is one already
m.to("cuda")  # type: ignore[arg-type]  # a library, not its name
wants_32(m.to(np))  # type: ignore[arg-type]  # the shape stays (2, 3)
tt.arange(0, 5)  # type: ignore[call-overload]  # from 0, so many
tt.eye((2, 2))  # type: ignore[call-overload]  # one size
wants_32(tt.zeros(m.shape))  # type: ignore[arg-type]  # made as (2, 3)
wants_32(tt.zeros((2, 3)))  # type: ignore[arg-type]  # made as (2, 3), by a literal
wants_vector(tt.zeros((3, 3)))  # type: ignore[arg-type]  # made with rank 2
wants_vector(tt.from_numpy([1.0] * 2, (2,)))  # type: ignore[arg-type]  # the annotation says 2

# ssm_scan.
tt.ssm_scan(z, m77, z)  # type: ignore[arg-type]  # a decay of another shape
tt.ssm_scan(z, v7, z)  # type: ignore[arg-type]  # one decay for each of seven channels
tt.ssm_scan(z.trace(), z, v7)  # type: ignore[arg-type]  # the same for the input
tt.ssm_scan(v, v, v)  # type: ignore[arg-type]  # a vector has steps or channels, not both
tt.ssm_scan(z, 0.5, z)  # type: ignore[call-overload]  # a number: full((3,), 0.5)
wants_32(tt.ssm_scan(m, m, m))  # type: ignore[arg-type]  # the shape stays (2, 3)
