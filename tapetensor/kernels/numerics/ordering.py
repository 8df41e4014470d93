"""The order of elements along an axis."""

from __future__ import annotations

import numpy as np

from tapetensor.arrays.array import Array


def order_of(x: Array, axis: int, descending: bool) -> Array:
    """Return the positions that sort; equal elements keep their order, NaN is the largest."""
    if not descending:
        return np.argsort(x, axis=axis, kind="stable")
    # Backwards there and back again, so that equal elements keep their order here too.
    backwards = (slice(None),) * axis + (slice(None, None, -1),)
    order = np.argsort(x[backwards], axis=axis, kind="stable")[backwards]
    positions: Array = x.shape[axis] - 1 - order
    return positions
