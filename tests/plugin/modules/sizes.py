# mypy: disable-error-code="module-no-forward"
"""Sizes that nothing can have are reported where the class is defined, and where it is made."""

from __future__ import annotations

from typing import Any, Generic, NewType, TypeAlias
from typing import Literal as L

import numpy as np

import tapetensor as tt
from tapetensor import NoneTape, OwnedTape, Tensor1D, Tensor2D, nn
from tapetensor.nn.containers import Layer
from tapetensor.typing import Div, M, Mul, N, Sub, T

Features = NewType("Features", int)
Channels: TypeAlias = L[4]
rng = np.random.default_rng(0)


# What can be made, from annotations or from its fields, whatever its sizes.
class Generous(nn.Module, Generic[M, N]):
    attention: nn.MultiHeadAttention[N, M]
    same: nn.MultiHeadAttention[N, N]
    product: nn.MultiHeadAttention[Mul[M, N], N]
    image: nn.Conv2d[M, N, L[3], L[1], L[1], L[1], M]
    nominal: nn.Linear[Features, int]
    unknown: nn.Linear[Any, L[3]]


class Fine(nn.Module):
    attention: nn.MultiHeadAttention[L[8], L[3], np.float32, L[6], L[9]]
    grouped: nn.Conv2d[L[4], L[8], L[3], L[1], L[0], L[1], L[4]]
    pool: nn.MaxPool2d[L[3], L[2], L[1]]
    upward: nn.ConvTranspose2d[L[4], L[6], L[3], L[2], L[1], L[1]]
    empty: Tensor1D[L[0]]
    absent: nn.Linear[L[0], L[3]] | None = None
    parts: nn.Sequential[nn.Linear[L[3], L[4]], nn.ReLU, nn.Linear[L[4], L[2]]]
    shaped: nn.Reshape[L[0], L[3]]
    listed: list[nn.Linear[L[0], L[3]]]
    inner: Generous[L[2], L[8]]
    open: Generous[Any, int]
    own: Tensor2D[L[3], L[4], NoneTape, np.float16]
    depthwise: nn.Conv2d[L[4], L[4], L[3], L[1], L[1], L[1], L[4]] = nn.options(groups=4)
    left_open: nn.Conv1d[L[4], L[4], L[3], int, L[0], int] = nn.options(stride=2, dilation=5)
    block: nn.EncoderBlock[L[8], L[2], L[16]] = nn.options(norm_first=True)


class MadeByHand(nn.Module):
    """Its fields are what its constructor makes of them."""

    attention: nn.MultiHeadAttention[L[8], L[3]]

    def __init__(self) -> None:
        pass


def generic(layer: nn.Linear[N, M], x: Tensor1D[N, T]) -> Tensor1D[M, T]:
    return layer.forward(x)


# What nothing can be.
class Heads(nn.Module):
    # E: Heads.attention: 3 heads do not divide key_features 8 and value_features 8  [module-dims]
    attention: nn.MultiHeadAttention[L[8], L[3]]
    # E: Heads.values: 2 heads do not divide key_features 8 and value_features 9
    values: nn.MultiHeadAttention[L[8], L[2], np.float32, L[8], L[9]]


class Encoder(nn.Module):
    # E: Encoder.block.self_attn: 3 heads do not divide key_features 8 and value_features 8
    block: nn.EncoderBlock[L[8], L[3], L[16]]


class Encoders(nn.Module):
    # E: Encoders.blocks.layers.0.self_attn: 3 heads do not divide
    blocks: nn.Repeated[nn.EncoderBlock[L[8], L[3], L[16]], L[2]]


class Groups(nn.Module):
    # E: Groups.image: 4 groups do not divide in_channels 4 and out_channels 6
    image: nn.Conv2d[Channels, L[6], L[3], L[1], L[0], L[1], L[4]]


class Zero(nn.Module):
    linear: nn.Linear[L[0], L[3]]  # E: Zero.linear: in_features must be > 0, got 0
    kernel: nn.Conv2d[L[4], L[6], L[0]]  # E: Zero.kernel: kernel_size must be > 0, got 0
    stride: nn.MaxPool2d[L[2], L[0]]  # E: Zero.stride: stride must be > 0, got 0
    normal: nn.LayerNorm[L[0]]  # E: Zero.normal: normalized_features must be > 0, got 0
    root: nn.RMSNorm[L[0]]  # E: Zero.root: normalized_features must be > 0, got 0
    groups: nn.GroupNorm[L[3], L[4]]  # E: Zero.groups: 3 groups do not divide num_channels 4


