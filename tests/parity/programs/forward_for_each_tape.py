"""A forward for each tape: the body for the tape keeps it, and generic modules go around it."""

from __future__ import annotations

from typing import Literal as L
from typing import assert_type, overload

import numpy as np

import tapetensor as tt
from tapetensor import OwnedTape, Tensor2D, nn
from tapetensor.typing import B, T

Plain = Tensor2D[B, L[8]]
Traced = Tensor2D[B, L[8], OwnedTape]


class TwoWays(nn.Module):
    out: nn.Linear[L[8], L[8]]

    @overload
    def forward(self, x: Plain[B]) -> Plain[B]: ...
    @overload
    def forward(self, x: Traced[B]) -> Traced[B]: ...
    def forward(self, x: Plain[B] | Traced[B]) -> Plain[B] | Traced[B]:
        return self.training(x) if tt.owns_tape(x) else self.inference(x)

    def training(self, x: Traced[B]) -> Traced[B]:
        return self.out.forward(x) * 2.0

    def inference(self, x: Plain[B]) -> Plain[B]:
        return self.out.forward(x)


class Around(nn.Module):
    two: TwoWays

    def forward(self, x: Tensor2D[B, L[8], T]) -> Tensor2D[B, L[8], T]:
        return self.two.forward(x)  # M: has incompatible type # M: Incompatible return value


x: Tensor2D[L[4], L[8]] = tt.ones((4, 8))
model = tt.build(TwoWays, rng=np.random.default_rng(0))
assert_type(model.forward(x), Tensor2D[L[4], L[8]])
loss = assert_type(model.forward(x.trace()), Tensor2D[L[4], L[8], OwnedTape]).sum()
assert len(loss.backward(wrt=model)) == 2
around = Around(two=model)
assert around.forward(x.trace()).owns_tape
assert (around.forward(x.trace()).detach().numpy() == 2 * around.forward(x).numpy()).all()
