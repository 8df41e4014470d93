"""Linear recurrences along a sequence, step by step over rows that stay in the cache."""

from __future__ import annotations

import math
from functools import partial

import numpy as np

from tapetensor.arrays.array import Array
from tapetensor.kernels.numerics.decorators import (
    MANY_STEPS,
    native_from,
    single_step,
    writing_step,
)
from tapetensor.kernels.numerics.threads import in_blocks

# How much of a sequence is worked on at a time: this and its decays fit in a second-level cache.
_BLOCK_BYTES = 1 << 19
# Over more steps a state of singles that forgets slowly loses digits, 1% in a million.
_LONG = 1 << 12


def needs_doubles(values: Array) -> bool:
    """Tell whether the states of a sequence, steps first, are to be added up in doubles."""
    return values.dtype == np.float32 and len(values) > _LONG


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
    dtype = np.dtype(np.float64) if needs_doubles(values) else values.dtype
    block = min(steps, max(1, _BLOCK_BYTES // (math.prod(row) * dtype.itemsize)))
    block_values = np.empty_like(values, dtype, order="C", shape=(block + 1, *row))
    block_decay = np.empty_like(values, dtype, order="C", shape=(block, *row))
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


@partial(writing_step, by_machine_code=True)
@native_from(MANY_STEPS)
def run_scan(out: Array, values: Array, decay: Array, gain: Array) -> None:
    """Write ``out[t] = gain[t] * values[t] + decay[t] * out[t-1]``.

    All have one shape, steps along the last axis but one.
    """
    added = in_blocks(np.multiply, gain, values)
    run_recurrence(steps_first(out), steps_first(added), steps_first(decay)[1:])


@partial(single_step, by_machine_code=True)
@native_from(MANY_STEPS)
def scan_cotangents(
    g: Array, x: Array, a: Array, b: Array, h: Array, needed: tuple[bool, ...]
) -> list[Array]:
    """Return the cotangents of those of `x`, `a` and `b` that are needed.

    These are ``b G``, ``G_t h_(t-1)`` and ``x G`` in ``h_t = a_t h_(t-1) + b_t x_t``, with ``G_t =
    g_t + a_(t+1) G_(t+1)``. All arrays have one shape, steps along the last axis but one.
    """
    total = np.empty_like(g)
    decay = steps_first(a)[:0:-1]
    run_recurrence(steps_first(total)[::-1], steps_first(g)[::-1], decay)
    found = []
    if needed[0]:
        found.append(in_blocks(np.multiply, total, b))
    if needed[1]:
        found.append(np.empty_like(h))
        np.multiply(total[..., 1:, :], h[..., :-1, :], out=found[-1][..., 1:, :])
        np.copyto(found[-1][..., :1, :], 0)
    if needed[2]:
        found.append(in_blocks(np.multiply, total, x))
    return found


def steps_first(sequence: Array) -> Array:
    """Return a batch of sequences, steps along the last axis but one, as a sequence of rows."""
    return np.moveaxis(sequence, -2, 0)
