"""Scans along a sequence."""

from __future__ import annotations

import numpy as np

from tapetensor.arrays.array import Array
from tapetensor.kernels.numerics.broadcasting import sum_to
from tapetensor.kernels.numerics.recurrence import run_scan, scan_cotangents
from tapetensor.tape import Pullbacks
from tapetensor.tape.pullbacks import JointPullbacks, Needed


def cumulative_sum(x: Array, axis: int) -> tuple[Array, Pullbacks]:
    """``y_t = x_0 + ... + x_t`` along `axis`."""
    backwards = (slice(None),) * axis + (slice(None, None, -1),)

    def pullback(g: Array) -> Array:
        # Each element gets the sum of the cotangents from its place on.
        return np.cumsum(g[backwards], axis=axis, dtype=g.dtype)[backwards]

    return np.cumsum(x, axis=axis, dtype=x.dtype), (pullback,)


def cumulative_prod(x: Array, axis: int) -> tuple[Array, Pullbacks]:
    """``y_t = x_0 * ... * x_t`` along `axis`, by products of neighbours, of pairs, of fours, ...

    What a factor is multiplied by is there on the way back. Nothing is divided out, so zeros need
    no care, in derivatives of any order.
    """
    before = (slice(None),) * axis
    y, steps = x, []
    reach = 1
    while reach < x.shape[axis]:
        early = (*before, slice(None, reach))
        late, shifted = (*before, slice(reach, None)), (*before, slice(None, -reach))
        steps.append((early, y[late], y[shifted]))
        y = np.concatenate([y[early], y[late] * y[shifted]], axis=axis)
        reach *= 2

    def pullback(g: Array) -> Array:
        for early, lhs, rhs in reversed(steps):
            reach = early[-1].stop
            late, last = (*before, slice(reach, None)), (*before, slice(-reach, None))
            shared = g[late]
            rest = np.zeros_like(g[last])
            g = np.concatenate([g[early], shared * rhs], axis=axis) + np.concatenate(
                [shared * lhs, rest], axis=axis
            )
        return g

    return np.copy(y) if y is x else y, (pullback,)


def ssm_scan(x: Array, a: Array, b: Array) -> tuple[Array, Pullbacks]:
    """``h_t = a_t h_(t-1) + b_t x_t`` along the last axis but one, from ``h_(-1) = 0``.

    `a` and `b` broadcast to the shape of `x`.
    """
    h = np.empty_like(x)
    decay, gain = [np.broadcast_to(one, x.shape) for one in (a, b)]
    run_scan(h, x, decay, gain)

    def cotangents(needed: Needed, g: Array) -> list[Array | None]:
        found = iter(scan_cotangents(g, x, decay, gain, h, needed))
        pairs = zip(needed, (x, a, b), strict=True)
        return [sum_to(next(found), one.shape) if is_needed else None for is_needed, one in pairs]

    return h, JointPullbacks((True, True, True), cotangents)
