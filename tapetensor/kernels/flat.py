"""Kernels of arrays without the axes that others have, for tapes that are driven by hand."""

from __future__ import annotations

import numpy as np

from tapetensor.arrays.array import Array
from tapetensor.kernels import linear_algebra, scan
from tapetensor.tape.pullbacks import Pullback, Pullbacks, computed_once


def matmul(
    lhs: Array, rhs: Array, of_lhs: tuple[int, ...], of_rhs: tuple[int, ...]
) -> tuple[Array, Pullbacks]:
    """The product of two matrices that are flat, which is flat itself."""
    shaped, pullbacks = linear_algebra.matmul(lhs.reshape(of_lhs), rhs.reshape(of_rhs))
    shape = shaped.shape

    def as_flat(pullback: Pullback) -> Pullback:
        return lambda g: pullback(g.reshape(shape)).reshape(-1)

    return shaped.reshape(-1), tuple([pullback and as_flat(pullback) for pullback in pullbacks])


def ssm_scan(x: Array, a: Array, b: Array) -> tuple[Array, Pullbacks]:
    """The scan of one channel, whose arrays have no axis for channels."""
    h, pullbacks = scan.ssm_scan(*[np.expand_dims(array, -1) for array in (x, a, b)])
    # The pullbacks know by the array that a cotangent is the one they have been given before.
    column = computed_once(lambda g: np.expand_dims(g, -1))

    def of_column(pullback: Pullback) -> Pullback:
        return lambda g: np.squeeze(pullback(column(g)), -1)

    return np.squeeze(h, -1), tuple([pullback and of_column(pullback) for pullback in pullbacks])
