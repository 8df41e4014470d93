"""What plain typing does not know, asserted as it is, so that a change either way is noticed.

The lines that are fine at run time and still rejected say so in their `type: ignore`.
"""

from __future__ import annotations

from typing import Any
from typing import Literal as L

import numpy as np
import pytest

import tapetensor as tt
from tapetensor import NoneTape, OwnedTape, Tensor, Tensor1D, Tensor2D, Tensor3D
from tests.typing.check import assert_type, check
from tests.typing.operands import m, mask, q, r, s, v, z, zc, zr

# A size that is computed is an int, and an int is no particular size.
rows: int = sum((1, 1))
computed = tt.zeros((rows, rows + 1))
check(assert_type(computed, Tensor2D[int, int]), (2, 3))
check(assert_type(computed + computed, Tensor2D[int, int]), (2, 3))
check(computed + m, (2, 3))  # type: ignore[operator]  # an int is not known to be 2

# So is the promise of a cast: the annotation of an unknown shape is believed.
believed: Tensor2D[L[9], L[9]] = tt.from_numpy(np.ones((2, 3), np.float32))
check(believed, (2, 3))

# What comes in as Any goes through unchecked.
anything: Any = m
check(assert_type(m + anything, Any), (2, 3))
check(assert_type(anything.trace(), Any), (2, 3))
unknown: Tensor[Any] = m
check(assert_type(unknown.exp(), Tensor[Any]), (2, 3))
dynamic: Tensor2D[Any, L[3]] = m
check(assert_type(dynamic.transpose(), Tensor2D[L[3], Any]), (3, 2))

# Reductions: several axes, or an axis that is computed.
check(assert_type(q.sum(axis=(0, -1)), Tensor[Any]), (4, 2))
check(assert_type(q.trace().mean(axis=(0, 1), keepdims=True), Tensor[Any, OwnedTape]), (1, 1, 2, 3))
check(assert_type(m.sum(keepdims=True), Tensor[Any]), (1, 1))
check(assert_type(m.std(keepdims=True), Tensor[Any]), (1, 1))
for axis in range(2):
    m.sum(axis=axis)  # type: ignore[call-overload]  # an int axis could be out of range
check(q.sum(axis=-4), (4, 2, 3))  # type: ignore[call-overload]  # axes are typed from -3 to 3

# Reshaping: the annotation is believed until run time, and -1 is taken for a size.
with pytest.raises(tt.ShapeError):
    m.reshape((7, 7))
check(assert_type(z.flatten(), Tensor1D[Any]), (24,))
minus_one: Tensor2D[L[2], L[-1]] = m.reshape((2, -1))
check(minus_one.reshape(m.shape), (2, 3))

# Broadcasts that numpy knows and the signatures do not: spell them with broadcast_to().
check(z + zr, (4, 2, 3))  # type: ignore[operator]  # a 1 in the middle
check(r + zc, (4, 2, 3))  # type: ignore[operator]  # both grow, and the ranks differ
check(m**v, (2, 3))  # type: ignore[operator]  # powers are typed for equal shapes
check(m > v, (2, 3))  # type: ignore[operator]  # so are comparisons
check(tt.maximum(v, m), (2, 3))  # type: ignore[arg-type]  # the larger operand comes first
check(tt.where(mask, m, s), (2, 3))  # type: ignore[arg-type]  # both have the shape of the mask
check(z + zr.broadcast_to(z.shape), (4, 2, 3))

# Indexing: beyond two places the shape is open, and a position may be too large.
check(assert_type(z[0, 1, 2], Tensor[Any]), ())
check(assert_type(z[..., None], Tensor[Any]), (4, 2, 3, 1))
with pytest.raises(tt.AxisError):
    m[2]
with pytest.raises(tt.AxisError):
    v[0, 0]


# Axes of functions that keep the shape are checked at run time.
with pytest.raises(tt.AxisError):
    v.softmax(axis=1)

# The size of a concatenation is open; so is every dim of einsum.
check(assert_type(tt.concat((v, v)), Tensor1D[Any]), (6,))
check(assert_type(tt.einsum("ij->i", m), Tensor[Any]), (2,))
with pytest.raises(tt.ShapeError):
    tt.einsum("ij,jk->ik", m, m)

# A gradient is looked up with its type, and inserted without one.
grads = tt.Gradients()
with pytest.raises(tt.ShapeError):
    grads.insert(m, v)

# Open dims win over sizes only on the left: the right operand is taken to fit.
check(assert_type(m[0:2] + m, Tensor2D[Any, L[3]]), (2, 3))
open_on_the_right: Tensor2D[L[2], L[3]] = m + m[0:1]
check(open_on_the_right, (2, 3))
check(assert_type(z[:, 0], Tensor2D[Any, L[3]]), (4, 3))
check(assert_type(z[1:, :1], Tensor3D[Any, Any, L[3]]), (3, 1, 3))
check(assert_type(mask[0], Tensor1D[L[3], NoneTape, np.bool_]), (3,))
