"""Other axes, the same elements."""

from __future__ import annotations

from typing import Any
from typing import Literal as L

import numpy as np

from tapetensor import (
    NoneTape,
    OwnedTape,
    Tensor,
    Tensor0D,
    Tensor1D,
    Tensor2D,
    Tensor3D,
    Tensor4D,
    Tensor5D,
)
from tests.typing.check import assert_type, check
from tests.typing.operands import c, m, mask, md, mi, q, r, s, u, uu, v, z, z1, zc, zr

# `reshape` to a literal target is what the annotation says; the run-time check decides.
m32: Tensor2D[L[3], L[2]] = m.reshape((3, 2))
check(m32, (3, 2))
t6: Tensor1D[L[6], OwnedTape] = m.trace().reshape((6,))
check(t6, (6,))
check(assert_type(z.flatten(), Tensor1D[Any]), (24,))
check(assert_type(z.trace().flatten(), Tensor1D[Any, OwnedTape]), (24,))

# `permute_dims` and `transpose`.
check(assert_type(m.permute_dims((1, 0)), Tensor2D[L[3], L[2]]), (3, 2))
check(assert_type(m.trace().permute_dims((1, 0)), Tensor2D[L[3], L[2], OwnedTape]), (3, 2))
check(assert_type(z.permute_dims((0, 2, 1)), Tensor3D[L[4], L[3], L[2]]), (4, 3, 2))
check(assert_type(z.permute_dims((1, 0, 2)), Tensor3D[L[2], L[4], L[3]]), (2, 4, 3))
check(assert_type(z.permute_dims((1, 2, 0)), Tensor3D[L[2], L[3], L[4]]), (2, 3, 4))
check(
    assert_type(z.trace().permute_dims((1, 2, 0)), Tensor3D[L[2], L[3], L[4], OwnedTape]), (2, 3, 4)
)
check(assert_type(z.permute_dims((2, 0, 1)), Tensor3D[L[3], L[4], L[2]]), (3, 4, 2))
check(assert_type(z.permute_dims((2, 1, 0)), Tensor3D[L[3], L[2], L[4]]), (3, 2, 4))
check(assert_type(v.permute_dims((0,)), Tensor1D[L[3]]), (3,))
check(assert_type(m.permute_dims((0, 1)), Tensor2D[L[2], L[3]]), (2, 3))
check(assert_type(z.permute_dims((0, 1, 2)), Tensor3D[L[4], L[2], L[3]]), (4, 2, 3))
check(assert_type(q.permute_dims((0, 1, 2, 3)), Tensor4D[L[5], L[4], L[2], L[3]]), (5, 4, 2, 3))
check(assert_type(q.permute_dims((0, 1, 3, 2)), Tensor4D[L[5], L[4], L[3], L[2]]), (5, 4, 3, 2))
check(assert_type(q.permute_dims((0, 2, 1, 3)), Tensor4D[L[5], L[2], L[4], L[3]]), (5, 2, 4, 3))
check(assert_type(q.permute_dims((0, 2, 3, 1)), Tensor4D[L[5], L[2], L[3], L[4]]), (5, 2, 3, 4))
check(assert_type(q.permute_dims((0, 3, 1, 2)), Tensor4D[L[5], L[3], L[4], L[2]]), (5, 3, 4, 2))
check(assert_type(q.permute_dims((0, 3, 2, 1)), Tensor4D[L[5], L[3], L[2], L[4]]), (5, 3, 2, 4))
check(assert_type(q.permute_dims((1, 0, 2, 3)), Tensor4D[L[4], L[5], L[2], L[3]]), (4, 5, 2, 3))
check(assert_type(q.permute_dims((1, 0, 3, 2)), Tensor4D[L[4], L[5], L[3], L[2]]), (4, 5, 3, 2))
check(assert_type(q.permute_dims((1, 2, 0, 3)), Tensor4D[L[4], L[2], L[5], L[3]]), (4, 2, 5, 3))
check(assert_type(q.permute_dims((1, 2, 3, 0)), Tensor4D[L[4], L[2], L[3], L[5]]), (4, 2, 3, 5))
check(assert_type(q.permute_dims((1, 3, 0, 2)), Tensor4D[L[4], L[3], L[5], L[2]]), (4, 3, 5, 2))
check(assert_type(q.permute_dims((1, 3, 2, 0)), Tensor4D[L[4], L[3], L[2], L[5]]), (4, 3, 2, 5))
check(assert_type(q.permute_dims((2, 0, 1, 3)), Tensor4D[L[2], L[5], L[4], L[3]]), (2, 5, 4, 3))
check(assert_type(q.permute_dims((2, 0, 3, 1)), Tensor4D[L[2], L[5], L[3], L[4]]), (2, 5, 3, 4))
check(assert_type(q.permute_dims((2, 1, 0, 3)), Tensor4D[L[2], L[4], L[5], L[3]]), (2, 4, 5, 3))
check(assert_type(q.permute_dims((2, 1, 3, 0)), Tensor4D[L[2], L[4], L[3], L[5]]), (2, 4, 3, 5))
check(assert_type(q.permute_dims((2, 3, 0, 1)), Tensor4D[L[2], L[3], L[5], L[4]]), (2, 3, 5, 4))
check(assert_type(q.permute_dims((2, 3, 1, 0)), Tensor4D[L[2], L[3], L[4], L[5]]), (2, 3, 4, 5))
check(assert_type(q.permute_dims((3, 0, 1, 2)), Tensor4D[L[3], L[5], L[4], L[2]]), (3, 5, 4, 2))
check(assert_type(q.permute_dims((3, 0, 2, 1)), Tensor4D[L[3], L[5], L[2], L[4]]), (3, 5, 2, 4))
check(assert_type(q.permute_dims((3, 1, 0, 2)), Tensor4D[L[3], L[4], L[5], L[2]]), (3, 4, 5, 2))
check(assert_type(q.permute_dims((3, 1, 2, 0)), Tensor4D[L[3], L[4], L[2], L[5]]), (3, 4, 2, 5))
check(assert_type(q.permute_dims((3, 2, 0, 1)), Tensor4D[L[3], L[2], L[5], L[4]]), (3, 2, 5, 4))
check(assert_type(q.permute_dims((3, 2, 1, 0)), Tensor4D[L[3], L[2], L[4], L[5]]), (3, 2, 4, 5))
traced = q.trace().permute_dims((0, 2, 1, 3))
check(assert_type(traced, Tensor4D[L[5], L[2], L[4], L[3], OwnedTape]), (5, 2, 4, 3))
check(assert_type(q.permute_dims((-1, 2, 1, 0)), Tensor4D[Any, Any, Any, Any]), (3, 2, 4, 5))


