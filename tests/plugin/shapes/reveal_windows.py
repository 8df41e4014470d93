"""Convolutions, pooling and stretching: the sizes of images, beyond the table of ops."""

from __future__ import annotations

from typing import Any, Generic
from typing import Literal as L

import numpy as np
from typing_extensions import override

import tapetensor as tt
from tapetensor import NoneTape, OwnedTape, Tensor2D, Tensor3D, Tensor4D, nn
from tapetensor.typing import B, Div, K, M, Mul, N, P, Sub, T
from tests.typing.check import assert_type, check

rng = np.random.default_rng(0)
images = tt.ones((2, 4, 9, 8))
image = tt.ones((4, 9, 8))
doubles = tt.ones((2, 4, 9, 8), np.float64)
sounds = tt.ones((2, 4, 9))

strided = tt.conv2d(images.trace(), tt.ones((6, 4, 3, 3)), stride=2, padding=1)
check(assert_type(strided, Tensor4D[L[2], L[6], L[5], L[4], OwnedTape]), (2, 6, 5, 4))
by_weight = tt.conv2d(doubles, tt.ones((6, 4, 9, 8), np.float64).trace())
check(assert_type(by_weight, Tensor4D[L[2], L[6], L[1], L[1], OwnedTape, np.float64]), (2, 6, 1, 1))
pooled = tt.max_pool2d(doubles, 2, stride=1, dilation=3)
check(assert_type(pooled, Tensor4D[L[2], L[4], L[6], L[5], NoneTape, np.float64]), (2, 4, 6, 5))
folded = tt.fold(tt.ones((2, 8, 20)).trace(), (5, 6), 2)
check(assert_type(folded, Tensor4D[L[2], L[2], L[5], L[6], OwnedTape]), (2, 2, 5, 6))
check(assert_type(nn.PixelShuffle(2)(image), Tensor3D[L[1], L[18], L[16]]), (1, 18, 16))
halves = nn.PixelUnshuffle(2)(tt.ones((3, 4, 6)))
check(assert_type(halves, Tensor3D[L[12], L[2], L[3]]), (12, 2, 3))

# Layers, made by a call or by `build`, called as functions too.
conv = nn.Conv2d(4, 6, 3, stride=2, padding=1, rng=rng)
check(
    assert_type(conv.forward(images.trace()), Tensor4D[L[2], L[6], L[5], L[4], OwnedTape]),
    (2, 6, 5, 4),
)
check(assert_type(conv(image), Tensor3D[L[6], L[5], L[4]]), (6, 5, 4))
depthwise = tt.build(nn.Conv2d[L[4], L[4], L[3], L[1], L[0], L[2], L[4], np.float64], rng=rng)
check(
    assert_type(depthwise(doubles), Tensor4D[L[2], L[4], L[5], L[4], NoneTape, np.float64]),
    (2, 4, 5, 4),
)
check(
    assert_type(nn.Conv1d(4, 6, 3, padding=2, rng=rng)(sounds), Tensor3D[L[2], L[6], L[11]]),
    (2, 6, 11),
)
longer_by = nn.ConvTranspose1d(4, 6, 2, stride=2, rng=rng)
check(assert_type(longer_by(sounds), Tensor3D[L[2], L[6], L[18]]), (2, 6, 18))
up = nn.ConvTranspose2d(4, 6, 2, stride=2, rng=rng)
check(assert_type(up(images), Tensor4D[L[2], L[6], L[18], L[16]]), (2, 6, 18, 16))
tall = nn.Conv2d(4, 6, (3, 1), (2, 1), (1, 0), rng=rng)
check(assert_type(tall(images), Tensor4D[L[2], L[6], L[5], L[8]]), (2, 6, 5, 8))
apart = nn.Conv2d(4, 6, (2, 3), padding=1, dilation=(3, 2), rng=rng)
check(assert_type(apart(images), Tensor4D[L[2], L[6], L[8], L[6]]), (2, 6, 8, 6))
kept = nn.Conv2d(4, 6, (4, 2), padding="same", rng=rng)
check(assert_type(kept(images.trace()), Tensor4D[L[2], L[6], L[9], L[8], OwnedTape]), (2, 6, 9, 8))
check(
    assert_type(nn.Conv1d(4, 6, 4, padding="same", rng=rng)(sounds), Tensor3D[L[2], L[6], L[9]]),
    (2, 6, 9),
)
taller = nn.ConvTranspose2d(4, 6, (3, 2), (2, 1), (1, 0), (1, 0), rng=rng)
check(assert_type(taller(images), Tensor4D[L[2], L[6], L[18], L[9]]), (2, 6, 18, 9))
rows = nn.MaxPool2d((2, 1))
check(assert_type(rows(images), Tensor4D[L[2], L[4], L[4], L[8]]), (2, 4, 4, 8))
sparse = nn.MinPool2d(2, (1, 2), dilation=(3, 1))
check(assert_type(sparse(images), Tensor4D[L[2], L[4], L[6], L[4]]), (2, 4, 6, 4))
by_window = nn.Unfold((3, 2), stride=(2, 1), padding=(1, 0))
check(assert_type(by_window(images), Tensor3D[L[2], L[24], L[35]]), (2, 24, 35))
pool = nn.MaxPool2d(2)
assert_type(pool, nn.MaxPool2d[L[2], L[2], L[0]])
check(assert_type(pool(images), Tensor4D[L[2], L[4], L[4], L[4]]), (2, 4, 4, 4))
overlap = nn.AvgPool2d(3, 2, 1)
check(assert_type(overlap(images), Tensor4D[L[2], L[4], L[5], L[4]]), (2, 4, 5, 4))
check(
    assert_type(nn.MinPool2d(3, stride=1)(images), Tensor4D[L[2], L[4], L[7], L[6]]), (2, 4, 7, 6)
)
check(assert_type(nn.Upscale2d(9, 16)(images), Tensor4D[L[2], L[4], L[9], L[16]]), (2, 4, 9, 16))
check(assert_type(nn.Upscale2dBy(3)(images), Tensor4D[L[2], L[4], L[27], L[24]]), (2, 4, 27, 24))
check(assert_type(nn.Flatten()(images), Tensor2D[L[2], L[288]]), (2, 288))
network = nn.Sequential(
    nn.Conv2d(4, 6, 3, padding=1, rng=rng),
    nn.ReLU(),
    nn.MaxPool2d(2),
    nn.Flatten(),
    nn.Linear(96, 10, rng=rng),
)
check(assert_type(network(images.trace()), Tensor2D[L[2], L[10], OwnedTape]), (2, 10))


