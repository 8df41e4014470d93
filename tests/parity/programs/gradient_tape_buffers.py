"""kizzasi's tape: buffers of the caller's, longer lists, flat matrices."""

from __future__ import annotations

from typing import assert_type

import numpy as np
import pytest

import tapetensor as tt
from tapetensor.typing import Array

tape = tt.GradientTape()
a, b = tape.alloc(np.arange(6.0)), tape.alloc(np.array([1.0, 2.0, 3.0]))
c = tape.record_matmul(a, b, shapes=((2, 3), (3, 1)))
assert tape.value(c).tolist() == [8.0, 26.0]

# A list of arrays, longer than the tape: what is beyond the slots stays.
tensors: list[Array] = [np.zeros(6), np.zeros(3), np.zeros(2), np.full(4, 7.0)]
assert assert_type(tape.backward(np.ones(2), tensors), list[Array]) is tensors
assert tensors[a].tolist() == [1.0, 2.0, 3.0, 1.0, 2.0, 3.0]
assert tensors[b].tolist() == [3.0, 5.0, 7.0]
assert tensors[3].tolist() == [7.0] * 4

# Into the caller's own arrays, twice.
buffers: list[Array] = [np.zeros(6), np.zeros(3), np.zeros(2)]
first = buffers[b]
for _ in range(2):
    assert tape.backward(np.ones(2), out=buffers) is buffers
assert buffers[b] is first
assert first.tolist() == [6.0, 10.0, 14.0]
with pytest.raises(tt.ArgumentValueError, match="out has 1 entries, the tape 3 slots"):
    tape.backward(np.ones(2), out=[np.zeros(6)])
with pytest.raises(tt.ArgumentValueError, match="share memory"):
    tape.backward(np.ones(2), out=[np.zeros(6), first, first[:2]])
with pytest.raises(tt.ShapeError, match="a flat matrix of shape"):
    tape.record_matmul(a, b, shapes=((3, 3), (3, 1)))
with pytest.raises(tt.ShapeError, match="inner sizes differ"):
    tape.record_matmul(a, b, shapes=((3, 2), (3, 1)))
assert first.tolist() == [6.0, 10.0, 14.0]
