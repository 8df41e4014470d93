"""A training step of ResNet-18 on images of 32 x 32 pixels with momentum, by the batch.

python -m benchmarks.scale.resnet --sizes 16 32 64
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.scale.turns import Growth, Step, main

WIDTHS = (64, 128, 256, 512)
CLASSES = 10
LEARNING_RATE = 1e-3


def _data(batch: int) -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    images = rng.standard_normal((batch, 3, 32, 32), dtype=np.float32)
    return images, rng.integers(CLASSES, size=batch)


def _step(batch: int) -> Callable[[], Any]:
    import tapetensor as tt
    from tapetensor import losses, nn, optim

    rng = np.random.default_rng(1)

    def convolution(channels: int, width: int, stride: int, kernel: int = 3) -> Any:
        layer: Any = nn.Conv2d
        options = {"stride": stride, "padding": kernel // 2, "bias": False}
        return layer(channels, width, kernel, **options, rng=rng)

    class Block(nn.Module):
        first: Any
        first_norm: nn.BatchNorm2d[int]
        second: Any
        second_norm: nn.BatchNorm2d[int]
        shortcut: list[Any]

        def forward(self, x: Any) -> Any:
            y = self.first_norm.forward(self.first.forward(x)).relu()
            y = self.second_norm.forward(self.second.forward(y))
            for layer in self.shortcut:
                x = layer.forward(x)
            return (y + x).relu()

    def block(channels: int, width: int, stride: int) -> Block:
        is_same = stride == 1 and channels == width
        shortcut = [convolution(channels, width, stride, 1), nn.BatchNorm2d(width)]
        return Block(
            first=convolution(channels, width, stride),
            first_norm=nn.BatchNorm2d(width),
            second=convolution(width, width, 1),
            second_norm=nn.BatchNorm2d(width),
            shortcut=[] if is_same else shortcut,
        )

    class ResNet(nn.Module):
        stem: Any
        stem_norm: nn.BatchNorm2d[int]
        blocks: list[Block]
        head: nn.Linear[int, int]

        def forward(self, x: Any) -> Any:
            x = self.stem_norm.forward(self.stem.forward(x)).relu()
            for one in self.blocks:
                x = one.forward(x)
            return self.head.forward(x.mean(axis=(2, 3)))

    before = (WIDTHS[0], *WIDTHS[:-1])
    stages = [
        (block(channels, width, 1 if width == WIDTHS[0] else 2), block(width, width, 1))
        for channels, width in zip(before, WIDTHS, strict=True)
    ]
    model: Any = ResNet(
        stem=convolution(3, WIDTHS[0], 1),
        stem_norm=nn.BatchNorm2d(WIDTHS[0]),
        blocks=[one for stage in stages for one in stage],
        head=nn.Linear(WIDTHS[-1], CLASSES, rng=rng),
    )
    optimizer = optim.Sgd(model, lr=LEARNING_RATE, momentum=0.9)
    images, labels = [tt.from_numpy(one) for one in _data(batch)]

    def step() -> Any:
        loss = losses.cross_entropy(model.forward(images.trace()), labels)
        optimizer.step(loss.backward(wrt=model))
        return loss.item()

    return step


def eager(batch: int) -> Step:
    """Return a step of tapetensor."""
    return _step(batch)


def compiled(batch: int) -> Step:
    """Return a compiled step of tapetensor."""
    import tapetensor as tt

    return tt.compile(_step(batch))


def theirs(batch: int) -> Step:
    """Return a step of PyTorch."""
    import torch
    from torch import nn
    from torch.nn import functional

    def convolution(channels: int, width: int, stride: int, kernel: int = 3) -> Any:
        return nn.Conv2d(channels, width, kernel, stride=stride, padding=kernel // 2, bias=False)

    class Block(nn.Module):  # type: ignore[misc]  # PyTorch is not checked
        def __init__(self, channels: int, width: int, stride: int) -> None:
            super().__init__()
            self.first = convolution(channels, width, stride)
            self.second = convolution(width, width, 1)
            self.first_norm, self.second_norm = nn.BatchNorm2d(width), nn.BatchNorm2d(width)
            self.shortcut = nn.Identity()
            if stride != 1 or channels != width:
                shortcut = convolution(channels, width, stride, 1)
                self.shortcut = nn.Sequential(shortcut, nn.BatchNorm2d(width))

        def forward(self, x: Any) -> Any:
            y = torch.relu(self.first_norm(self.first(x)))
            return torch.relu(self.second_norm(self.second(y)) + self.shortcut(x))

    before = (WIDTHS[0], *WIDTHS[:-1])
    stages = [
        (Block(channels, width, 1 if width == WIDTHS[0] else 2), Block(width, width, 1))
        for channels, width in zip(before, WIDTHS, strict=True)
    ]
    model = nn.Sequential(
        convolution(3, WIDTHS[0], 1),
        nn.BatchNorm2d(WIDTHS[0]),
        nn.ReLU(),
        *[one for stage in stages for one in stage],
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(WIDTHS[-1], CLASSES),
    )
    optimizer = torch.optim.SGD(model.parameters(), lr=LEARNING_RATE, momentum=0.9)
    images, labels = [torch.from_numpy(one) for one in _data(batch)]

    def step() -> Any:
        optimizer.zero_grad()
        loss = functional.cross_entropy(model(images), labels)
        loss.backward()
        optimizer.step()
        return loss.item()

    return step


if __name__ == "__main__":
    main(
        Growth(
            "ResNet-18 on 32 x 32 pixels, a training step, by the batch",
            {"tapetensor": eager, "compiled": compiled, "torch": theirs},
            (16, 32, 64),
            1,
        )
    )
