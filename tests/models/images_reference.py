"""The forward passes of the models of images in plain numpy, written down a second time."""

from __future__ import annotations

import numpy as np

from tests.models.reference import Array, Parameters, linear, under
from tests.ops import windows_reference as windows

# Two by two pixels at once, the largest of them.
_halved = windows.pool2d(lambda seen: seen.max(axis=(-2, -1)), -np.inf)


def relu(x: Array) -> Array:
    return np.asarray(np.maximum(x, 0.0))


def normalized(p: Parameters, name: str, x: Array, *, traced: bool) -> Array:
    """Return a batch norm by the batch, or by first statistics: mean 0 and variance 1."""
    mean = x.mean(axis=(0, 2, 3), keepdims=True) if traced else 0.0
    var = x.var(axis=(0, 2, 3), keepdims=True) if traced else 1.0
    weight, bias = (p[f"{name}.{one}"][:, None, None] for one in ("weight", "bias"))
    return np.asarray((x - mean) / np.sqrt(var + 1e-5) * weight + bias)


def normal_conv(
    p: Parameters, name: str, x: Array, *, traced: bool, stride: int = 1, padding: int = 1
) -> Array:
    y = windows.conv2d(x, p[f"{name}.weight"], stride=stride, padding=padding)
    return normalized(p, f"{name}_norm", y, traced=traced)


def block(p: Parameters, x: Array, *, traced: bool) -> Array:
    is_down = "shortcut.weight" in p
    hidden = relu(normal_conv(p, "first", x, traced=traced, stride=1 + is_down))
    beside = normal_conv(p, "shortcut", x, traced=traced, stride=2, padding=0) if is_down else x
    return relu(normal_conv(p, "second", hidden, traced=traced) + beside)


def resnet(p: Parameters, x: Array, *, traced: bool) -> Array:
    x = relu(normal_conv(p, "stem", x, traced=traced))
    for stage in ("stage_1", "stage_2", "stage_3"):
        for position in range(2):
            x = block(under(p, f"{stage}.{position}"), x, traced=traced)
    return linear(p, "head", x.mean(axis=(-2, -1)))


def double_conv(p: Parameters, x: Array, *, traced: bool) -> Array:
    hidden = relu(normal_conv(p, "first", x, traced=traced))
    return relu(normal_conv(p, "second", hidden, traced=traced))


def unet(p: Parameters, x: Array, *, traced: bool) -> Array:
    def twice(name: str, x: Array) -> Array:
        return double_conv(under(p, name), x, traced=traced)

    def up(name: str, x: Array) -> Array:
        weight, bias = p[f"{name}.weight"], p[f"{name}.bias"]
        return windows.conv_transpose2d(x, weight, bias, stride=2)

    wide = twice("down_1", x)
    half = twice("down_2", _halved(wide, 2))
    quarter = twice("bottom", _halved(half, 2))
    half_again = twice("join_2", np.concatenate([half, up("up_2", quarter)], axis=1))
    wide_again = twice("join_1", np.concatenate([wide, up("up_1", half_again)], axis=1))
    return windows.conv2d(wide_again, p["head.weight"], p["head.bias"])
