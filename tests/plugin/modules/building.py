# mypy: disable-error-code="module-no-forward"
"""What `build` cannot make is reported where it is called, in the words of the run time."""

from __future__ import annotations

from typing import Any, ClassVar, Generic, NewType, TypeAlias
from typing import Literal as L

import numpy as np

import tapetensor as tt
from tapetensor import NoneTape, OwnedTape, Tensor1D, Tensor2D, nn
from tapetensor.nn.typing import W
from tapetensor.typing import B, N, T

Features = NewType("Features", int)
WIDTH: int = 6
rng = np.random.default_rng(0)


class Block(nn.Module, Generic[N]):
    inner: nn.Linear[N, N]
    scale: Tensor1D[N] = nn.parameter(nn.init.ones)

    def forward(self, x: Tensor2D[B, N, T]) -> Tensor2D[B, N, T]:
        return self.inner.forward(x) * self.scale


class Tower(nn.Module, Generic[N, W]):
    """Everything that can be built."""

    kind: ClassVar[str] = "tower"
    first: Block[N]
    blocks: list[Block[N]] = nn.repeat(2)
    more: tuple[Block[N], ...] = nn.repeat(2)
    pair: tuple[nn.ReLU, Block[N]]
    drop: nn.Dropout = nn.options(p=0.1)
    norm: nn.LayerNorm[N, W]
    counts: Tensor1D[N, NoneTape, np.int64] = nn.buffer(nn.init.zeros)
    rng: np.random.Generator
    eps: float = 1e-5
    head: nn.Sequential[nn.Linear[N, L[1], W], nn.ReLU]

    def helper(self) -> None:
        pass


class Wide(Tower[L[6], np.float32]):
    table: nn.Embedding[L[9], L[4]]


class Optional(nn.Module):
    maybe: nn.ReLU | None = None


SixWide: TypeAlias = Block[L[6]]

tt.build(Tower[L[6], np.float64], rng=rng)
tt.build(Wide, rng=rng)
tt.build(Optional, rng=rng)
tt.build(SixWide, rng=rng)
module: nn.Module = tt.build(nn.Sequential[nn.Linear[L[3], L[2]], nn.ReLU], rng=rng)


class ListOfUnknownLength(nn.Module):
    blocks: list[Block[L[6]]]


class TupleOfUnknownLength(nn.Module):
    blocks: tuple[Block[L[6]], ...]


class NoFirstValues(nn.Module):
    scale: Tensor1D[L[6]]


class NominalDim(nn.Module):
    scale: Tensor1D[Features] = nn.parameter(nn.init.ones)


class OpenDim(nn.Module, Generic[N]):
    scale: Tensor2D[N, int] = nn.buffer(nn.init.ones)


class WithTape(nn.Module):
    # E: WithTape.scale is annotated with OwnedTape; a field holds a plain value (NoneTape), it is
    scale: Tensor1D[L[6], OwnedTape] = nn.parameter(nn.init.ones)


class Counts(nn.Module):
    counts: Tensor1D[L[6], NoneTape, np.int64] = nn.parameter(nn.init.zeros)


class NoDefault(nn.Module):
    eps: float


class NoDefaultForUnion(nn.Module):
    maybe: nn.ReLU | None


class Misused(nn.Module):
    act: nn.ReLU = nn.repeat(2)


class Nested(nn.Module):
    tower: ListOfUnknownLength


class Derived(NoFirstValues):
    act: nn.ReLU


class Repaired(NoFirstValues):
    scale: Tensor1D[L[6]] = nn.parameter(nn.init.ones)


class NeedsRate(nn.Module):
    def __init__(self, rate: float) -> None:
        self.rate = rate


class HoldsRate(nn.Module):
    inner: NeedsRate


class GivesRate(nn.Module):
    inner: NeedsRate = nn.options(rate=0.5)


class Conditional(nn.Module):
    if WIDTH > 3:
        blocks: list[Block[L[6]]] = nn.repeat(1)


tt.build(Repaired, rng=rng)
tt.build(GivesRate, rng=rng)
tt.build(Conditional, rng=rng)
# The constructor takes what `build` cannot make.
ListOfUnknownLength(blocks=[tt.build(Block[L[6]], rng=rng)])
NoFirstValues(scale=tt.ones((6,)))


def wrong() -> None:
    # E: build: ListOfUnknownLength.blocks is a list of unknown length; write blocks: list[...] =
    # E: nn.repeat(3), say  [module-dims]
    tt.build(ListOfUnknownLength, rng=rng)
    tt.build(TupleOfUnknownLength, rng=rng)  # E: TupleOfUnknownLength.blocks is a tuple of unknown
    tt.build(NoFirstValues, rng=rng)  # E: NoFirstValues.scale is a tensor without first values
    tt.build(NominalDim, rng=rng)  # E: build: NominalDim.scale: the dim Features has no size; write
    tt.build(OpenDim[L[6]], rng=rng)  # E: build: OpenDim.scale: the dim int has no size; write
    tt.build(WithTape, rng=rng)  # E: build: WithTape.scale is annotated with OwnedTape; a field
    # E: build: Counts.counts has dtype int64, and only floats are trained
    tt.build(Counts, rng=rng)
    tt.build(NoDefault, rng=rng)  # E: build: NoDefault.eps is annotated float; give it a default
    # E: build: NoDefaultForUnion.maybe is annotated ReLU | None
    tt.build(NoDefaultForUnion, rng=rng)
    tt.build(Misused, rng=rng)  # E: build: Misused.act is annotated ReLU, for which nn.repeat(...)
    tt.build(Nested, rng=rng)  # E: build: Nested.tower.blocks is a list of unknown length; write
    tt.build(Derived, rng=rng)  # E: build: Derived.scale is a tensor without first values; write
    tt.build(HoldsRate, rng=rng)  # E: build: HoldsRate.inner: the argument rate of NeedsRate cannot
    # E: build: Block: Block[N] needs a value for N; write Block[Literal[64]]
    tt.build(Block, rng=rng)
    tt.build(nn.Sequential, rng=rng)  # E: Sequential: Sequential[Layers] needs a value for Layers
    tt.build(Block[Features], rng=rng)  # E: build: Block.inner: the dim Features has no size; write
    tt.build(nn.Linear[L[3], int], rng=rng)  # E: build: Linear: the dim int has no size; write
    # E: build: Sequential.1.tower.blocks is a list
    tt.build(nn.Sequential[nn.ReLU, Nested], rng=rng)


def of_a_type_variable(_: Tensor1D[N]) -> None:
    tt.build(Block[N], rng=rng)  # E: build: Block.inner: the dim N has no size; write Literal[64]


def cannot_be_told(
    block: type[Block[N]], tower: type[ListOfUnknownLength], anything: Any
) -> Block[N]:
    tt.build(tower, rng=rng)
    tt.build(anything, rng=rng)
    tt.build(Block[Any], rng=rng)
    return tt.build(block, rng=rng)
