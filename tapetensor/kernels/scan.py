"""Linear recurrences along a sequence, step by step over rows that stay in the cache."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from tapetensor.gradients import Array
from tapetensor.kernels.blocks import in_blocks
from tapetensor.kernels.broadcasting import sum_to
from tapetensor.kernels.steps import writing_step
from tapetensor.tape import Pullbacks

# How much of a sequence is worked on at a time: this and its decays fit in a second-level cache.
_BLOCK_BYTES = 1 << 19


def ssm_scan(x: Array, a: Array, b: Array) -> tuple[Array, Pullbacks]:
    """``h_t = a_t h_(t-1) + b_t x_t`` along the last axis but one, from ``h_(-1) = 0``.

    `a` and `b` broadcast to the shape of `x`.
    """
    h = np.empty_like(x)
    decay = np.moveaxis(np.broadcast_to(a, x.shape), -2, 0)
    _run_recurrence(
        np.moveaxis(h, -2, 0), np.moveaxis(in_blocks(np.multiply, b, x), -2, 0), decay[1:]
    )
    adjoint = _shared_adjoint(decay)

    def pullback_a(g: Array) -> Array:
        cotangent = np.empty_like(h)
        np.multiply(adjoint(g)[..., 1:, :], h[..., :-1, :], out=cotangent[..., 1:, :])
        np.copyto(cotangent[..., :1, :], 0)
        return sum_to(cotangent, a.shape)

    return h, (
        lambda g: in_blocks(np.multiply, adjoint(g), b),
        pullback_a,
        lambda g: sum_to(in_blocks(np.multiply, adjoint(g), x), b.shape),
    )


def _shared_adjoint(decay: Array) -> Callable[[Array], Array]:
    """Return the function from ``g`` to ``G_t = g_t + a_(t+1) G_(t+1)``, which all pullbacks share.

    It is the scan backwards, as long as the scan itself, so it keeps its latest result.
    """
    latest: list[Array] = []

    def adjoint(g: Array) -> Array:
        if not latest or latest[0] is not g:
            result = np.empty_like(g)
            _run_recurrence(
                np.moveaxis(result, -2, 0)[::-1], np.moveaxis(g, -2, 0)[::-1], decay[:0:-1]
            )
            latest[:] = g, result
        return latest[1]

    return adjoint


@writing_step
def _run_recurrence(out: Array, values: Array, decay: Array) -> None:
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
