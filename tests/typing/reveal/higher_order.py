"""Functions of functions: gradients have the type of the point, checkpoints that of the call."""

from __future__ import annotations

from typing import Literal as L

import numpy as np

import tapetensor as tt
from tapetensor import NoneTape, OwnedTape, Tensor, Tensor0D, Tensor1D, Tensor2D, nn
from tapetensor.typing import F, K, M, N, S, T
from tests.typing.check import assert_type, check
from tests.typing.operands import m, md, v, w


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
        tt.grad(lambda x, y, z: (x @ y + x @ z).sum(), m, v, v),
        tuple[Tensor2D[L[2], L[3]], Tensor1D[L[3]], Tensor1D[L[3]]],
    )[2],
    (3,),
)

# The value too, of any shape.
value, slope = tt.value_and_grad(lambda x: x.exp(), m)
check(assert_type(value, Tensor2D[L[2], L[3]]), (2, 3))
check(assert_type(slope, Tensor2D[L[2], L[3]]), (2, 3))
energy_of, (gm2, gv2) = tt.value_and_grad(lambda x, y: (x @ y).sum(), m, v)
check(assert_type(energy_of, Tensor0D), ())
check(assert_type(gm2, Tensor2D[L[2], L[3]]), (2, 3))
check(assert_type(gv2, Tensor1D[L[3]]), (3,))

# A model with other tensors in the places of its own has the type of its `forward`.
thin: nn.Linear[L[3], L[2]] = nn.Linear(3, 2, rng=np.random.default_rng(0))
given = nn.functional_call(thin, {"bias": tt.ones((2,))}, m)
check(assert_type(given, Tensor2D[L[2], L[2]]), (2, 2))

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


def product(x: Tensor2D[M, K, T, F], y: Tensor2D[K, N, NoneTape, F]) -> Tensor2D[M, N, T, F]:
    return x @ y


# A checkpoint: a module's method, a function of one input or of two.
layer: nn.Linear[L[3], L[5]] = nn.Linear(3, 5, rng=np.random.default_rng(0))
check(assert_type(tt.checkpoint(layer.forward, m), Tensor2D[L[2], L[5]]), (2, 5))
check(assert_type(tt.checkpoint(layer.forward, m.trace()), Tensor2D[L[2], L[5], OwnedTape]), (2, 5))
check(assert_type(tt.checkpoint(energy, md.trace()), Tensor0D[OwnedTape, np.float64]), ())
check(assert_type(tt.checkpoint(product, m, w), Tensor2D[L[2], L[6]]), (2, 6))
check(assert_type(tt.checkpoint(product, m.trace(), w), Tensor2D[L[2], L[6], OwnedTape]), (2, 6))