# Names stay names where a window moves one by one, and are divided where it leaps.
def same(x: Tensor4D[B, L[4], M, N, T], layer: nn.Conv2d[L[4], L[6], L[7], L[1], L[3]]) -> object:
    return assert_type(layer.forward(x), Tensor4D[B, L[6], M, N, T])


def kept_names(
    x: Tensor4D[B, L[4], M, N, T], layer: nn.Conv2d[L[4], L[6], L[4], L[1], L["same"]]
) -> Tensor4D[B, L[6], M, N, T]:
    return assert_type(layer.forward(x), Tensor4D[B, L[6], M, N, T])


def halved(x: Tensor4D[B, L[4], M, N, T]) -> Tensor4D[B, L[4], Div[M, L[2]], Div[N, L[2]], T]:
    return assert_type(tt.max_pool2d(x, 2), Tensor4D[B, L[4], Div[M, L[2]], Div[N, L[2]], T])


def rounded(x: Tensor4D[B, L[4], M, N, T]) -> Tensor4D[B, L[4], Div[M, L[2]], Div[N, L[2]], T]:
    found = tt.max_pool2d(x, 3, stride=2, padding=1)
    return assert_type(found, Tensor4D[B, L[4], Div[M, L[2]], Div[N, L[2]], T])


Halves = Tensor3D[B, L[6], M, T]


def less(x: Tensor4D[B, L[4], M, N, T]) -> Tensor4D[B, L[4], Any, Any, T]:
    # One less than half of an even size, and half of one less than an odd one.
    return assert_type(tt.max_pool2d(x, 3, stride=2), Tensor4D[B, L[4], Any, Any, T])


def whole(x: Tensor3D[B, L[4], Mul[M, L[2]], T]) -> Tensor3D[B, L[6], Sub[M, L[1]], T]:
    layer = nn.Conv1d(4, 6, 3, 2, rng=rng)
    return assert_type(layer.forward(x), Tensor3D[B, L[6], Sub[M, L[1]], T])


def of_its_own(
    x: Tensor3D[B, L[4], M, T], pool: nn.Conv1d[L[4], L[6], L[2], L[2]]
) -> Halves[B, N, T]:
    # It has a name of its own for what it returns, which no computed size would fit.
    return assert_type(pool.forward(x), Tensor3D[B, L[6], Any, T])


class Down(nn.Module, Generic[M, N]):
    """Its names are those of its layer, which makes what has them."""

    layer: nn.Conv2d[M, N, L[3], L[2], L[1]]

    def forward(self, x: Tensor4D[B, M, K, P, T]) -> Tensor4D[B, N, Div[K, L[2]], Div[P, L[2]], T]:
        y = self.layer.forward(x)
        return assert_type(y, Tensor4D[B, N, Div[K, L[2]], Div[P, L[2]], T])


