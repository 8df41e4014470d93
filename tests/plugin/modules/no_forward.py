"""Modules without `forward` and without any other method to call them by."""

from __future__ import annotations

from abc import ABC
from typing import Any, Generic
from typing import Literal as L

import tapetensor as tt
from tapetensor import Tensor1D, Tensor2D, nn
from tapetensor.typing import B, N, T


# E: Mlp: a module is called by its forward(), and this one has neither that nor any other method
class Mlp(nn.Module):
    hidden: nn.Linear[L[6], L[4]]
    out: nn.Linear[L[4], L[2]]


# E: Counted: a module is called by its forward() # E: [module-no-forward]
class Counted(nn.Module):
    def __len__(self) -> int:
        return 1


class Parts(nn.Module):
    encoder: nn.Linear[L[6], L[4]]

    def encode(self, x: Tensor2D[B, L[6], T]) -> Tensor2D[B, L[4], T]:
        return self.encoder(x)


class Holder(nn.Module):
    """Read from outside."""

    first: nn.Linear[L[6], L[4]]
    last: nn.Linear[L[4], L[2]]


def through(parts: Holder, x: Tensor2D[B, L[6], T]) -> Tensor2D[B, L[2], T]:
    return parts.last(parts.first(x))


class MoreParts(Parts):
    shift: float = 0.0


class Scaling:
    def scaled(self, x: Tensor1D[N, T]) -> Tensor1D[N, T]:
        return x * 2.0


class WithMixin(nn.Module, Scaling):
    rate: float = 0.5


class Silenced(nn.Module):  # type: ignore[module-no-forward]  # a bare holder
    bare: float = 1.0


class Abstract(nn.Module, ABC):
    scale: float = 1.0


class Base(nn.Module, Generic[N]):
    weight: Tensor1D[N] = nn.parameter(nn.init.ones)


class Derived(Base[N]):
    def forward(self, x: Tensor1D[N, T]) -> Tensor1D[N, T]:
        return x * self.weight


class Elsewhere:
    class _Base(nn.Module):
        scale: float = 1.0


class OfElsewhere(Elsewhere._Base):
    def forward(self, x: Tensor1D[N, T]) -> Tensor1D[N, T]:
        return x * self.scale


class Inherits(Derived[L[3]]):
    shift: float = 0.0


class Called(nn.Module):
    def __call__(self, x: Tensor1D[N]) -> Tensor1D[N]:
        return x


class Dynamic(nn.Module):
    def __getattr__(self, name: str) -> Any:
        raise AttributeError(name)


class Outer(nn.Module):
    # E: _Inner: a module is called by its forward(), and this one has neither that
    class _Inner(nn.Module):
        offset: float = 1.0

    def forward(self, x: Tensor1D[N, T]) -> Tensor1D[N, T]:
        return x


assert Called()(tt.ones((2,))).shape == (2,)
