"""Convolutions, pooling and stretching of images, as functions and as layers."""

from __future__ import annotations

from typing import Any
from typing import Literal as L

import numpy as np

import tapetensor as tt
from tapetensor import NoneTape, OwnedTape, Tensor1D, Tensor2D, Tensor3D, Tensor4D, nn
from tapetensor.typing import B, M, N, T
from tests.typing.check import assert_type, check

rng = np.random.default_rng(0)
images: Tensor4D[L[2], L[4], L[9], L[8]] = tt.ones((2, 4, 9, 8))
image: Tensor3D[L[4], L[9], L[8]] = tt.ones((4, 9, 8))
doubles: Tensor3D[L[4], L[9], L[8], NoneTape, np.float64] = tt.ones((4, 9, 8), np.float64)
sounds: Tensor3D[L[2], L[4], L[9]] = tt.ones((2, 4, 9))
one: Tensor4D[L[6], L[4], L[1], L[1]] = tt.ones((6, 4, 1, 1))
three: Tensor4D[L[6], L[4], L[3], L[3]] = tt.ones((6, 4, 3, 3))
half: Tensor4D[L[6], L[2], L[3], L[3]] = tt.ones((6, 2, 3, 3))
bias: Tensor1D[L[6]] = tt.ones((6,))

# A kernel that leaves the sizes as they are.
check(assert_type(tt.conv2d(images, one), Tensor4D[L[2], L[6], L[9], L[8]]), (2, 6, 9, 8))
check(assert_type(tt.conv2d(image, three, padding=1), Tensor3D[L[6], L[9], L[8]]), (6, 9, 8))
check(
    assert_type(
        tt.conv2d(image.trace(), three.trace(), padding=1), Tensor3D[L[6], L[9], L[8], OwnedTape]
    ),
    (6, 9, 8),
)
check(
    assert_type(tt.conv2d(image.trace(), three, padding=1), Tensor3D[L[6], L[9], L[8], OwnedTape]),
    (6, 9, 8),
)
check(
    assert_type(tt.conv2d(image, three.trace(), padding=1), Tensor3D[L[6], L[9], L[8], OwnedTape]),
    (6, 9, 8),
)

# Other sizes are open; channels and everything in front are not.
check(assert_type(tt.conv2d(images, three), Tensor4D[L[2], L[6], Any, Any]), (2, 6, 7, 6))
check(
    assert_type(
        tt.conv2d(images.trace(), three, bias, stride=2), Tensor4D[L[2], L[6], Any, Any, OwnedTape]
    ),
    (2, 6, 4, 3),
)
check(
    assert_type(
        tt.conv2d(images, half, bias, stride=(1, 2), padding=(1, 0), groups=2),
        Tensor4D[L[2], L[6], Any, Any],
    ),
    (2, 6, 9, 3),
)
wide: Tensor4D[L[6], L[4], L[3], L[3], NoneTape, np.float64] = three.astype(np.float64)
check(
    assert_type(tt.conv2d(doubles, wide), Tensor3D[L[6], Any, Any, NoneTape, np.float64]), (6, 7, 6)
)
short: Tensor3D[L[6], L[4], L[3]] = tt.ones((6, 4, 3))
check(assert_type(tt.conv1d(sounds, short, padding=1), Tensor3D[L[2], L[6], L[9]]), (2, 6, 9))
check(
    assert_type(tt.conv1d(sounds.trace(), short, stride=2), Tensor3D[L[2], L[6], Any, OwnedTape]),
    (2, 6, 4),
)
back: Tensor3D[L[4], L[6], L[2]] = tt.ones((4, 6, 2))
check(
    assert_type(tt.conv_transpose1d(sounds, back.trace()), Tensor3D[L[2], L[6], Any, OwnedTape]),
    (2, 6, 10),
)
turned: Tensor4D[L[4], L[6], L[2], L[2]] = tt.ones((4, 6, 2, 2))
check(
    assert_type(tt.conv_transpose2d(images, turned, stride=2), Tensor4D[L[2], L[6], Any, Any]),
    (2, 6, 18, 16),
)
check(
    assert_type(
        tt.conv_transpose2d(image, turned.trace(), groups=2), Tensor3D[Any, Any, Any, OwnedTape]
    ),
    (12, 10, 9),
)

# Pooling keeps channels; stretching says the size.
check(assert_type(tt.max_pool2d(images, 2), Tensor4D[L[2], L[4], Any, Any]), (2, 4, 4, 4))
check(
    assert_type(
        tt.avg_pool2d(image.trace(), (3, 2), stride=1), Tensor3D[L[4], Any, Any, OwnedTape]
    ),
    (4, 7, 7),
)
check(
    assert_type(tt.min_pool2d(images, 3, stride=1, padding=1), Tensor4D[L[2], L[4], L[9], L[8]]),
    (2, 4, 9, 8),
)
larger: Tensor2D[L[18], L[16]] = tt.ones((18, 16))
stretched: Tensor3D[L[4], L[18], L[16]] = tt.upscale2d(image, larger.shape)
check(stretched, (4, 18, 16))
traced: Tensor3D[L[4], L[18], L[16], OwnedTape] = tt.upscale2d(image.trace(), larger.shape)
check(traced, (4, 18, 16))
again: Tensor3D[L[4], L[18], L[16], OwnedTape]
again = tt.interpolate(image.trace(), larger.shape, "bicubic", align_corners=True)
check(again, (4, 18, 16))

