"""A UNet, typed: down to a quarter of the image and up again, with what was seen on the way down.

Source: Ronneberger, Fischer & Brox (2015), "U-Net: convolutional networks for biomedical image
segmentation". Two levels down by max pooling and two up by transposed convolution; on each level
the image of the way down joins the one of the way up. The convolutions are padded, so that
the output is as large as the input, and there is a batch norm behind each.

Run ``mypy --strict examples/models/unet.py`` and then ``python examples/models/unet.py``.
"""

from __future__ import annotations

from typing import Generic
from typing import Literal as L

import numpy as np

import tapetensor as tt
from tapetensor import Tensor4D, losses, nn, optim
from tapetensor.typing import B, K, M, N, P, T


class DoubleConv(nn.Module, Generic[K, P]):
    """Two convolutions, each with a batch norm and a relu, that keep the size of the image."""

    first: nn.Conv2d[K, P, L[3], L[1], L[1]] = nn.options(bias=False)
    first_norm: nn.BatchNorm2d[P]
    second: nn.Conv2d[P, P, L[3], L[1], L[1]] = nn.options(bias=False)
    second_norm: nn.BatchNorm2d[P]

    def forward(self, x: Tensor4D[B, K, M, N, T]) -> Tensor4D[B, P, M, N, T]:
        """Return `P` features of every pixel."""
        hidden = self.first_norm.forward(self.first.forward(x)).relu()
        return self.second_norm.forward(self.second.forward(hidden)).relu()


class UNet(nn.Module):
    """A logit per pixel: does it belong to what is looked for?"""

    down_1: DoubleConv[L[1], L[8]]
    down_2: DoubleConv[L[8], L[16]]
    bottom: DoubleConv[L[16], L[32]]
    halve: nn.MaxPool2d[L[2]]
    up_2: nn.ConvTranspose2d[L[32], L[16], L[2], L[2]]
    join_2: DoubleConv[L[32], L[16]]
    up_1: nn.ConvTranspose2d[L[16], L[8], L[2], L[2]]
    join_1: DoubleConv[L[16], L[8]]
    head: nn.Conv2d[L[8], L[1], L[1]]

    def forward(self, x: Tensor4D[B, L[1], L[16], L[16], T]) -> Tensor4D[B, L[1], L[16], L[16], T]:
        """Return one logit per pixel."""
        wide = self.down_1.forward(x)
        half = self.down_2.forward(self.halve.forward(wide))
        quarter = self.bottom.forward(self.halve.forward(half))
        half_again = tt.concat((half, self.up_2.forward(quarter)), axis=1)
        rising = self.up_1.forward(self.join_2.forward(half_again))
        wide_again = tt.concat((wide, rising), axis=1)
        return self.head.forward(self.join_1.forward(wide_again))


def train_step(
    model: UNet,
    optimizer: optim.AdamW,
    images: Tensor4D[B, L[1], L[16], L[16]],
    masks: Tensor4D[B, L[1], L[16], L[16]],
) -> float:
    """Train on one batch; return the loss before the step."""
    logits = model.forward(images.trace())
    loss = losses.binary_cross_entropy_with_logits(logits, masks)
    optimizer.step(loss.backward(wrt=model))
    return loss.item()


def main() -> None:
    """Find bright squares in noise."""
    rng = np.random.default_rng(0)
    model = tt.build(UNet, rng=rng)
    optimizer = optim.AdamW(model, lr=1e-2)
    squares = np.zeros((8, 1, 16, 16), np.float32)
    places = rng.integers(2, 9, size=(8, 2)).tolist()
    for square, (top, left) in zip(squares, places, strict=True):
        square[:, top : top + 5, left : left + 5] = 1.0
    noisy = squares + rng.normal(0.0, 0.5, squares.shape).astype(np.float32)
    images: Tensor4D[L[8], L[1], L[16], L[16]] = tt.from_numpy(noisy, (8, 1, 16, 16))
    masks: Tensor4D[L[8], L[1], L[16], L[16]] = tt.from_numpy(squares, (8, 1, 16, 16))
    curve = [train_step(model, optimizer, images, masks) for _ in range(30)]
    found = (model.forward(images) > 0.0) == (masks > 0.5)
    share = found.astype(np.float32).mean().item()
    print(f"UNet: loss {curve[0]:.3f} at first, {curve[-1]:.3f} after {len(curve)} steps")
    print(f"in inference it is right about {share:.1%} of the pixels")


if __name__ == "__main__":
    main()
