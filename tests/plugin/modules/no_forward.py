# mypy: enable-error-code="module-no-forward"
"""Modules without `forward`, for those who ask for the check."""

from __future__ import annotations

from typing import Any, Generic
from typing import Literal as L

import tapetensor as tt
from tapetensor import Tensor1D, Tensor2D, nn
from tapetensor.typing import B, N, T


# E: Parts: a module is called by its forward(), and this one has none  [module-no-forward]
class Parts(nn.Module):
    encoder: nn.Linear[L[6], L[4]]

    def encode(self, x: Tensor2D[B, L[6], T]) -> Tensor2D[B, L[4], T]:
        return self.encoder(x)


class Silenced(nn.Module):  # type: ignore[module-no-forward]  # a holder
    scale: float = 1.0


class Base(nn.Module, Generic[N]):
    weight: Tensor1D[N] = nn.parameter(nn.init.ones)


class Derived(Base[N]):
    def forward(self, x: Tensor1D[N, T]) -> Tensor1D[N, T]:
        return x * self.weight


class Inherits(Derived[L[3]]):
    shift: float = 0.0


class Called(nn.Module):
    def __call__(self, x: Tensor1D[N]) -> Tensor1D[N]:
        return x


class Dynamic(nn.Module):
    def __getattr__(self, name: str) -> Any:
        raise AttributeError(name)


class Outer(nn.Module):
    # E: _Inner: a module is called by its forward(), and this one has none
    class _Inner(nn.Module):
        scale: float = 1.0

    def forward(self, x: Tensor1D[N, T]) -> Tensor1D[N, T]:
        return x


assert Called()(tt.ones((2,))).shape == (2,)