# Windows as columns, and channels as pixels.
columns = tt.unfold(images.trace(), 3, padding=1)
check(assert_type(columns, Tensor3D[L[2], Any, Any, OwnedTape]), (2, 36, 72))
whole: Tensor3D[Any, L[18], L[16]] = tt.fold(tt.ones((4, 72)), larger.shape, 2, stride=2)
check(whole, (1, 18, 16))
check(assert_type(tt.pixel_shuffle(images, 2), Tensor4D[L[2], Any, Any, Any]), (2, 1, 18, 16))
check(
    assert_type(tt.pixel_unshuffle(image.trace(), 1), Tensor3D[Any, Any, Any, OwnedTape]), (4, 9, 8)
)
check(assert_type(nn.PixelShuffle(2).forward(image), Tensor3D[Any, Any, Any]), (1, 18, 16))

# Layers say the same, by their type arguments.
same = tt.build(nn.Conv2d[L[4], L[6], L[3], L[1], L[1]], rng=rng)
check(assert_type(same.forward(images), Tensor4D[L[2], L[6], L[9], L[8]]), (2, 6, 9, 8))
check(assert_type(same.forward(image.trace()), Tensor3D[L[6], L[9], L[8], OwnedTape]), (6, 9, 8))
assert_type(same.weight, tt.Tensor[tuple[L[6], Any, Any, Any], NoneTape])
kept = tt.build(nn.Conv2d[L[4], L[6], tuple[L[4], L[1]], L[1], L["same"]], rng=rng)
check(assert_type(kept.forward(images), Tensor4D[L[2], L[6], L[9], L[8]]), (2, 6, 9, 8))
tall: nn.Conv2d[L[4], L[6], tuple[L[3], L[1]], tuple[L[2], L[1]], tuple[L[1], L[0]]]
tall = nn.Conv2d(4, 6, (3, 1), (2, 1), (1, 0), rng=rng)
check(assert_type(tall.forward(images), Tensor4D[L[2], L[6], Any, Any]), (2, 6, 5, 8))
evenly: nn.Conv1d[L[4], L[6], L[2], L[1], L["same"]] = nn.Conv1d(4, 6, 2, padding="same", rng=rng)
check(assert_type(evenly.forward(sounds), Tensor3D[L[2], L[6], L[9]]), (2, 6, 9))
strided = tt.build(nn.Conv2d[L[4], L[6], L[3], L[2]], rng=rng)
check(assert_type(strided.forward(images), Tensor4D[L[2], L[6], Any, Any]), (2, 6, 4, 3))
depthwise: nn.Conv2d[L[4], L[4], L[3], L[1], L[1], L[1], L[4]]
depthwise = nn.Conv2d(4, 4, 3, padding=1, groups=4, rng=rng)
check(assert_type(depthwise.forward(images), Tensor4D[L[2], L[4], L[9], L[8]]), (2, 4, 9, 8))
along = tt.build(nn.Conv1d[L[4], L[6], L[5], L[1], L[2]], rng=rng)
check(assert_type(along.forward(sounds), Tensor3D[L[2], L[6], L[9]]), (2, 6, 9))
up = tt.build(nn.ConvTranspose2d[L[4], L[6], L[2], L[2]], rng=rng)
check(assert_type(up.forward(image), Tensor3D[L[6], Any, Any]), (6, 18, 16))
pool = tt.build(nn.MaxPool2d[L[2]], rng=rng)
check(assert_type(pool.forward(images), Tensor4D[L[2], L[4], Any, Any]), (2, 4, 4, 4))
halves: nn.MaxPool2d[tuple[L[2], L[1]]] = nn.MaxPool2d((2, 1))
check(assert_type(halves.forward(images), Tensor4D[L[2], L[4], Any, Any]), (2, 4, 4, 8))
by_window = tt.build(nn.Unfold[tuple[L[3], L[1]]], rng=rng)
check(assert_type(by_window.forward(image), Tensor2D[Any, Any]), (12, 56))
smooth = tt.build(nn.AvgPool2d[L[3], L[1], L[1]], rng=rng)
check(assert_type(smooth.forward(image), Tensor3D[L[4], L[9], L[8]]), (4, 9, 8))
norm = tt.build(nn.BatchNorm2d[L[4]], rng=rng)
check(assert_type(norm.forward(images), Tensor4D[L[2], L[4], L[9], L[8]]), (2, 4, 9, 8))
check(
    assert_type(norm.forward(images.trace()), Tensor4D[L[2], L[4], L[9], L[8], OwnedTape]),
    (2, 4, 9, 8),
)
check(assert_type(norm.forward(image), Tensor3D[L[4], L[9], L[8]]), (4, 9, 8))
shift = tt.build(nn.Bias2d[L[4]], rng=rng)
check(assert_type(shift.forward(image), Tensor3D[L[4], L[9], L[8]]), (4, 9, 8))
check(assert_type(nn.GlobalAvgPool2d().forward(images), Tensor2D[L[2], L[4]]), (2, 4))
large = tt.build(nn.Upscale2d[L[18], L[16]], rng=rng)
check(assert_type(large.forward(images), Tensor4D[L[2], L[4], L[18], L[16]]), (2, 4, 18, 16))
check(assert_type(nn.Flatten().forward(images), Tensor2D[L[2], Any]), (2, 288))


# Generic in the tape and in every size that stays.
def block(
    x: Tensor4D[B, L[4], M, N, T], layer: nn.Conv2d[L[4], L[6], L[3], L[1], L[1]]
) -> Tensor4D[B, L[6], M, N, T]:
    return layer.forward(x).relu()


check(assert_type(block(images, same), Tensor4D[L[2], L[6], L[9], L[8]]), (2, 6, 9, 8))
