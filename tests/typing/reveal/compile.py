"""A compiled function has the type of the function: dims, tapes and overloads."""

from __future__ import annotations

from typing import Any, overload
from typing import Literal as L

import numpy as np

import tapetensor as tt
from tapetensor import (
    Gradients,
    NoneTape,
    OwnedTape,
    Tensor,
    Tensor0D,
    Tensor1D,
    Tensor2D,
    losses,
    nn,
)
from tapetensor.typing import B, F, M, N, S, T
from tests.typing.check import assert_type, check
from tests.typing.operands import m, md, v


@tt.compile
def doubled(x: Tensor[S, NoneTape, F]) -> Tensor[S, NoneTape, F]:
    return x.exp()


@tt.compile
def turned(x: Tensor2D[M, N]) -> Tensor2D[N, M]:
    return x.transpose()


@overload
def flat(x: Tensor1D[N]) -> Tensor1D[N]: ...
@overload
def flat(x: Tensor2D[M, N]) -> Tensor1D[Any]: ...
def flat(x: Any) -> Any:
    return x.flatten()


flat_again = tt.compile(flat)


class Model(nn.Module):
    out: nn.Linear[L[3], L[4]]


@tt.compile
def gradients_of(
    model: Model, x: Tensor2D[B, L[3]], target: Tensor2D[B, L[4]]
) -> tuple[Tensor0D, Gradients]:
    loss = losses.mse(model.out.forward(x.trace()), target)
    value = loss.detach()
    return value, loss.backward(wrt=model)


class Scaled:
    def __init__(self, factor: float) -> None:
        self.factor = factor

    @tt.compile
    def apply(self, x: Tensor2D[M, N]) -> Tensor2D[M, N]:
        return x * self.factor


@tt.compile
def mean_of(model: Model, x: Tensor2D[B, L[3], T]) -> Tensor0D[T]:
    return model.out.forward(x).mean()


check(assert_type(doubled(m), Tensor2D[L[2], L[3]]), (2, 3))
check(assert_type(doubled(md), Tensor2D[L[2], L[3], NoneTape, np.float64]), (2, 3))
check(assert_type(turned(m), Tensor2D[L[3], L[2]]), (3, 2))
check(assert_type(flat_again(v), Tensor1D[L[3]]), (3,))
check(assert_type(flat_again(m), Tensor1D[Any]), (6,))
check(assert_type(Scaled(2.0).apply(m), Tensor2D[L[2], L[3]]), (2, 3))

model = tt.build(Model, rng=np.random.default_rng(0))
target: Tensor2D[L[2], L[4]] = tt.ones((2, 4))
value, gradients = gradients_of(model, m, target)
check(assert_type(value, Tensor0D), ())
check(assert_type(mean_of(model, m), Tensor0D), ())
check(assert_type(mean_of(model, m.trace()), Tensor0D[OwnedTape]), ())
mean_gradients = mean_of(model, m.trace()).backward(wrt=model)
check(assert_type(mean_gradients[model.out.weight], Tensor2D[L[4], L[3]]), (4, 3))
layer = tt.compile(model.out.forward)
check(assert_type(layer(m.trace()), Tensor2D[L[2], L[4], OwnedTape]), (2, 4))
check(assert_type(gradients[model.out.weight], Tensor2D[L[4], L[3]]), (4, 3))