def by_order(order: tuple[int, int, int, int]) -> Tensor4D[Any, Any, Any, Any]:
    return assert_type(q.permute_dims(order), Tensor4D[Any, Any, Any, Any])


check(by_order((0, 1, 3, 2)), (5, 4, 3, 2))
five = q.expand_dims(0)
check(
    assert_type(five.permute_dims((4, 3, 2, 1, 0)), Tensor5D[Any, Any, Any, Any, Any]),
    (3, 2, 4, 5, 1),
)
six = five.expand_dims(0)
check(assert_type(six.permute_dims((5, 4, 3, 2, 1, 0)), Tensor[Any]), (3, 2, 4, 5, 1, 1))
check(assert_type(m.transpose(), Tensor2D[L[3], L[2]]), (3, 2))
check(assert_type(z.transpose(), Tensor3D[L[4], L[3], L[2]]), (4, 3, 2))
check(assert_type(z.trace().transpose(), Tensor3D[L[4], L[3], L[2], OwnedTape]), (4, 3, 2))
check(assert_type(q.transpose(), Tensor4D[L[5], L[4], L[3], L[2]]), (5, 4, 3, 2))

# `broadcast_to`: the target is declared, and the source must fit it.
row: tuple[L[3]] = (3,)
matrix: tuple[L[2], L[3]] = (2, 3)
stack: tuple[L[4], L[2], L[3]] = (4, 2, 3)
check(assert_type(s.broadcast_to(row), Tensor1D[L[3]]), (3,))
check(assert_type(s.trace().broadcast_to(stack), Tensor3D[L[4], L[2], L[3], OwnedTape]), (4, 2, 3))
to_u_row: Tensor1D[L[3]] = u.broadcast_to(row)
check(to_u_row, (3,))
to_u_stack_traced: Tensor3D[L[4], L[2], L[3], OwnedTape] = u.trace().broadcast_to(stack)
check(to_u_stack_traced, (4, 2, 3))
check(assert_type(v.broadcast_to(row), Tensor1D[L[3]]), (3,))
to_v_matrix: Tensor2D[L[2], L[3]] = v.broadcast_to(matrix)
check(to_v_matrix, (2, 3))
to_v_stack_traced: Tensor3D[L[4], L[2], L[3], OwnedTape] = v.trace().broadcast_to(stack)
check(to_v_stack_traced, (4, 2, 3))
to_uu_matrix: Tensor2D[L[2], L[3]] = uu.broadcast_to(matrix)
check(to_uu_matrix, (2, 3))
to_uu_stack_traced: Tensor3D[L[4], L[2], L[3], OwnedTape] = uu.trace().broadcast_to(stack)
check(to_uu_stack_traced, (4, 2, 3))
to_r_matrix: Tensor2D[L[2], L[3]] = r.broadcast_to(matrix)
check(to_r_matrix, (2, 3))
to_r_stack_traced: Tensor3D[L[4], L[2], L[3], OwnedTape] = r.trace().broadcast_to(stack)
check(to_r_stack_traced, (4, 2, 3))
to_c_matrix: Tensor2D[L[2], L[3]] = c.broadcast_to(matrix)
check(to_c_matrix, (2, 3))
to_c_stack_traced: Tensor3D[L[4], L[2], L[3], OwnedTape] = c.trace().broadcast_to(stack)
check(to_c_stack_traced, (4, 2, 3))
check(assert_type(m.broadcast_to(matrix), Tensor2D[L[2], L[3]]), (2, 3))
to_m_stack_traced: Tensor3D[L[4], L[2], L[3], OwnedTape] = m.trace().broadcast_to(stack)
check(to_m_stack_traced, (4, 2, 3))
check(assert_type(z1.trace().broadcast_to(stack), Tensor3D[L[4], L[2], L[3], OwnedTape]), (4, 2, 3))
check(assert_type(zr.trace().broadcast_to(stack), Tensor3D[L[4], L[2], L[3], OwnedTape]), (4, 2, 3))
check(assert_type(z.trace().broadcast_to(stack), Tensor3D[L[4], L[2], L[3], OwnedTape]), (4, 2, 3))