class Negative(nn.Module):
    padding: nn.Conv1d[L[4], L[6], L[3], L[1], L[-1]]  # E: padding must not be negative, got
    shaped: nn.Reshape[L[-1], L[3]]  # E: Negative.shaped: a size must not be negative, got -1
    # E: Negative.scale: the dim Literal[-2] has no size; write Literal[64], say
    scale: Tensor2D[L[3], L[-2]] = nn.parameter(nn.init.ones)
    bias: Tensor1D[Sub[L[2], L[5]]]  # E: Negative.bias: the dim Literal[-3] has no size
    truth: nn.Linear[L[3], L[True]]  # E: Negative.truth: out_features must be an int, got True


class Windows(nn.Module):
    # E: Windows.pool: padding (2, 2) is more than half of the window (2, 2); a window would hold
    pool: nn.AvgPool2d[L[2], L[2], L[2]]
    # E: Windows.upward: output_padding (1, 1) must be less than the stride (1, 1)
    upward: nn.ConvTranspose2d[L[4], L[6], L[3], L[1], L[0], L[1]]

    tall: nn.Conv2d[L[4], L[6], tuple[L[3], L[1]], tuple[L[2], L[1]]]
    kept: nn.Conv2d[L[4], L[6], tuple[L[3], L[1]], L[1], L["same"]]
    # E: Windows.strided: padding="same" keeps the size of the input, which a stride of (1, 2) does
    strided: nn.Conv2d[L[4], L[6], L[3], tuple[L[1], L[2]], L["same"]]
    # E: Windows.negative: padding must not be negative, got -1
    negative: nn.MaxPool2d[L[2], L[2], tuple[L[0], L[-1]]]


class Contradiction(nn.Module):
    # E: the annotation of depth says 1; write nn.Conv2d[L[4], L[4], L[3], L[1], L[1], L[1], L[4]]
    depth: nn.Conv2d[L[4], L[4], L[3], L[1], L[1]] = nn.options(groups=4, bias=False)
    # E: Contradiction: many.0.stride is 2, the annotation of many says 3
    many: list[nn.MaxPool2d[L[3]]] = nn.repeat(2, stride=2)


class Values(nn.Module):
    # E: Values: block.activation must be 'relu' or 'relu6' or 'gelu' or 'silu' or
    block: nn.EncoderBlock[L[8], L[2], L[16]] = nn.options(activation="swoosh")
    norm: nn.LayerNorm[L[8]] = nn.options(eps=-1.0)  # E: Values: norm.eps must be >= 0, got -1.0
    drop: nn.Dropout = nn.options(p=1.5)  # E: Values: drop.p must be from 0 to 1, got 1.5


class Unknown(nn.Module):
    # E: Unknown.drop: Dropout has no argument pp; it has p, rng
    drop: nn.Dropout = nn.options(pp=0.1)
    # E: Unknown.drops: Dropout has no argument pp; it has p, rng
    drops: list[nn.Dropout] = nn.repeat(2, pp=0.1)


class Spent(nn.Module):
    last: Tensor1D[L[3], OwnedTape]  # E: Spent.last is annotated with OwnedTape; a field holds a


class Within(nn.Module):
    parts: nn.Sequential[nn.ReLU, nn.Linear[L[3], L[0]]]  # E: Within.parts.1: out_features must be
    both: tuple[nn.ReLU, nn.Linear[L[0], L[3]]]  # E: Within.both.1: in_features must be > 0, got 0
    many: list[nn.Linear[L[0], L[3]]] = nn.repeat(2)  # E: Within.many.0: in_features must be > 0
    added: nn.ResidualAdd[nn.Linear[L[0], L[3]]]  # E: Within.added.layer: in_features must be > 0
    block: Generous[L[3], L[8]]  # E: Within.block.attention: 3 heads do not divide key_features 8


class Of(nn.Module, Generic[Layer]):
    layer: Layer


class Whole(Of[nn.Linear[L[0], L[3]]]):  # E: Whole.layer: in_features must be > 0, got 0
    scale: float = 1.0


class Narrow(nn.Linear[L[0], L[3]]):  # E: Narrow: in_features must be > 0, got 0
    pass


class Beside(nn.Module):
    layer: nn.ResidualAdd[nn.Linear[L[4], L[4]]]


