"""Convolutions of channels that are groups of their own, beside `kernels.convolution`.

In eager mode filters slide over planes, at each of their elements over a whole run.
"""

from __future__ import annotations

import inspect

import numpy as np

from tapetensor.arrays.array import Array
from tapetensor.kernels import convolution
from tapetensor.kernels.numerics.sums import ones
from tapetensor.kernels.numerics.windows import Window
from tapetensor.native.loading import are_known
from tapetensor.native.plain import cotangents_on_numpy, pullbacks_of
from tapetensor.native.planes import FRAMES, frame_of, run_over
from tapetensor.tape import Pullbacks
from tapetensor.tape.pullbacks import Kernel, Needed

# As it is on numpy.
_conv2d: Kernel = inspect.unwrap(convolution.conv2d)

_PRODUCTS = (
    FRAMES
    + """
def add_product(target, factor, read):
    for k in range(target.size):
        target[k] += factor * read[k]


add_product = compiled(add_product, fastmath={"contract"})


"""
)
# Each plane of an input is read by as many filters, one after the other.
_FORWARD = (
    _PRODUCTS
    + """
def loop(first, last, x, weight, y, tall, across, run, kernel, stride, padding, dilation):
    frame, sums = np.zeros(stride[0] * tall * across, x.dtype), np.empty(run, x.dtype)
    channels, filters = weight.shape[:2]
    for plane in range(first, last):
        enter(x[plane], frame, tall, across, stride, padding)
        for filter in range(filters):
            sums[:] = 0
            factors = weight[plane % channels, filter]
            for row in range(kernel[0]):
                for column in range(kernel[1]):
                    at = place(row * dilation[0], column * dilation[1], tall, across, stride)
                    add_product(sums, factors[row, column], frame[at : at + run])
            pick(sums, y[plane, filter], across, stride)
"""
)
_TO_X = (
    _PRODUCTS
    + """
def loop(first, last, g, weight, to_x, tall, across, run, kernel, stride, padding, dilation):
    sums, values = np.empty(stride[0] * tall * across, g.dtype), np.zeros(run, g.dtype)
    channels, filters = weight.shape[:2]
    for plane in range(first, last):
        sums[:] = 0
        for filter in range(filters):
            spread(g[plane, filter], values, across, stride)
            factors = weight[plane % channels, filter]
            for row in range(kernel[0]):
                for column in range(kernel[1]):
                    at = place(row * dilation[0], column * dilation[1], tall, across, stride)
                    add_product(sums[at : at + run], factors[row, column], values)
        leave(sums, to_x[plane], tall, across, stride, padding)
"""
)
# It is found for every plane of a batch, and added up in the end.
_TO_WEIGHT = (
    FRAMES
    + """
def loop(first, last, g, x, to_weight, tall, across, run, kernel, stride, padding, dilation):
    frame, values = np.zeros(stride[0] * tall * across, x.dtype), np.zeros(run, x.dtype)
    for plane in range(first, last):
        enter(x[plane], frame, tall, across, stride, padding)
        for filter in range(g.shape[1]):
            spread(g[plane, filter], values, across, stride)
            for row in range(kernel[0]):
                for column in range(kernel[1]):
                    at = place(row * dilation[0], column * dilation[1], tall, across, stride)
                    read, total = frame[at : at + run], x.dtype.type(0)
                    for k in range(run):
                        total = plus(total, values[k] * read[k])
                    to_weight[plane, filter, row, column] = total
"""
)


def conv2d(
    x: Array, weight: Array, bias: Array | None, window: Window, groups: int
) -> tuple[Array, Pullbacks]:
    """Convolve images."""
    args = x, weight, bias, window, groups
    arrays = [one for one in (x, weight, bias) if one is not None]
    channels, sizes = x.shape[-3], x.shape[-2:]
    if (
        not 1 < groups == channels
        or not are_known(*arrays)
        or not all(one.flags.c_contiguous for one in arrays)
    ):
        return _conv2d(*args)
    planes = x.reshape(-1, *sizes)
    filters = weight.reshape(channels, -1, *window.kernel)
    places = *frame_of(sizes, window), *window
    y = np.empty((len(planes), filters.shape[1], *window.counts(sizes)), x.dtype)
    run_over(_FORWARD, x.size, planes, filters, y, *places)
    output = y.reshape(*x.shape[:-3], len(weight), *y.shape[2:])
    if bias is not None:
        output += bias.reshape(-1, 1, 1)

    def cotangents(needed: Needed, g: Array) -> list[Array | None]:
        of_planes = g.reshape(y.shape)
        found: list[Array | None] = [None] * len(arrays)
        if needed[0]:
            to_x = np.empty_like(planes)
            run_over(_TO_X, x.size, of_planes, filters, to_x, *places)
            found[0] = to_x.reshape(x.shape)
        if needed[1]:
            by_plane = np.empty((len(planes), *filters.shape[1:]), x.dtype)
            run_over(_TO_WEIGHT, x.size, of_planes, planes, by_plane, *places)
            found[1] = np.add.reduce(by_plane.reshape(-1, *weight.shape), axis=0)
        if not all(one is None or np.isfinite(one).all() for one in found):
            # Between windows a zero was multiplied by what is infinite, or no number.
            return cotangents_on_numpy(_conv2d, args, needed, g)
        if needed[2:] == (True,):
            rows = g.reshape(-1, len(weight), y[0, 0].size)
            found[2] = np.add.reduce(np.matmul(rows, ones(rows.shape[2], g.dtype)), axis=0)
        return found

    return output, pullbacks_of(_conv2d, args, output, len(arrays), cotangents)