# `squeeze` and `expand_dims`.
check(assert_type(r.squeeze(0), Tensor1D[L[3]]), (3,))
check(assert_type(c.squeeze(-1), Tensor1D[L[2]]), (2,))
check(assert_type(c.trace().squeeze(1), Tensor1D[L[2], OwnedTape]), (2,))
check(assert_type(r.trace().squeeze(-2), Tensor1D[L[3], OwnedTape]), (3,))
check(assert_type(zc.squeeze(2), Tensor2D[L[4], L[2]]), (4, 2))
check(assert_type(zr.trace().squeeze(axis=1), Tensor2D[L[4], L[3], OwnedTape]), (4, 3))
check(assert_type(u.squeeze(0), Tensor0D), ())
check(assert_type(s.expand_dims(0), Tensor1D[L[1]]), (1,))
check(assert_type(v.expand_dims(0), Tensor2D[L[1], L[3]]), (1, 3))
check(assert_type(v.trace().expand_dims(-1), Tensor2D[L[3], L[1], OwnedTape]), (3, 1))
check(assert_type(v.expand_dims(-2), Tensor2D[L[1], L[3]]), (1, 3))
check(assert_type(m.expand_dims(axis=0), Tensor3D[L[1], L[2], L[3]]), (1, 2, 3))
check(assert_type(m.trace().expand_dims(1), Tensor3D[L[2], L[1], L[3], OwnedTape]), (2, 1, 3))
check(assert_type(m.expand_dims(2), Tensor3D[L[2], L[3], L[1]]), (2, 3, 1))
check(
    assert_type(z.trace().expand_dims(-2), Tensor4D[L[4], L[2], L[1], L[3], OwnedTape]),
    (4, 2, 1, 3),
)

# `split`: as many parts as it says, each of a size that plain typing does not know.
for part in m.split(2):
    check(assert_type(part, Tensor2D[Any, L[3]]), (1, 3))
for part_along_last in m.trace().split((1, 2), axis=-1):
    assert_type(part_along_last, Tensor2D[L[2], Any, OwnedTape])
for part_along_one in z.split([1, 1], axis=1):
    check(assert_type(part_along_one, Tensor3D[L[4], Any, L[3]]), (4, 1, 3))

# `pad` keeps the rank, and the plugin knows the sizes.
check(assert_type(m.pad(((0, 0), (1, 2))), Tensor2D[Any, Any]), (2, 6))
padded = z.trace().pad(((1, 0), (1, 1), (0, 2)), "replicate")
check(assert_type(padded, Tensor3D[Any, Any, Any, OwnedTape]), (5, 4, 5))

# `roll` keeps the shape, and `realize` makes known what was `Any`.
check(assert_type(v.roll(1, axis=0), Tensor1D[L[3]]), (3,))
check(assert_type(z.trace().roll(-1, axis=1), Tensor3D[L[4], L[2], L[3], OwnedTape]), (4, 2, 3))
check(assert_type(z.roll(1, 2), Tensor3D[L[4], L[2], L[3]]), (4, 2, 3))
check(assert_type(z.roll(1, -1), Tensor3D[L[4], L[2], L[3]]), (4, 2, 3))
check(assert_type(m.roll(1, -2), Tensor2D[L[2], L[3]]), (2, 3))
realized: Tensor1D[L[6]] = m.flatten().realize((6,))
check(realized, (6,))
realized_part: Tensor2D[L[1], L[3], OwnedTape] = m.trace().split(2)[0].realize((1, 3))
check(realized_part, (1, 3))
check(assert_type(m.realize((2, 3)), Tensor2D[L[2], L[3]]), (2, 3))

# `to` changes nothing that a type says.
check(assert_type(m.to(np), Tensor2D[L[2], L[3]]), (2, 3))
check(assert_type(z.trace().to(np), Tensor3D[L[4], L[2], L[3], OwnedTape]), (4, 2, 3))
check(assert_type(mi.to(np), Tensor2D[L[2], L[3], NoneTape, np.int64]), (2, 3))

# The dtype stays.
check(assert_type(mi.transpose(), Tensor2D[L[3], L[2], NoneTape, np.int64]), (3, 2))
check(assert_type(md.trace().flatten(), Tensor1D[Any, OwnedTape, np.float64]), (6,))
check(assert_type(mask.expand_dims(0), Tensor3D[L[1], L[2], L[3], NoneTape, np.bool_]), (1, 2, 3))