class BesideOpen(nn.Module):
    layer: nn.ResidualAdd[nn.Linear[L[4], Features]]


tt.build(Beside, rng=rng)
tt.build(nn.ResidualMul[nn.ReLU], rng=rng)
impossible: list[type[nn.Module]] = [
    *[Heads, Encoder, Encoders, Groups, Zero, Negative, Windows, Spent, Within],
    *[Whole, Narrow],
]
for cls in impossible:
    try:
        tt.build(cls, rng=rng)
    except tt.TapeTensorError:
        continue
    raise AssertionError(cls)


def unannotated() -> None:
    class Scaled(nn.Module):
        # E: Scaled.scale: annotate it (scale: ... = nn.parameter(...)), so that it becomes a field
        scale = nn.parameter(nn.init.ones)


def made() -> None:
    # E: MultiHeadAttention: 3 heads do not divide key_features 8 and value_features 8
    nn.MultiHeadAttention(8, 3, rng=rng)
    # E: MultiHeadAttention: 2 heads do not divide key_features 6 and value_features 7
    nn.MultiHeadAttention(8, 2, key_features=6, value_features=7, rng=rng)
    # E: Conv2d: 4 groups do not divide in_channels 4 and out_channels 6
    nn.Conv2d(4, 6, 3, groups=4, rng=rng)
    nn.ConvTranspose2d(4, 6, 3, groups=3, rng=rng)  # E: ConvTranspose2d: 3 groups do not divide
    nn.Linear(0, 2, rng=rng)  # E: Linear: in_features must be > 0, got 0
    nn.MaxPool2d(2, padding=2)  # E: MaxPool2d: padding (2, 2) is more than half of the window
    nn.Unfold((2, 0))  # E: Unfold: kernel_size must be > 0, got 0
    nn.MaxPool2d((4, 2), padding=(1, 2))  # E: padding (1, 2) is more than half of
    nn.MaxPool2d((4, 2), padding=(2, 1), dilation=(1, 2))
    nn.Conv2d(4, 6, (3, 0), rng=rng)  # E: Conv2d: kernel_size must be > 0, got 0
    nn.Conv2d(4, 6, 3, 2, "same", rng=rng)  # E: Conv2d: padding="same" keeps the size of the input
    # E: ConvTranspose2d: output_padding (1, 1) must be less than the stride (2, 1) or the dilation
    nn.ConvTranspose2d(4, 6, 3, (2, 1), output_padding=1, rng=rng)
    nn.MaxPool1d(2, padding=2)  # E: MaxPool1d: padding (2,) is more than half of the window (2,)
    nn.MaxPool2d(0).forward(tt.ones((1, 4, 4)))  # E: MaxPool2d: kernel_size must be > 0, got 0
    nn.Linear(3, True, rng=rng)  # E: Linear: out_features must be an int, got True
    nn.DropoutOneIn(0, rng=rng)  # E: DropoutOneIn: n must be > 0, got 0
    nn.Reshape(-2)  # E: Reshape: a size must not be negative, got -2
    nn.MultiHeadAttention(8, 3, key_features=6, value_features=9, rng=rng)
    nn.Conv2d(int("4"), 6, 3, groups=3, rng=rng)
    # E: Conv2d: 4 groups do not divide in_channels ? and out_channels 6
    nn.Conv2d(int("4"), 6, 3, groups=4, rng=rng)


def built() -> None:
    # E: build: MultiHeadAttention: 3 heads do not divide key_features 8 and value_features 8
    tt.build(nn.MultiHeadAttention[L[8], L[3]], rng=rng)
    # E: build: Conv2d: 4 groups do not divide in_channels 4 and out_channels 6
    tt.build(nn.Conv2d[L[4], L[6], L[3], L[1], L[0], L[1], L[4]], rng=rng)
    # E: build: EncoderBlock.self_attn: 3 heads do not divide key_features 8 and value_features 8
    tt.build(nn.EncoderBlock[L[8], L[3], L[16]], rng=rng)
    tt.build(Generous[L[3], L[8]], rng=rng)  # E: build: Generous.attention: 3 heads do not divide
    tt.build(BesideOpen, rng=rng)  # E: build: BesideOpen.layer.layer: the dim Features has no size
    tt.build(Heads, rng=rng)  # E: build: Heads.attention: 3 heads do not divide key_features 8
    # E: build: Linear: out_features must be > 0, got 0
    tt.build(nn.Linear[Div[L[9], L[3]], L[0]], rng=rng)
