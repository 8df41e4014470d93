"""Gradients as functions: the type of the point, tape and all."""

from __future__ import annotations

from typing import Literal as L

import numpy as np

import tapetensor as tt
from tapetensor import NoneTape, OwnedTape, Tensor, Tensor0D, Tensor1D, Tensor2D
from tapetensor.typing import F, S, T
from tests.typing.check import assert_type, check
from tests.typing.operands import m, md, v


def energy(x: Tensor[S, T, F]) -> Tensor0D[T, F]:
    return x.square().sum()


check(assert_type(tt.grad(lambda x: x.exp().sum(), m), Tensor2D[L[2], L[3]]), (2, 3))
check(
    assert_type(tt.grad(lambda x: x.exp().sum(), m.trace()), Tensor2D[L[2], L[3], OwnedTape]),
    (2, 3),
)
check(assert_type(tt.grad(energy, m), Tensor2D[L[2], L[3]]), (2, 3))
check(assert_type(tt.grad(energy, md.trace()), Tensor2D[L[2], L[3], OwnedTape, np.float64]), (2, 3))

# A gradient of a gradient, with no annotation inside.
check(
    assert_type(
        tt.grad(lambda x: (tt.grad(lambda x: x.exp().sum(), x) ** 2.0).sum(), m),
        Tensor2D[L[2], L[3]],
    ),
    (2, 3),
)

# Two inputs and three: a gradient for each.
gm, gv = tt.grad(lambda x, y: (x @ y).sum(), m, v)
check(assert_type(gm, Tensor2D[L[2], L[3]]), (2, 3))
check(assert_type(gv, Tensor1D[L[3]]), (3,))
traced_gm, traced_gv = tt.grad(lambda x, y: (x @ y).sum(), m.trace(), v.trace())
check(assert_type(traced_gm, Tensor2D[L[2], L[3], OwnedTape]), (2, 3))
check(assert_type(traced_gv, Tensor1D[L[3], OwnedTape]), (3,))
check(
    assert_type(
        tt.grad(lambda x, y, z: (x.with_empty_tape() @ y + x @ z).sum(), m, v, v),
        tuple[Tensor2D[L[2], L[3]], Tensor1D[L[3]], Tensor1D[L[3]]],
    )[2],
    (3,),
)

check(assert_type(tt.hessian_vector_product(energy, m, m), Tensor2D[L[2], L[3]]), (2, 3))
check(
    assert_type(
        tt.hessian_vector_product(lambda x: x.exp().sum(), md, md),
        Tensor2D[L[2], L[3], NoneTape, np.float64],
    ),
    (2, 3),
)
check(
    assert_type(tt.hessian_vector_product(energy, m.trace(), m), Tensor2D[L[2], L[3], OwnedTape]),
    (2, 3),
)
