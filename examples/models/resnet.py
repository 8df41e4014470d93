"""A residual network, typed: stages of blocks that halve the image and widen the channels.

Source: He, Zhang, Ren & Sun (2016), "Deep residual learning for image recognition". A stem, three
stages of two basic blocks (two 3 x 3 convolutions with batch norm beside a shortcut), a global mean
and a linear layer: the shape of ResNet-18, small enough to train on a laptop. The first block of
a later stage strides by 2, and so does its shortcut.

Run ``mypy --strict examples/models/resnet.py`` and then ``python examples/models/resnet.py``.
"""

from __future__ import annotations

from typing import Generic
from typing import Literal as L

import numpy as np

import tapetensor as tt
from tapetensor import NoneTape, Tensor1D, Tensor2D, Tensor4D, losses, nn, optim
from tapetensor.typing import B, K, M, N, P, T


class Block(nn.Module, Generic[K]):
    """Two convolutions that keep all sizes, beside the input itself."""

    first: nn.Conv2d[K, K, L[3], L[1], L[1]] = nn.options(bias=False)
    first_norm: nn.BatchNorm2d[K]
    second: nn.Conv2d[K, K, L[3], L[1], L[1]] = nn.options(bias=False)
    second_norm: nn.BatchNorm2d[K]

    def forward(self, x: Tensor4D[B, K, M, N, T]) -> Tensor4D[B, K, M, N, T]:
        """Return `x` with what both convolutions add."""
        hidden = self.first_norm.forward(self.first.forward(x)).relu()
        return (self.second_norm.forward(self.second.forward(hidden)) + x).relu()


class DownBlock(nn.Module, Generic[K, P, M, N]):
    """Two convolutions that halve the image, beside a strided projection of the input.

    The sides of the image before and after are type arguments too, so that plain mypy, to which
    nothing is half of another, compares them: ``DownBlock[L[8], L[16], L[16], L[8]]`` takes 8
    channels of 16 x 16 pixels to 16 channels of 8 x 8.
    """

    first: nn.Conv2d[K, P, L[3], L[2], L[1]] = nn.options(bias=False)
    first_norm: nn.BatchNorm2d[P]
    second: nn.Conv2d[P, P, L[3], L[1], L[1]] = nn.options(bias=False)
    second_norm: nn.BatchNorm2d[P]
    shortcut: nn.Conv2d[K, P, L[1], L[2]] = nn.options(bias=False)
    shortcut_norm: nn.BatchNorm2d[P]

    def forward(self, x: Tensor4D[B, K, M, M, T]) -> Tensor4D[B, P, N, N, T]:
        """Return half as large an image with other channels."""
        hidden = self.first_norm.forward(self.first.forward(x)).relu()
        added = self.second_norm.forward(self.second.forward(hidden))
        return (added + self.shortcut_norm.forward(self.shortcut.forward(x))).relu()


class ResNet(nn.Module):
    """The logits of ten classes for images of 16 x 16 pixels."""

    stem: nn.Conv2d[L[3], L[8], L[3], L[1], L[1]] = nn.options(bias=False)
    stem_norm: nn.BatchNorm2d[L[8]]
    stage_1: tuple[Block[L[8]], Block[L[8]]]
    stage_2: tuple[DownBlock[L[8], L[16], L[16], L[8]], Block[L[16]]]
    stage_3: tuple[DownBlock[L[16], L[32], L[8], L[4]], Block[L[32]]]
    mean: nn.GlobalAvgPool2d
    head: nn.Linear[L[32], L[10]]

    def forward(self, x: Tensor4D[B, L[3], L[16], L[16], T]) -> Tensor2D[B, L[10], T]:
        """Return one score per class."""
        large = self.stem_norm.forward(self.stem.forward(x)).relu()
        for block in self.stage_1:
            large = block.forward(large)
        shrink, refine = self.stage_2
        medium = refine.forward(shrink.forward(large))
        shrink_again, refine_again = self.stage_3
        small = refine_again.forward(shrink_again.forward(medium))
        return self.head.forward(self.mean.forward(small))


def train_step(
    model: ResNet,
    optimizer: optim.AdamW,
    images: Tensor4D[B, L[3], L[16], L[16]],
    labels: Tensor1D[B, NoneTape, np.int64],
) -> float:
    """Train on one batch; return the loss before the step."""
    loss = losses.cross_entropy(model.forward(images.trace()), labels)
    optimizer.step(loss.backward(wrt=model))
    return loss.item()


def main() -> None:
    """Learn the classes of a batch of random images by heart."""
    rng = np.random.default_rng(0)
    model = tt.build(ResNet, rng=rng)
    optimizer = optim.AdamW(model, lr=3e-3)
    images: Tensor4D[L[16], L[3], L[16], L[16]] = tt.normal((16, 3, 16, 16), rng=rng)
    labels: Tensor1D[L[16], NoneTape, np.int64] = tt.from_numpy(rng.integers(10, size=16), (16,))
    curve = [train_step(model, optimizer, images, labels) for _ in range(20)]
    right = model.forward(images).argmax(-1) == labels
    share = right.astype(np.float32).mean().item()
    print(f"ResNet: loss {curve[0]:.3f} at first, {curve[-1]:.3f} after {len(curve)} steps")
    print(f"in inference it knows {share:.0%} of the images")


if __name__ == "__main__":
    main()
