"""Operands that do not broadcast. Every thunk raises, and its line says why."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal as L

import tapetensor as tt
from tapetensor import Tensor1D, Tensor2D, Tensor3D
from tapetensor.typing import B, M, N, T
from tests.typing.operands import c, m, m77, mask, q, r, s, v, v7, vmask, z, zr, zw

# A name of its own: mypy asks again and again what an operand is that is computed in the line.
sums = s + c.sum(axis=1)
# A tuple, for mypy checks lambdas in a list several times.
BAD: tuple[Callable[[], object], ...] = (
    lambda: m + v7,  # E: add: shapes (2, 3) and (7,) do not broadcast, 3 != 7
    lambda: m - m77,  # E: subtract: shapes (2, 3) and (7, 7) do not broadcast, 2 != 7
    lambda: m.trace() * m77,  # E: multiply: shapes (2, 3) and (7, 7) do not broadcast, 2 != 7
    lambda: z / zw.trace(),  # E: divide: shapes (4, 2, 3) and (4, 3, 6) do not broadcast, 2 != 3
    lambda: v7 ** m.trace(),  # E: power: shapes (7,) and (2, 3) do not broadcast, 7 != 3
    lambda: zr + m77,  # E: add: shapes (4, 1, 3) and (7, 7) do not broadcast, 3 != 7
    lambda: r + v7,  # E: add: shapes (1, 3) and (7,) do not broadcast, 3 != 7
    lambda: q + zr.reshape((3, 4, 1)),  # E: do not broadcast, 4 != 3
    lambda: m > v7,  # E: greater: shapes (2, 3) and (7,) do not broadcast, 3 != 7
    lambda: m // m77,  # E: floor_divide: shapes (2, 3) and (7, 7) do not broadcast, 2 != 7
    lambda: m % v7,  # E: remainder: shapes (2, 3) and (7,) do not broadcast, 3 != 7
    lambda: m.atan2(m77),  # E: atan2: shapes (2, 3) and (7, 7) do not broadcast, 2 != 7
    lambda: m == m77,  # E: equal: shapes (2, 3) and (7, 7) do not broadcast, 2 != 7
    lambda: mask & (v7 > 0.0),  # E: and: shapes (2, 3) and (7,) do not broadcast, 3 != 7
    lambda: vmask | (m77 > 0.0),  # E: or: shapes (3,) and (7, 7) do not broadcast, 3 != 7
    lambda: tt.maximum(v7, m),  # E: maximum: shapes (7,) and (2, 3) do not broadcast, 7 != 3
    lambda: tt.minimum(m, m77.trace()),  # E: minimum: shapes (2, 3) and (7, 7) do not broadcast
    lambda: tt.where(mask, m, v7),  # E: where: shapes (2, 3) and (7,) and (2, 3) do not broadcast
    lambda: tt.where(vmask, v7, 0.0),  # E: where: shapes (7,) and (3,) do not broadcast, 7 != 3
    lambda: tt.ssm_scan(z, m77, z),  # E: ssm_scan: a of shape (7, 7) does not broadcast to
    lambda: tt.ssm_scan(z, z, v7.trace()),  # E: b of shape (7,) does not broadcast to the shape
    lambda: tt.ssm_scan(m, z, m),  # E: a of shape (4, 2, 3) does not broadcast to the shape (2, 3)
    lambda: tt.ssm_scan(zr, v, z),  # E: b of shape (4, 2, 3) does not broadcast to the shape (4, 1
    lambda: tt.ssm_scan(v, v, v),  # E: x must have shape (..., length, channels), got (3,)
    lambda: 2.0 * (v + v7),  # E: add: shapes (3,) and (7,) do not broadcast, 3 != 7
    lambda: m + tt.zeros((4,)),  # E: add: shapes (2, 3) and (4,) do not broadcast, 3 != 4
    lambda: (m + v7) * 2.0 + v,  # E: add: shapes (2, 3) and (7,) do not broadcast, 3 != 7
    lambda: sums + v,  # E: add: shapes (2,) and (3,) do not broadcast, 2 != 3
)


# Names are told apart.
def swapped(x: Tensor2D[M, N, T], y: Tensor2D[N, M]) -> object:
    return x + y  # E: add: shapes (M, N) and (N, M) do not broadcast, M != N


def scaled(x: Tensor3D[B, M, L[8], T], y: Tensor1D[M]) -> object:
    return x * y  # E: multiply: shapes (B, M, 8) and (M,) do not broadcast, 8 != M


def compared(x: Tensor2D[B, M], y: Tensor1D[B]) -> object:
    return x > y  # E: greater: shapes (B, M) and (B,) do not broadcast, M != B


BAD += (
    lambda: swapped(m, m.transpose()),
    lambda: scaled(tt.zeros((2, 3, 8)), v),
    lambda: compared(m, tt.zeros((2,))),
)
