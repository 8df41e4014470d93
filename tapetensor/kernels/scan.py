"""Scans along a sequence."""

from __future__ import annotations

import numpy as np

from tapetensor.arrays.array import Array
from tapetensor.kernels.numerics.blocks import in_blocks
from tapetensor.kernels.numerics.broadcasting import sum_to
from tapetensor.kernels.numerics.recurrence import run_recurrence
from tapetensor.tape import Pullbacks
from tapetensor.tape.pullbacks import computed_once


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
    decay = np.moveaxis(np.broadcast_to(a, x.shape), -2, 0)
    run_recurrence(
        np.moveaxis(h, -2, 0), np.moveaxis(in_blocks(np.multiply, b, x), -2, 0), decay[1:]
    )

    def run_backwards(g: Array) -> Array:
        """Return ``G_t = g_t + a_(t+1) G_(t+1)``, which takes as long as the scan itself."""
        result = np.empty_like(g)
        run_recurrence(np.moveaxis(result, -2, 0)[::-1], np.moveaxis(g, -2, 0)[::-1], decay[:0:-1])
        return result

    adjoint = computed_once(run_backwards)

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
