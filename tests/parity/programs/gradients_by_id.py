"""etensor's Gradients: get, insert and remove by id; a collision adds in place."""

from __future__ import annotations

from typing import Literal as L
from typing import assert_type

import numpy as np
import pytest

import tapetensor as tt
from tapetensor import Tensor1D
from tapetensor.typing import Array

x: Tensor1D[L[2]] = tt.from_numpy([1.0, 2.0], (2,))
key: tt.TensorId = tt.TensorId.new()
assert key != x.id
grads = x.trace().square().sum().backward()
assert_type(grads.get(x), Tensor1D[L[2]] | None)
found = assert_type(grads.get(x.id), Array | None)
assert found is not None
assert found.tolist() == [2.0, 4.0]
assert [*grads] == [x.id]
assert isinstance(x.id, tt.TensorId)

grads.insert(key, np.ones(3))
grads.insert(key, np.ones(3))
with pytest.raises(tt.ShapeError, match="the gradient so far has shape"):
    grads.insert(key, np.ones(4))
with pytest.raises(tt.DTypeError):
    grads.insert(key, np.ones(3, np.float32))
removed = grads.remove(key)
assert removed is not None
assert removed.tolist() == [2.0, 2.0, 2.0]
assert key not in grads
with pytest.raises(tt.ArgumentTypeError):
    grads.get(3)  # E: No overload variant

# In place, unless someone else holds the array.
grads.insert(key, np.ones(1000))
address = grads.arrays[key].ctypes.data
grads.insert(key, np.ones(1000))
assert grads.arrays[key].ctypes.data == address
held = grads.get(key)
grads.insert(key, np.ones(1000))
assert held is not None
assert held[0] == 2.0
assert grads.arrays[key][0] == 3.0
