"""Reading elements."""

from __future__ import annotations

from typing import Any
from typing import Literal as L

import numpy as np

import tapetensor as tt
from tapetensor import NoneTape, OwnedTape, Tensor0D, Tensor1D, Tensor2D, Tensor3D, Tensor4D
from tapetensor.typing import M, N, T
from tests.typing.check import assert_type, check
from tests.typing.operands import box, grid, m, mask, md, mi, positions, si, v, vi, vmask, w, z

# An int takes an axis away, a slice leaves its size open.
check(assert_type(z[0], Tensor2D[L[2], L[3]]), (2, 3))
check(assert_type(v.trace()[-1], Tensor0D[OwnedTape]), ())
check(assert_type(z[1:3], Tensor3D[Any, L[2], L[3]]), (2, 2, 3))
check(assert_type(z[0][1][2], Tensor0D), ())
check(assert_type(z.trace()[0, -1], Tensor1D[L[3], OwnedTape]), (3,))
check(assert_type(z[:, 0], Tensor2D[Any, L[3]]), (4, 3))
check(assert_type(z.trace()[0, 1:], Tensor2D[Any, L[3], OwnedTape]), (1, 3))
check(assert_type(z.trace()[1:, ::2], Tensor3D[Any, Any, L[3], OwnedTape]), (3, 1, 3))
check(assert_type(z.trace()[0], Tensor2D[L[2], L[3], OwnedTape]), (2, 3))
check(assert_type(z.trace()[1:3], Tensor3D[Any, L[2], L[3], OwnedTape]), (2, 2, 3))
check(assert_type(z.trace()[:, 0], Tensor2D[Any, L[3], OwnedTape]), (4, 3))

# Integer tensors replace the first axis, a mask of the same shape flattens.
check(assert_type(z[positions], Tensor3D[L[7], L[2], L[3]]), (7, 2, 3))
check(assert_type(z.trace()[positions], Tensor3D[L[7], L[2], L[3], OwnedTape]), (7, 2, 3))
check(assert_type(m[mask], Tensor1D[Any]), (6,))
check(assert_type(m.trace()[m > 0.0], Tensor1D[Any, OwnedTape]), (6,))
check(assert_type(v[vmask], Tensor1D[Any]), (3,))
check(assert_type(z[positions, positions], Tensor2D[L[7], L[3]]), (7, 3))
check(assert_type(m.trace()[positions, positions], Tensor1D[L[7], OwnedTape]), (7,))

# `take` along the first axis, with indices of any rank, and along the second and the last.
check(assert_type(z.trace().take(si), Tensor2D[L[2], L[3], OwnedTape]), (2, 3))
check(assert_type(z.trace().take(positions), Tensor3D[L[7], L[2], L[3], OwnedTape]), (7, 2, 3))
check(assert_type(z.trace().take(grid), Tensor4D[L[7], L[8], L[2], L[3], OwnedTape]), (7, 8, 2, 3))
check(assert_type(m.take(box), Tensor4D[L[7], L[8], L[9], L[3]]), (7, 8, 9, 3))
check(assert_type(m.trace().take(positions, axis=-1), Tensor2D[L[2], L[7], OwnedTape]), (2, 7))
check(
    assert_type(z.trace().take(positions, axis=1), Tensor3D[L[4], L[7], L[3], OwnedTape]), (4, 7, 3)
)
check(assert_type(m.trace().take(box), Tensor4D[L[7], L[8], L[9], L[3], OwnedTape]), (7, 8, 9, 3))
check(
    assert_type(z.trace().take(positions, axis=-1), Tensor3D[L[4], L[2], L[7], OwnedTape]),
    (4, 2, 7),
)

# `take_along_axis`: indices of the same rank, or with a 1 behind the axis.
ids: Tensor2D[L[2], L[5], NoneTape, np.int64] = tt.zeros((2, 5), np.int64)
row_ids: Tensor3D[L[4], L[5], L[1], NoneTape, np.int64] = tt.zeros((4, 5, 1), np.int64)
column_ids: Tensor2D[L[5], L[3], NoneTape, np.int64] = tt.zeros((5, 3), np.int64)
check(assert_type(m.take_along_axis(ids), Tensor2D[L[2], L[5]]), (2, 5))
check(assert_type(m.trace().take_along_axis(ids, axis=-1), Tensor2D[L[2], L[5], OwnedTape]), (2, 5))
put = m.take_along_axis(ids)
check(assert_type(m.put_along_axis(ids, put, accumulate=True), Tensor2D[L[2], L[3]]), (2, 3))
check(
    assert_type(
        m.trace().put_along_axis(ids, put, axis=1, accumulate=True),
        Tensor2D[L[2], L[3], OwnedTape],
    ),
    (2, 3),
)
check(
    assert_type(
        m.put_along_axis(ids, put.trace(), accumulate=True), Tensor2D[L[2], L[3], OwnedTape]
    ),
    (2, 3),
)


def scattered(x: Tensor2D[L[2], L[3]], gates: Tensor2D[L[2], L[5], T]) -> Tensor2D[L[2], L[3], T]:
    return assert_type(x.put_along_axis(ids, gates, accumulate=True), Tensor2D[L[2], L[3], T])


check(assert_type(m.take_along_axis(column_ids, axis=0), Tensor2D[L[5], L[3]]), (5, 3))
check(assert_type(z.take_along_axis(row_ids, axis=1), Tensor3D[L[4], L[5], L[3]]), (4, 5, 3))
check(
    assert_type(z.trace().take_along_axis(row_ids, axis=-2), Tensor3D[L[4], L[5], L[3], OwnedTape]),
    (4, 5, 3),
)

# A list of positions, or of truth values.
check(assert_type(m[[0, 1, 0]], Tensor2D[Any, L[3]]), (3, 3))
check(
    assert_type(z.trace()[[True, False, True, True]], Tensor3D[Any, L[2], L[3], OwnedTape]),
    (3, 2, 3),
)

# The dtype is that of the tensor, not of the indices.
check(assert_type(md[positions], Tensor2D[L[7], L[3], NoneTape, np.float64]), (7, 3))
check(assert_type(mi[0], Tensor1D[L[3], NoneTape, np.int64]), (3,))
check(assert_type(mask.take(positions, axis=-1), Tensor2D[L[2], L[7], NoneTape, np.bool_]), (2, 7))
check(assert_type(v.take(positions.astype(np.int32)), Tensor1D[L[7]]), (7,))


# Sums of slices.
def summed(
    x: Tensor2D[M, L[6], T], segments: Tensor1D[M, NoneTape, np.int64], count: N
) -> Tensor2D[N, L[6], T]:
    return tt.segment_sum(x, segments, count)


check(summed(w.trace(), vi, 7), (7, 6))