class Deeper(Down[M, N]):
    @override
    def forward(self, x: Tensor4D[B, M, K, P, T]) -> Tensor4D[B, N, Div[K, L[2]], Div[P, L[2]], T]:
        y = self.layer.forward(x)
        return assert_type(y, Tensor4D[B, N, Div[K, L[2]], Div[P, L[2]], T]).relu()


class Within(nn.Module, Generic[M, N]):
    layers: nn.Sequential[nn.Conv2d[M, N, L[3], L[2], L[1]], nn.ReLU]

    def forward(self, x: Tensor4D[B, M, K, P, T]) -> Tensor4D[B, N, Div[K, L[2]], Div[P, L[2]], T]:
        y = self.layers.forward(x)
        return assert_type(y, Tensor4D[B, N, Div[K, L[2]], Div[P, L[2]], T])


class Flat(nn.Module, Generic[M, N]):
    """The name of what it returns is what a layer takes, which plain typing cannot compute."""

    layer: nn.Conv2d[L[4], L[6], L[2], L[2]]
    out: nn.Linear[N, L[10]]

    def features(self, x: Tensor4D[B, L[4], M, M, T]) -> Tensor2D[B, N, T]:
        y = assert_type(self.layer.forward(x), Tensor4D[B, L[6], Any, Any, T])
        return assert_type(nn.Flatten().forward(y), Tensor2D[B, Any, T])


class Smaller(nn.Module, Generic[M, N]):
    """It has a name of its own for what it returns, as of_its_own has, and a module of its kind."""

    layer: nn.Conv1d[L[4], L[6], L[2], L[2]]
    inner: list[Smaller[M, N]]

    def forward(self, x: Tensor3D[B, L[4], M, T]) -> Tensor3D[B, L[6], N, T]:
        return assert_type(self.layer.forward(x), Tensor3D[B, L[6], Any, T])


def spread(
    x: Tensor3D[B, L[4], M, T], layer: nn.Conv1d[L[4], L[6], L[3], L[1], N, N]
) -> Tensor3D[B, L[6], M, T]:
    return assert_type(layer.forward(x), Tensor3D[B, L[6], M, T])


def patches(x: Tensor3D[B, L[4], M, T], layer: nn.Conv1d[L[4], L[6], K, K]) -> object:
    return assert_type(layer.forward(x), Tensor3D[B, L[6], Div[M, K], T])


def back(
    x: Tensor4D[B, L[4], M, N, T], up: nn.ConvTranspose2d[L[4], L[4], L[2], L[2]]
) -> Tensor4D[B, L[4], M, N, T]:
    return assert_type(up.forward(halved(x)), Tensor4D[B, L[4], M, N, T])


def stretched(
    x: Tensor4D[B, L[4], L[5], L[5], T], y: Tensor4D[B, L[4], M, N]
) -> Tensor4D[B, L[4], M, N, T]:
    _, _, height, width = y.shape
    return tt.upscale2d(x, (height, width), "bilinear")


same(images, nn.Conv2d(4, 6, 7, padding=3, rng=rng))
check(assert_type(halved(images), Tensor4D[L[2], L[4], Any, L[4]]), (2, 4, 4, 4))
check(rounded(images), (2, 4, 5, 4))
check(less(images), (2, 4, 4, 3))
check(assert_type(whole(tt.ones((2, 4, 10))), Tensor3D[L[2], L[6], L[4]]), (2, 6, 4))
check(of_its_own(sounds, nn.Conv1d(4, 6, 2, 2, rng=rng)), (2, 6, 4))
check(spread(sounds, nn.Conv1d(4, 6, 3, 1, 2, 2, rng=rng)), (2, 6, 9))
check(patches(sounds, nn.Conv1d(4, 6, 3, 3, rng=rng)), (2, 6, 3))
even = nn.ConvTranspose2d(4, 4, 2, stride=2, rng=rng)
check(back(tt.ones((2, 4, 8, 6)), even), (2, 4, 8, 6))
check(stretched(tt.ones((2, 4, 5, 5)), images), (2, 4, 9, 8))

# What is open stays open.
step = int(rng.integers(2, 3))
leaping = tt.conv2d(images, tt.ones((6, 4, 3, 3)), stride=step)
check(assert_type(leaping, Tensor4D[L[2], L[6], Any, Any]), (2, 6, 4, 3))
dynamic: Tensor4D[L[2], L[4], Any, L[8]] = images
check(assert_type(tt.avg_pool2d(dynamic, 2), Tensor4D[L[2], L[4], Any, L[4]]), (2, 4, 4, 4))
