# Convolutions, pooling and stretching called wrongly.

from typing import Any
from typing import Literal as L

import numpy as np

import tapetensor as tt
from tapetensor import NoneTape, OwnedTape, Tensor3D, Tensor4D, nn

images: Tensor4D[L[2], L[4], L[9], L[8]]
ints: Tensor4D[L[2], L[4], L[9], L[8], NoneTape, np.int64]
doubles: Tensor4D[L[2], L[4], L[9], L[8], NoneTape, np.float64]
traced: Tensor4D[L[2], L[4], L[9], L[8], OwnedTape]
weight: Tensor4D[L[6], L[4], L[3], L[3]]
other: Tensor4D[L[6], L[5], L[3], L[3]]
flat: Tensor3D[L[6], L[4], L[3]]
rng: np.random.Generator
conv: nn.Conv2d[L[4], L[6], L[3]]
wide: nn.Conv2d[L[4], L[6], tuple[L[3], L[3]]]
five: nn.Conv2d[L[5], L[6], L[3]]
pool: nn.MaxPool2d[L[2]]
norm: nn.BatchNorm2d[L[6]]

def wants_plain(x: Tensor4D[L[2], L[6], Any, Any]) -> None: ...
def wants_4(x: Tensor4D[L[2], L[4], Any, Any]) -> None: ...

tt.conv2d(images, other)  # type: ignore[arg-type, misc]  # 4 channels, the weight takes 5
tt.conv2d(images, flat)  # type: ignore[arg-type]  # a weight has four axes
tt.conv2d(ints, weight)  # type: ignore[arg-type, misc]  # integers
tt.conv2d(doubles, weight)  # type: ignore[arg-type, misc]  # nothing is promoted
tt.conv2d(images, weight, 0.5)  # type: ignore[call-overload]  # a bias is a tensor
tt.conv2d(images, weight, stride=1.5)  # type: ignore[call-overload]  # no number of pixels
tt.conv2d(images, weight, padding="same")  # type: ignore[call-overload]  # a number
tt.conv2d(images, weight, stride=(1, 2, 3))  # type: ignore[arg-type]  # two axes
tt.conv2d(images, weight, None, 2)  # type: ignore[call-overload]  # the stride goes by name
wants_plain(tt.conv2d(traced, weight))  # type: ignore[arg-type]  # it owns a tape
wants_4(tt.conv2d(images, weight))  # type: ignore[arg-type]  # 6 channels come out
tt.conv_transpose1d(flat, weight)  # type: ignore[arg-type]  # a weight has three axes
tt.conv_transpose2d(images, weight)  # type: ignore[misc]  # 4 channels, it takes 6
tt.max_pool2d(ints, 2)  # type: ignore[type-var]  # integers
tt.max_pool2d(images)  # type: ignore[call-overload]  # how large is a window?
tt.avg_pool2d(images, 2.0)  # type: ignore[call-overload]  # no number of pixels
tt.upscale2d(images, 16)  # type: ignore[arg-type]  # two sizes
tt.upscale2d(images, (16, 16), "cubic")  # type: ignore[arg-type]  # no such mode
tt.interpolate(images, (16, 16), "cubic")  # type: ignore[arg-type]  # no such mode
tt.interpolate(images, (16, 16), "bilinear", True)  # type: ignore[call-arg]  # it goes by name
tt.unfold(ints, 2)  # type: ignore[type-var]  # integers
tt.unfold(images)  # type: ignore[call-arg]  # how large is a window?
tt.fold(images, 16, 2)  # type: ignore[arg-type]  # two sizes
tt.pixel_shuffle(images, 2.0)  # type: ignore[arg-type]  # a number of pixels
wants_plain(conv.forward(traced))  # type: ignore[arg-type]  # it owns a tape
five.forward(images)  # type: ignore[arg-type]  # 4 channels, the layer takes 5
conv.forward(doubles)  # type: ignore[arg-type]  # float32 weights
wants_plain(pool.forward(images))  # type: ignore[arg-type]  # 4 channels stay 4
norm.forward(images)  # type: ignore[arg-type]  # 4 channels, the layer has 6
nn.Conv2d(4, 6, 3)  # type: ignore[call-arg]  # first values need an rng
nn.Conv2d(4, 6, (3, 3, 3), rng=rng)  # type: ignore[type-var]  # one number, or two
nn.Conv2d(4, 6, (3, 3.0), rng=rng)  # type: ignore[type-var]  # numbers
nn.Conv2d(4, 6, 3, padding="valid", rng=rng)  # type: ignore[type-var]  # numbers, or "same"
nn.Conv2d(4, 6, 3, stride="same", rng=rng)  # type: ignore[type-var]  # numbers
nn.Conv1d(4, 6, (3, 3), rng=rng)  # type: ignore[type-var]  # one number
nn.ConvTranspose2d(4, 6, 3, padding="same", rng=rng)  # type: ignore[type-var]  # numbers
nn.MaxPool2d((2, 2, 2))  # type: ignore[type-var]  # one number, or two
nn.MaxPool2d(2, padding="same")  # type: ignore[type-var]  # numbers
wide = nn.Conv2d(4, 6, (3, 5), rng=rng)  # type: ignore[arg-type]  # declared with 3 columns
nn.Upscale2dBy(2, mode="cubic")  # type: ignore[arg-type]  # no such mode
