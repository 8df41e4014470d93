"""What a class of a module says wrongly is found where it says it."""

from __future__ import annotations

from typing import Any, overload
from typing import Literal as L

import numpy as np
import pytest

import tapetensor as tt
from tapetensor import OwnedTape, Tensor1D, Tensor2D, nn, optim
from tapetensor.typing import B, T

rng = np.random.default_rng(0)


class Undeclared(nn.Module):
    out: nn.Linear[L[8], L[2]]

    def __init__(self) -> None:
        self.out = nn.Linear(8, 2, rng=rng)
        self.hidden = nn.Linear(8, 8, rng=rng)  # P: Undeclared.hidden: annotate hidden in the class
        self.blocks = [nn.Linear(8, 8, rng=rng)]  # P: Undeclared.blocks: annotate blocks
        self.scale = tt.ones((8,))  # P: Undeclared.scale: annotate scale in the class body

    def forward(self, x: Tensor2D[B, L[8], T]) -> Tensor2D[B, L[2], T]:
        return self.out.forward(x)


class Misspelt(nn.Module):
    drop: nn.Dropout = nn.options(pp=0.5)  # P: Misspelt.drop: Dropout has no argument pp; it has p
    out: nn.Linear[L[8], L[2]] = nn.options(bias=True)  # P: has no argument bias

    def forward(self, x: Tensor2D[B, L[8], T]) -> Tensor2D[B, L[2], T]:
        return self.out.forward(self.drop.forward(x))


class Unread(nn.Module):
    out: nn.Linear[L[8], L[2]]
    forgotten: nn.Linear[L[8], L[2]]  # N: Unread.forgotten: forward() does not read this field
    shift: Tensor1D[L[2]] = nn.parameter(nn.init.zeros)  # N: Unread.shift: forward() does not

    def forward(self, x: Tensor2D[B, L[8], T]) -> Tensor2D[B, L[2], T]:
        return self.out.forward(x)


class Unchecked(nn.Module):
    out: nn.Linear[L[8], L[2]]

    @overload
    def forward(self, x: Tensor2D[B, L[8]]) -> Tensor2D[B, L[2]]: ...
    @overload
    def forward(self, x: Tensor2D[B, L[8], OwnedTape]) -> Tensor2D[B, L[2], OwnedTape]: ...
    def forward(self, x: Any) -> Any:  # N: Unchecked.forward: mypy does not check this body
        y = self.out.forward(x)
        return y.exp()


class UncheckedLine(nn.Module):
    out: nn.Linear[L[8], L[2]]

    @overload
    def forward(self, x: Tensor2D[B, L[8]]) -> Tensor2D[B, L[2]]: ...
    @overload
    def forward(self, x: Tensor2D[B, L[8], OwnedTape]) -> Tensor2D[B, L[2], OwnedTape]: ...
    def forward(self, x: Any) -> Any:  # N: UncheckedLine.forward: mypy does not check this body
        return self.out.forward(x).detach()


with pytest.raises(tt.BuildError, match=r"Undeclared.hidden: annotate hidden"):
    Undeclared()
with pytest.raises((tt.BuildError, tt.ArgumentTypeError), match="no arguments pp"):
    tt.build(Misspelt, rng=rng)
x: Tensor2D[L[4], L[8]] = tt.ones((4, 8))
model = tt.build(Unread, rng=rng)
with pytest.raises(tt.UnusedParametersError, match=r"forgotten\.weight: no gradient"):
    optim.Sgd(model).step(model.forward(x.trace()).sum().backward(wrt=model))
