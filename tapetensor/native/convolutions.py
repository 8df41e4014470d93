"""Convolutions in eager mode as loops over planes, beside `kernels.convolution`."""

from __future__ import annotations

import inspect
import math
from functools import partial

import numpy as np

from tapetensor.arrays.array import Array
from tapetensor.kernels import convolution
from tapetensor.kernels.numerics.along_axes import ones
from tapetensor.kernels.numerics.windows import Sizes, Window
from tapetensor.native import direct
from tapetensor.native.loading import are_known
from tapetensor.native.plain import cotangents_on_numpy, pullbacks_of
from tapetensor.tape import Pullbacks
from tapetensor.tape.pullbacks import Kernel, Needed


def _convolution(
    kernel: Kernel,
    x: Array,
    weight: Array,
    bias: Array | None,
    window: Window,
    groups: int,
    *written: Sizes,
) -> tuple[Array, Pullbacks]:
    """Return a convolution, or a transposed one, by loops where they are faster.

    Args:
        kernel: the kernel as it is on numpy.
        x: its operands, as all that follows.
        weight: the filters.
        bias: one number for each channel that is written.
        window: what a filter reads, or writes.
        groups: how many groups of channels are convolved apart.
        written: the sizes of what the windows of a transposed convolution write.
    """
    args = x, weight, bias, window, groups, *written
    arrays = [one for one in (x, weight, bias) if one is not None]
    if not are_known(*arrays) or not all(one.flags.c_contiguous for one in arrays):
        return kernel(*args)
    # Sequences are images of one row.
    is_row = len(window.kernel) == 1
    if is_row:
        window = Window(*[(one, *of) for one, of in zip((1, 1, 0, 1), window, strict=True)])
    images = _as_images(x, is_row)
    filters = weight.reshape(*weight.shape[:2], *window.kernel)
    sizes: Sizes = (*(1,) * is_row, *written[0]) if written else images.shape[-2:]
    # Between windows there are zeros, by which filters are multiplied on the way back.
    can_go_back = bool(np.isfinite(weight).all())
    if not direct.is_faster(filters, window, groups, sizes) or (written and not can_go_back):
        return kernel(*args)

    def there(images: Array, bias: Array | None = None) -> Array:
        return direct.convolved(images, filters, bias, window, groups)

    def back(images: Array, bias: Array | None = None) -> Array:
        return direct.convolved_back(images, filters, bias, window, groups, sizes)

    forward, backward = (back, there) if written else (there, back)

    def cotangents(needed: Needed, g: Array) -> list[Array | None]:
        g_images = _as_images(g, is_row)
        found: list[Array | None] = [None] * len(arrays)
        if needed[0]:
            found[0] = backward(g_images).reshape(x.shape)
        if needed[1]:
            pair = (images, g_images) if written else (g_images, images)
            found[1] = direct.to_weight(*pair, window, groups).reshape(weight.shape)
        is_finite = found[1] is None or np.isfinite(found[1]).all()
        if not is_finite or (needed[0] and not can_go_back):
            return cotangents_on_numpy(kernel, args, needed, g)
        if needed[2:] == (True,):
            rows = g.reshape(-1, g_images.shape[-3], math.prod(g_images.shape[-2:]))
            found[2] = np.add.reduce(np.matmul(rows, ones(rows.shape[2], g.dtype)), axis=0)
        return found

    y = forward(images, bias)
    if is_row:
        y = y.reshape(*y.shape[:-2], y.shape[-1])
    return y, pullbacks_of(kernel, args, y, (True,) * len(arrays), cotangents)


def _as_images(x: Array, is_row: bool) -> Array:
    return x.reshape(*x.shape[:-1], 1, x.shape[-1]) if is_row else x


conv1d, conv2d, conv_transpose1d, conv_transpose2d = [
    partial(_convolution, inspect.unwrap(kernel))
    for kernel in (
        convolution.conv1d,
        convolution.conv2d,
        convolution.conv_transpose1d,
        convolution.conv_transpose2d,
    )
]
