"""Windows that do not fit an image. Every thunk raises."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic
from typing import Literal as L

import numpy as np

import tapetensor as tt
from tapetensor import Tensor4D, nn
from tapetensor.typing import B, Div, K, M, N, P, T

rng = np.random.default_rng(0)
x = tt.ones((2, 4, 9, 8))
m = tt.ones((9, 8))
s = tt.ones((2, 4, 9))
k = tt.ones((6, 4, 3, 3))
kt = tt.ones((4, 6, 3, 3))
kd = tt.ones((4, 4, 3, 3), np.float64)
xi = tt.ones((2, 4, 9, 8), np.int64)

BAD: tuple[Callable[[], object], ...] = (
    lambda: tt.conv2d(x, k, groups=4),  # E: conv2d: 4 groups do not divide in_channels 4 and out
    lambda: tt.conv2d(x, k, groups=0),  # E: conv2d: groups must be > 0, got 0
    lambda: tt.conv2d(x, k, stride=0),  # E: conv2d: stride must be > 0, got 0
    lambda: tt.conv2d(x, k, padding=-1),  # E: conv2d: padding must not be negative, got -1
    lambda: tt.conv2d(x, k, dilation=(1, 0)),  # E: conv2d: dilation must be > 0, got 0
    lambda: tt.conv_transpose2d(x, kt, groups=3),  # E: 3 groups do not divide in_channels 4
    lambda: tt.conv_transpose2d(x, kt, output_padding=1),  # E: output_padding (1, 1) must be less
    lambda: tt.conv_transpose2d(x, kd),  # E: dtypes differ: float32 and float64; convert one with a
    lambda: tt.conv2d(x, kd),  # E: conv2d: dtypes differ: float32 and float64; convert one with ast
    lambda: tt.max_pool2d(xi, 2),  # E: max_pool2d: not defined for dtype int64; convert first with
    lambda: tt.avg_pool2d(x, 2, padding=2),  # E: padding (2, 2) is more than half of the window (2,
    lambda: tt.min_pool2d(x, 0),  # E: min_pool2d: kernel_size must be > 0, got 0
    lambda: tt.interpolate(x, (3, 0)),  # E: interpolate: size must be > 0, got 0
    lambda: tt.unfold(x, 2, stride=0),  # E: unfold: stride must be > 0, got 0
    lambda: tt.pixel_shuffle(x, 0),  # E: pixel_shuffle: factor must be > 0, got 0
    lambda: nn.PixelShuffle(3)(x),  # E: pixel_shuffle: the 4 channels of shape (2, 4, 9, 8) are
    lambda: nn.Conv2d(3, 6, 3, rng=rng)(x),  # E: the input of shape (2, 4, 9, 8) has 4, the layer t
    lambda: nn.Conv2d(4, 6, 9, rng=rng).forward(x),  # E: conv2d: a kernel of (9, 9) is larger than
    lambda: nn.Conv2d(4, 6, (3, 9), rng=rng)(x),  # E: conv2d: a kernel of (3, 9) is larger than the
    lambda: nn.MaxPool2d((10, 1))(x),  # E: max_pool2d: a kernel of (10, 1) is larger than the padde
    lambda: nn.Conv1d(4, 6, 3, rng=rng)(s[..., :2]),  # E: conv1d: a kernel of (3,) is larger than t
    lambda: nn.ConvTranspose2d(5, 6, 3, rng=rng)(x),  # E: has 4, the layer takes 5
    lambda: nn.MaxPool2d(9)(x),  # E: max_pool2d: a kernel of (9, 9) is larger than the padded input
    lambda: nn.AvgPool2d(2)(m),  # E: avg_pool2d: the input must have shape (..., C, H, W), got (9,
    lambda: nn.Upscale2d(4, 4)(x),  # E: an input of shape (2, 4, 9, 8) cannot be stretched to (4, 4
    lambda: nn.MaxPool2d(2)(nn.MaxPool2d(5)(x)),  # E: a kernel of (2, 2) is larger than the padded
)


def named(x: Tensor4D[B, M, N, N], weight: Tensor4D[L[6], N, L[3], L[3]]) -> object:
    return tt.conv2d(x, weight)  # E: has M, the weight of shape (6, N, 3, 3) takes N


BAD += (lambda: named(tt.ones((2, 4, 5, 5)), tt.ones((6, 5, 3, 3))),)


class Residual(nn.Module, Generic[M, N]):
    first: nn.Conv2d[M, N, L[3], L[2], L[1]]
    short: nn.Conv2d[M, N, L[1], L[1]]

    def forward(self, x: Tensor4D[B, M, K, P, T]) -> Tensor4D[B, N, Div[K, L[2]], Div[P, L[2]], T]:
        y = self.first.forward(x)
        return y + self.short.forward(x)  # E: add: shapes (B, N, K / 2, P / 2) and (B, N, K, P) do


BAD += (lambda: tt.build(Residual[L[4], L[6]], rng=rng).forward(x),)
