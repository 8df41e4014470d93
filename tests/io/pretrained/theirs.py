"""GPT-2 and a ResNet in plain PyTorch, with the names of transformers and torchvision, and small.

    python -m tests.io.pretrained.theirs

writes the files beside this one: random weights, and what PyTorch computes and learns with them.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import save_file
from torch import nn

HERE = Path(__file__).parent
STEPS = 3
RATE = 0.05
CHANNELS, HEADS, LAYERS, VOCABULARY, CONTEXT = 8, 2, 2, 11, 6


class Conv1D(nn.Module):  # type: ignore[misc]  # PyTorch is not there for mypy
    """transformers' linear layer, which has its weight the other way round."""

    def __init__(self, out: int, features: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(features, out) * 0.3)
        self.bias = nn.Parameter(torch.randn(out) * 0.1)

    def forward(self, x: Any) -> Any:
        return x @ self.weight + self.bias


class Attention(nn.Module):  # type: ignore[misc]  # PyTorch is not there for mypy
    def __init__(self) -> None:
        super().__init__()
        self.c_attn = Conv1D(3 * CHANNELS, CHANNELS)
        self.c_proj = Conv1D(CHANNELS, CHANNELS)

    def forward(self, x: Any) -> Any:
        parts = self.c_attn(x).split(CHANNELS, dim=-1)
        heads = [one.unflatten(-1, (HEADS, -1)).transpose(1, 2) for one in parts]
        seen = nn.functional.scaled_dot_product_attention(*heads, is_causal=True)
        return self.c_proj(seen.transpose(1, 2).flatten(-2))


class Mlp(nn.Module):  # type: ignore[misc]  # PyTorch is not there for mypy
    def __init__(self) -> None:
        super().__init__()
        self.c_fc = Conv1D(4 * CHANNELS, CHANNELS)
        self.c_proj = Conv1D(CHANNELS, 4 * CHANNELS)

    def forward(self, x: Any) -> Any:
        return self.c_proj(nn.functional.gelu(self.c_fc(x), approximate="tanh"))


class Gpt2Block(nn.Module):  # type: ignore[misc]  # PyTorch is not there for mypy
    def __init__(self) -> None:
        super().__init__()
        self.ln_1 = nn.LayerNorm(CHANNELS)
        self.attn = Attention()
        self.ln_2 = nn.LayerNorm(CHANNELS)
        self.mlp = Mlp()

    def forward(self, x: Any) -> Any:
        x = x + self.attn(self.ln_1(x))
        return x + self.mlp(self.ln_2(x))


class Gpt2(nn.Module):  # type: ignore[misc]  # PyTorch is not there for mypy
    """``GPT2LMHeadModel``."""

    def __init__(self) -> None:
        super().__init__()
        body = {
            "wte": nn.Embedding(VOCABULARY, CHANNELS),
            "wpe": nn.Embedding(CONTEXT, CHANNELS),
            "h": nn.ModuleList([Gpt2Block() for _ in range(LAYERS)]),
            "ln_f": nn.LayerNorm(CHANNELS),
        }
        self.transformer = nn.ModuleDict(body)
        self.lm_head = nn.Linear(CHANNELS, VOCABULARY, bias=False)
        self.lm_head.weight = self.transformer["wte"].weight

    def forward(self, ids: Any) -> Any:
        body = self.transformer
        x = body["wte"](ids) + body["wpe"](torch.arange(ids.shape[1]))
        for block in body["h"]:
            x = block(x)
        return self.lm_head(body["ln_f"](x))


class BasicBlock(nn.Module):  # type: ignore[misc]  # PyTorch is not there for mypy
    def __init__(self, channels: int, out: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(channels, out, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(out)
        self.conv2 = nn.Conv2d(out, out, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(out)
        self.downsample = None
        if stride > 1:
            projection = nn.Conv2d(channels, out, 1, stride, bias=False)
            self.downsample = nn.Sequential(projection, nn.BatchNorm2d(out))

    def forward(self, x: Any) -> Any:
        y = self.bn2(self.conv2(self.bn1(self.conv1(x)).relu()))
        return (y + (x if self.downsample is None else self.downsample(x))).relu()


class ResNet(nn.Module):  # type: ignore[misc]  # PyTorch is not there for mypy
    """``torchvision.models.resnet``, with two stages of one block."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(3, 4, 7, 2, 3, bias=False)
        self.bn1 = nn.BatchNorm2d(4)
        self.maxpool = nn.MaxPool2d(3, 2, 1)
        self.layer1 = nn.Sequential(BasicBlock(4, 4, 1))
        self.layer2 = nn.Sequential(BasicBlock(4, 8, 2))
        self.fc = nn.Linear(8, 5)

    def forward(self, x: Any) -> Any:
        x = self.maxpool(self.bn1(self.conv1(x)).relu())
        return self.fc(self.layer2(self.layer1(x)).mean((2, 3)))


def write(kind: type, seed: int, folder: Path) -> None:
    """Write a model as safetensors, and as .npz what it computes, and learns in a few steps."""
    torch.manual_seed(seed)
    model: Any = kind()
    if kind is Gpt2:
        inputs = torch.randint(VOCABULARY, (3, CONTEXT))
        labels = torch.randint(VOCABULARY, (3, CONTEXT))
    else:
        inputs, labels = torch.randn(4, 3, 16, 16), torch.randint(5, (4,))
        # So that the statistics are not those of a new layer.
        with torch.no_grad():
            model(torch.randn(8, 3, 16, 16))
    model.eval()
    state = {name: one.clone() for name, one in model.state_dict().items()}
    save_file(state, str(folder / f"{kind.__name__.lower()}.safetensors"))
    found = {"inputs": inputs, "labels": labels, "outputs": model(inputs).detach()}
    model.train()
    optimizer = torch.optim.SGD(model.parameters(), lr=RATE)
    losses = []
    for _ in range(STEPS):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(inputs).flatten(0, -2), labels.flatten())
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    found["tuned"] = model.eval()(inputs).detach()
    arrays = {name: one.numpy() for name, one in found.items()}
    arrays["losses"] = np.array(losses, np.float32)
    np.savez_compressed(folder / f"{kind.__name__.lower()}.npz", **arrays)


if __name__ == "__main__":
    for one in (Gpt2, ResNet):
        write(one, 1, HERE)
