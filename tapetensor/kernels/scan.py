"""Scans along a sequence."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tapetensor.arrays.array import Array
from tapetensor.arrays.libraries import like
from tapetensor.kernels.arithmetic import logaddexp, multiply
from tapetensor.kernels.indexing import take_along_axis
from tapetensor.kernels.numerics.along_axes import sum_to
from tapetensor.kernels.numerics.recurrence import run_scan, scan_cotangents
from tapetensor.tape import Pullbacks
from tapetensor.tape.pullbacks import JointPullbacks, Needed, PartPullback


def cumulative_sum(x: Array, axis: int) -> tuple[Array, Pullbacks]:
    """``y_t = x_0 + ... + x_t`` along `axis`."""
    backwards = (slice(None),) * axis + (slice(None, None, -1),)

    def pullback(g: Array) -> Array:
        # Each element gets the sum of the cotangents from its place on.
        return _sums_so_far(g[backwards], axis)[backwards]

    return _sums_so_far(x, axis), (pullback,)


def _sums_so_far(x: Array, axis: int) -> Array:
    """Add in doubles: of a million singles, one after the other, the last sum is off by 1%."""
    wide = x.astype(np.float64) if x.dtype.kind == "f" and x.dtype.itemsize < 8 else x
    sums: Array = np.cumsum(wide, axis=axis, dtype=wide.dtype)
    return sums.astype(x.dtype, copy=False)


def diff(x: Array, axis: int) -> tuple[Array, Pullbacks]:
    """``y_t = x_(t + 1) - x_t`` along `axis`."""
    ahead = (slice(None),) * axis
    later, earlier = (*ahead, slice(1, None)), (*ahead, slice(None, -1))
    to_later, to_earlier = PartPullback(x, later), PartPullback(x, earlier)
    return x[later] - x[earlier], (lambda g: to_later(g) - to_earlier(g),)


def cumulative_prod(x: Array, axis: int) -> tuple[Array, Pullbacks]:
    """``y_t = x_0 * ... * x_t`` along `axis`.

    Nothing is divided out on the way back, so zeros need no care, in derivatives of any order.
    """
    return _combined(multiply, x, axis)


def cumulative_logsumexp(x: Array, axis: int) -> tuple[Array, Pullbacks]:
    """``y_t = log(exp(x_0) + ... + exp(x_t))`` along `axis`."""
    return _combined(logaddexp, x, axis)


def cumulative_max(x: Array, axis: int) -> tuple[Array, Pullbacks]:
    """``y_t = max(x_0, ..., x_t)`` along `axis`: of equal elements the last one is it."""
    return _running(np.greater_equal, x, axis)


def cumulative_min(x: Array, axis: int) -> tuple[Array, Pullbacks]:
    """``y_t = min(x_0, ..., x_t)`` along `axis`: of equal elements the last one is it."""
    return _running(np.less_equal, x, axis)


def _combined(
    combine: Callable[[Array, Array], tuple[Array, Pullbacks]], x: Array, axis: int
) -> tuple[Array, Pullbacks]:
    """Combine all elements so far: neighbours, then pairs, then fours, ..."""
    before = (slice(None),) * axis
    y, pullbacks = x, list[Any]()
    reach = 1
    while reach < x.shape[axis]:
        early, late = y[(*before, slice(None, reach))], y[(*before, slice(reach, None))]
        combined, both = combine(late, y[(*before, slice(None, -reach))])
        pullbacks.append(both)
        y = np.concatenate([early, combined], axis=axis)
        reach *= 2

    def pullback(g: Array) -> Array:
        for power, (of_late, of_shifted) in reversed([*enumerate(pullbacks)]):
            reach = 2**power
            shared = g[(*before, slice(reach, None))]
            rest = np.zeros_like(g[(*before, slice(-reach, None))])
            g = np.concatenate(
                [g[(*before, slice(None, reach))], of_late(shared)], axis=axis
            ) + np.concatenate([of_shifted(shared), rest], axis=axis)
        return g

    return np.copy(y) if y is x else y, (pullback,)


def _running(is_extreme: np.ufunc, x: Array, axis: int) -> tuple[Array, Pullbacks]:
    """Take the extremes so far from where they stand; NaN is one from its place on."""
    before = (slice(None),) * axis
    places = np.arange(x.shape[axis]).reshape(-1, *[1] * (x.ndim - axis - 1))
    y, positions = x, like(np.broadcast_to(places, x.shape), x)
    reach = 1
    while reach < x.shape[axis]:
        early = (*before, slice(None, reach))
        late, shifted = (*before, slice(reach, None)), (*before, slice(None, -reach))
        stays = is_extreme(y[late], y[shifted]) | (y[late] != y[late])
        positions, y = [
            np.concatenate([one[early], np.where(stays, one[late], one[shifted])], axis=axis)
            for one in (positions, y)
        ]
        reach *= 2
    y, (pullback, _) = take_along_axis(x, positions, axis)
    return y, (pullback,)


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
