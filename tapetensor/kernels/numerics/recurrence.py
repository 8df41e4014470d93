"""Linear recurrences along a sequence, step by step over rows that stay in the cache."""

from __future__ import annotations

import math

import numpy as np

from tapetensor.arrays.array import Array
from tapetensor.kernels.numerics.native import MANY_STEPS, native_from
from tapetensor.kernels.numerics.steps import writing_step

# How much of a sequence is worked on at a time: this and its decays fit in a second-level cache.
_BLOCK_BYTES = 1 << 19


@writing_step
@native_from(MANY_STEPS)
def run_recurrence(out: Array, values: Array, decay: Array) -> None:
    """Write ``out[t] = values[t] + decay[t-1] * out[t-1]``, for one step after the other.

    The rows of one step lie far apart in a batch of sequences. So a block of steps at a time is
    copied to where they lie side by side, which halves the time of the loop.
    """
    steps = decay.shape[0]
    row = values.shape[1:]
    np.copyto(out[:1], values[:1])
    if not steps or not math.prod(row):
        return
    block = min(steps, max(1, _BLOCK_BYTES // (math.prod(row) * values.dtype.itemsize)))
    block_values = np.empty_like(values, order="C", shape=(block + 1, *row))
    block_decay = np.empty_like(values, order="C", shape=(block, *row))
    value_rows, decay_rows = list(block_values), list(block_decay)
    np.copyto(value_rows[0], values[0])
    for start in range(0, steps, block):
        count = min(block, steps - start)
        np.copyto(block_decay[:count], decay[start : start + count])
        np.copyto(block_values[1 : count + 1], values[start + 1 : start + count + 1])
        previous = value_rows[0]
        for current, factor in zip(value_rows[1 : count + 1], decay_rows[:count], strict=True):
            np.multiply(factor, previous, factor)
            np.add(current, factor, current)
            previous = current
        np.copyto(out[start + 1 : start + count + 1], block_values[1 : count + 1])
        np.copyto(value_rows[0], previous)
