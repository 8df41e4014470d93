"""What the cases are written with."""

from __future__ import annotations

from typing import Literal as L

from tapetensor import NoneTape, OwnedTape, Tensor0D, Tensor1D

Plain = Tensor1D[L[3]]
Traced = Tensor1D[L[3], OwnedTape]
Scalar = Tensor0D[OwnedTape]

__all__ = ["NoneTape", "Plain", "Scalar", "Traced"]
