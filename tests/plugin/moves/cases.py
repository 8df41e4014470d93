"""What the cases are written with."""

from __future__ import annotations

from typing import Literal as L

import tapetensor as tt
from tapetensor import NoneTape, OwnedTape, Tensor0D, Tensor1D

Plain = Tensor1D[L[3]]
Traced = Tensor1D[L[3], OwnedTape]
Scalar = Tensor0D[OwnedTape]


class Elsewhere:
    """An object whose methods are in another file than those that call them."""

    def __init__(self, traced: Traced) -> None:
        self.traced = traced
        self.several: list[Traced] = [traced.share()]

    def take(self) -> Traced:
        return self.traced.tanh()

    def take_all(self) -> Traced:
        return tt.stack(self.several).sum(axis=0)

    def renew(self) -> None:
        self.traced = self.traced.tanh()

    def look(self) -> Traced:
        return self.traced.share().tanh()


__all__ = ["Elsewhere", "NoneTape", "Plain", "Scalar", "Traced"]
