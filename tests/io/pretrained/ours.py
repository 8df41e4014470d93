"""The same two models here, and what becomes of the names."""

from __future__ import annotations

from typing import Any
from typing import Literal as L

import numpy as np

import tapetensor as tt
from tapetensor import io, nn
from tests.io.models import Array


class Mlp(nn.Module):
    c_fc: nn.Linear[L[8], L[32]]
    c_proj: nn.Linear[L[32], L[8]]

    def forward(self, x: Any) -> Any:
        return self.c_proj.forward(self.c_fc.forward(x).gelu("tanh"))


class Gpt2Block(nn.Module):
    ln_1: nn.LayerNorm[L[8]]
    attn: nn.MultiHeadAttention[L[8], L[2]]
    ln_2: nn.LayerNorm[L[8]]
    mlp: Mlp

    def forward(self, x: Any) -> Any:
        x = self.attn.forward(self.ln_1.forward(x), causal=True) + x
        return self.mlp.forward(self.ln_2.forward(x)) + x


class Gpt2(nn.Module):
    wte: nn.Embedding[L[11], L[8]]
    wpe: nn.Embedding[L[6], L[8]]
    h: list[Gpt2Block] = nn.repeat(2)
    ln_f: nn.LayerNorm[L[8]]

    def forward(self, ids: Any) -> Any:
        places = self.wpe.forward(tt.arange(ids.shape[1]).retaped(ids.tape_type))
        x: Any = self.wte.forward(ids) + places
        for block in self.h:
            x = block.forward(x)
        return self.ln_f.forward(x) @ self.wte.weight.retaped(x.tape_type).transpose()


class BasicBlock(nn.Module):
    first: nn.Conv2d[L[4], L[4], L[3], L[1], L[1]] = nn.options(bias=False)
    first_norm: nn.BatchNorm2d[L[4]]
    second: nn.Conv2d[L[4], L[4], L[3], L[1], L[1]] = nn.options(bias=False)
    second_norm: nn.BatchNorm2d[L[4]]

    def forward(self, x: Any) -> Any:
        y: Any = self.first_norm.forward(self.first.forward(x)).relu()
        return (self.second_norm.forward(self.second.forward(y)) + x).relu()


class DownBlock(nn.Module):
    first: nn.Conv2d[L[4], L[8], L[3], L[2], L[1]] = nn.options(bias=False)
    first_norm: nn.BatchNorm2d[L[8]]
    second: nn.Conv2d[L[8], L[8], L[3], L[1], L[1]] = nn.options(bias=False)
    second_norm: nn.BatchNorm2d[L[8]]
    shortcut: nn.Conv2d[L[4], L[8], L[1], L[2]] = nn.options(bias=False)
    shortcut_norm: nn.BatchNorm2d[L[8]]

    def forward(self, x: Any) -> Any:
        y: Any = self.first_norm.forward(self.first.forward(x)).relu()
        y = self.second_norm.forward(self.second.forward(y))
        return (y + self.shortcut_norm.forward(self.shortcut.forward(x))).relu()


class ResNet(nn.Module):
    stem: nn.Conv2d[L[3], L[4], L[7], L[2], L[3]] = nn.options(bias=False)
    stem_norm: nn.BatchNorm2d[L[4]]
    pool: nn.MaxPool2d[L[3], L[2], L[1]]
    stage_1: tuple[BasicBlock]
    stage_2: tuple[DownBlock]
    head: nn.Linear[L[8], L[5]]

    def forward(self, x: Any) -> Any:
        y: Any = self.pool.forward(self.stem_norm.forward(self.stem.forward(x)).relu())
        y = self.stage_2[0].forward(self.stage_1[0].forward(y)).mean(axis=(2, 3))
        return self.head.forward(y)


# Ours by theirs, first for whole names, then for parts.
_PARTS = {
    "ResNet": {
        "layer1": "stage_1", "layer2": "stage_2",
        "downsample.0": "shortcut", "downsample.1": "shortcut_norm",
        ".conv1": ".first", ".bn1": ".first_norm", ".conv2": ".second", ".bn2": ".second_norm",
        "conv1": "stem", "bn1": "stem_norm", "fc": "head",
    },
    "Gpt2": {"transformer.": "", "attn.c_attn.": "attn.in_proj_", "attn.c_proj": "attn.out_proj"},
}  # fmt: skip


def ours(kind: str, name: str) -> str:
    """Return our name for one of theirs."""
    for theirs, one in _PARTS[kind].items():
        name = name.replace(theirs, one)
    return name


def theirs(kind: str, name: str) -> str:
    """Return their name for one of ours."""
    for their, one in reversed(_PARTS[kind].items()):
        name = name.replace(one, their) if one else their + name
    return name


def turned(kind: str, arrays: dict[str, Array]) -> dict[str, Array]:
    """Return the arrays with the weights of ``Conv1D`` the other way round."""
    return {
        name: array.T if kind == "Gpt2" and "c_" in name and array.ndim == 2 else array
        for name, array in arrays.items()
    }


def build(kind: str, seed: int = 0) -> Any:
    return tt.build({"Gpt2": Gpt2, "ResNet": ResNet}[kind], rng=np.random.default_rng(seed))


def in_their_names(kind: str, model: Any) -> dict[str, Array]:
    """Return the state of a model of ours as PyTorch has it."""
    state = io.state_dict(model, for_pytorch=True)
    return turned(kind, {theirs(kind, name): array for name, array in state.items()})
