"""Broadcasting of any ranks, with the tape rule of plain typing: beyond random expressions."""

from __future__ import annotations

from typing import Any
from typing import Literal as L

import numpy as np

import tapetensor as tt
from tapetensor import NoneTape, OwnedTape, Tensor, Tensor1D, Tensor2D, Tensor3D
from tapetensor.typing import B, N, S, T
from tests.typing.check import assert_type, check
from tests.typing.operands import c, m, mask, md, r, s, u, v, vmask, w, z, zr

# Operators that the random expressions have not.
check(assert_type(2.0 * m + 1.0, Tensor2D[L[2], L[3]]), (2, 3))
check(assert_type(md + md, Tensor2D[L[2], L[3], NoneTape, np.float64]), (2, 3))
total = m.trace()
total += r
check(assert_type(total, Tensor2D[L[2], L[3], OwnedTape]), (2, 3))
check(assert_type(m != 1.0, Tensor2D[L[2], L[3], NoneTape, np.bool_]), (2, 3))
check(assert_type(mask & vmask, Tensor2D[L[2], L[3], NoneTape, np.bool_]), (2, 3))
check(assert_type(vmask | (z > 0.0), Tensor3D[L[4], L[2], L[3], NoneTape, np.bool_]), (4, 2, 3))
# Both spellings of its dtype that mypy has, that of a call and that of an annotation.
check(tt.ones((2, 3), np.bool_) & (z > 0.0), (4, 2, 3))
check((z > 0.0) ^ tt.ones((2, 3), np.bool_), (4, 2, 3))
check(assert_type(tt.ssm_scan(z, m, s.trace()), Tensor3D[L[4], L[2], L[3], OwnedTape]), (4, 2, 3))
check(assert_type(tt.where(vmask, m.trace(), zr), Tensor3D[L[4], L[2], L[3], OwnedTape]), (4, 2, 3))


# Names are dims like any other.
def bias(x: Tensor3D[B, L[2], N, T], y: Tensor2D[L[2], L[1]]) -> Tensor3D[B, L[2], N, T]:
    return assert_type(y + x, Tensor3D[B, L[2], N, T])


def twice(x: Tensor[S, T]) -> Tensor[S, T]:
    return x * 2.0 + 1.0


def table(x: Tensor1D[B], y: Tensor1D[N]) -> Tensor2D[B, N]:
    return assert_type(x.expand_dims(-1) + y, Tensor2D[B, N])


check(assert_type(bias(z, c), Tensor3D[L[4], L[2], L[3]]), (4, 2, 3))
check(assert_type(bias(z.trace(), c), Tensor3D[L[4], L[2], L[3], OwnedTape]), (4, 2, 3))
check(assert_type(table(v, u), Tensor2D[L[3], L[1]]), (3, 1))
check(assert_type(twice(m), Tensor2D[L[2], L[3]]), (2, 3))

# An open dim stays open, unless the other operand says what it is.
dynamic: Tensor2D[Any, L[3]] = m
check(assert_type(dynamic + v, Tensor2D[Any, L[3]]), (2, 3))
check(assert_type(dynamic + r, Tensor2D[Any, L[3]]), (2, 3))
check(assert_type(dynamic + m, Tensor2D[L[2], L[3]]), (2, 3))
anything: Any = m
check(assert_type(m + anything, Any), (2, 3))

# Where the rank is open too, the result may have more axes than the other operand.
unknown: Tensor[Any] = m
check(assert_type(unknown + unknown, Tensor[Any]), (2, 3))
check(assert_type(v + unknown, Tensor[Any]), (2, 3))
check(assert_type(unknown - v.trace(), Tensor[Any, OwnedTape]), (2, 3))
check(assert_type(v.trace() * unknown, Tensor[Any, OwnedTape]), (2, 3))
check(assert_type(v.trace() ** unknown, Tensor[Any, OwnedTape]), (2, 3))
check(assert_type(v == unknown, Tensor[Any, NoneTape, np.bool_]), (2, 3))
check(assert_type(s < unknown, Tensor[Any, NoneTape, np.bool_]), (2, 3))
check(assert_type(vmask & (unknown > 0.0), Tensor[Any, NoneTape, np.bool_]), (2, 3))
check(assert_type(tt.minimum(v.trace(), unknown), Tensor[Any, OwnedTape]), (2, 3))
check(assert_type(tt.maximum(v.trace(), anything), Tensor[Any, OwnedTape]), (2, 3))
check(assert_type(tt.where(vmask, v, unknown), Tensor[Any]), (2, 3))
check(assert_type(tt.where(unknown > 0.0, v.trace(), 0.0), Tensor[Any, OwnedTape]), (2, 3))
check(assert_type(tt.where(unknown > 0.0, v, v), Tensor[Any]), (2, 3))
untyped: Tensor[Any, Any, Any] = m
check(assert_type(v.trace() / untyped, Tensor[Any, OwnedTape]), (2, 3))
of_any_rank: Tensor[tuple[Any, ...]] = m
check(assert_type(v + of_any_rank, Tensor[Any]), (2, 3))
# Its last axis may be known, to which one of size 1 broadcasts.
ending = of_any_rank @ w
check(assert_type(tt.where(u > 0.0, ending, 0.0), Tensor[Any]), (2, 6))
check(assert_type(tt.where(c > 0.0, untyped @ w, u), Tensor[Any, Any, Any]), (2, 6))
check(assert_type(tt.maximum(ending.trace(), c), Tensor[Any, OwnedTape]), (2, 6))
check(assert_type(u == ending, Tensor[Any, NoneTape, np.bool_]), (2, 6))
check(assert_type(tt.ssm_scan(ending, u, c), Tensor[Any]), (2, 6))

# So does a computed one.
rows: int = sum((1, 1))
computed: Tensor2D[int, L[3]] = tt.zeros((rows, 3))
check(assert_type(computed + computed, Tensor2D[int, L[3]]), (2, 3))
check(assert_type(computed + v, Tensor2D[int, L[3]]), (2, 3))
check(assert_type(computed + m, Tensor2D[L[2], L[3]]), (2, 3))
