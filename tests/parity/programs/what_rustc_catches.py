"""The mistakes that rustc finds in programs of dfdx: found here, or none.

They are found before the run, and by it, too. What rustc refuses of traced tensors and is no
mistake has the right gradient.
"""

from __future__ import annotations

import copy
from typing import Literal as L

import numpy as np
import pytest

import tapetensor as tt
from tapetensor import NoneTape, Tensor2D, losses, nn

rng = np.random.default_rng(0)
a: Tensor2D[L[2], L[3]] = tt.ones((2, 3))
b: Tensor2D[L[2], L[4]] = tt.ones((2, 4))
double: Tensor2D[L[2], L[3], NoneTape, np.float64] = tt.ones((2, 3), np.float64)
layer: nn.Linear[L[4], L[2]] = nn.Linear(4, 2, rng=rng)
narrow: nn.Linear[L[7], L[2]] = nn.Linear(7, 2, rng=rng)

# Shapes, axes and chains of layers.
with pytest.raises(tt.ShapeError):
    print(a + b)  # P: (2, 3) and (2, 4) do not broadcast # M: Unsupported operand
with pytest.raises(tt.ShapeError):
    print(a @ b)  # P: inner dims differ # M: Unsupported operand types for @
with pytest.raises(tt.ShapeError):
    a.reshape((4, 2))  # P: do not fill (4, 2)
with pytest.raises(tt.AxisError):
    a.sum(axis=2)  # P: axis 2 is outside the shape # M: No overload variant of "sum"
with pytest.raises(tt.AxisError):
    a.roll(1, 5)  # P: axis 5 is outside the shape # M: No overload variant of "roll"
with pytest.raises(tt.AxisError):
    a.softmax(axis=7)  # P: axis 7 is outside the shape
with pytest.raises(tt.ShapeError):
    a.broadcast_to((5, 4))  # P: does not broadcast to (5, 4) # M: incompatible type
with pytest.raises(tt.AxisError):
    a.permute_dims((0, 2))  # P: axis 2 is outside the shape # M: incompatible type
with pytest.raises(IndexError):
    print(a[:, 5])  # P: index 5 is outside axis 1
with pytest.raises(tt.ShapeError):
    layer.forward(a)  # P: the last axis of the input must  # M: incompatible type
with pytest.raises(tt.ShapeError):
    nn.Sequential(layer, narrow).forward(b)  # P: layers 0 and 1 do not fit

# Tapes.
with pytest.raises(tt.UntracedTensorError):
    a.sum().backward()  # E: "write_trace_on_an_input_of_the_loss"
with pytest.raises(tt.ShapeError):
    a.trace().backward()  # E: Missing positional argument "cotangent"
with pytest.raises(tt.UntracedTensorError):
    a.trace().trace()  # E: Invalid self argument
with pytest.raises(tt.UntracedTensorError):
    copy.copy(a.trace())
assert copy.copy(a).id != a.id
with pytest.raises(tt.UntracedTensorError):
    copy.deepcopy(a.trace())
with pytest.raises(tt.UntracedTensorError):
    a.trace().__copy__()  # E: Invalid self argument
t = a.trace()
used_twice = (t * 2.0 + t.exp()).sum().backward()
assert np.allclose(used_twice[a].numpy(), 2.0 + np.exp(1.0))
plain_left = (a + a.trace()).sum().backward()
assert plain_left[a].numpy().tolist() == [[2.0] * 3] * 2
both_sides = losses.mse(a.trace(), a.trace() * 2.0).backward()
assert np.allclose(both_sides[a].numpy(), 1 / 3)

# Dtypes.
with pytest.raises(tt.DTypeError):
    print(a + double)  # E: Unsupported operand types for +
