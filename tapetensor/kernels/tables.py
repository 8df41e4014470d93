"""Reading rows of a large table, whose gradient is held as these rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from tapetensor.arrays.array import Array
from tapetensor.kernels.indexing import take
from tapetensor.kernels.numerics.segments import segment_sum
from tapetensor.tape import Pullbacks
from tapetensor.tape.row_sparse import RowSparse


def take_rows(x: Array, indices: Array) -> tuple[Array, Pullbacks]:
    """The rows of `x`, a leaf, at integer `indices`; its gradient holds these rows alone.

    What is captured or recorded is followed as by `take`, and the gradient is the whole one.
    """
    y, (whole, _) = take(x, indices, 0)
    if whole is None or type(x) is not np.ndarray or type(indices) is not np.ndarray:
        return y, (whole, None)
    shape, dtype = x.shape, x.dtype

    def pullback(g: Array) -> Any:
        if type(g) is not np.ndarray:
            return whole(g)
        targets = indices.astype(np.intp, copy=False).reshape(-1)
        rows = g.reshape(targets.size, shape[1])
        return RowSparse.of(shape, dtype, segment_sum, targets, rows)

    return y, (pullback, None)
