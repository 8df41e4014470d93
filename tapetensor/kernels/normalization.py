"""Normalization by mean and variance, fused: the composite would walk through many arrays."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from tapetensor.arrays.array import Array
from tapetensor.kernels.numerics import normalized as blocks
from tapetensor.kernels.numerics.along_axes import (
    mean_over,
    products_over,
    row_products,
    row_sums,
    sum_over,
    sum_to,
)
from tapetensor.kernels.numerics.decorators import MANY_STEPS, native_from, whole_kernel
from tapetensor.tape import Pullbacks
from tapetensor.tape.pullbacks import JointPullbacks, Needed, computed_once


@whole_kernel(lambda x, *_: x.shape, for_models=True)
@native_from(MANY_STEPS)
def layer_norm(x: Array, weight: Array, bias: Array, eps: float) -> tuple[Array, Pullbacks]:
    """Normalize the last axis, then scale and shift."""
    if blocks.are_many_rows(x, weight, bias):
        y, *numbers = blocks.normalized_rows(x, weight, bias, eps)

        def cotangents(needed: Needed, g: Array) -> list[Array | None]:
            return blocks.cotangents_of_rows(g, x, weight, (numbers[0], numbers[1]), needed)

        return y, JointPullbacks((True, True, True), cotangents)
    count = x.shape[-1]
    normalized = x - row_sums(x) / count
    inverse_std = 1.0 / np.sqrt(row_products(normalized, normalized) / count + eps)
    normalized *= inverse_std
    y = normalized * weight
    y += bias

    def pullback_x(g: Array) -> Array:
        scaled = g * weight
        means = (row_sums(scaled) / count, row_products(scaled, normalized) / count)
        return _cotangent(scaled, normalized, inverse_std, *means)

    return y, (
        pullback_x,
        lambda g: sum_to(g * normalized, weight.shape),
        lambda g: sum_to(g, bias.shape),
    )


@native_from(MANY_STEPS)
def rms_norm(x: Array, weight: Array, eps: float) -> tuple[Array, Pullbacks]:
    """Divide the last axis by the root of its mean square, then scale."""
    count = x.shape[-1]
    inverse = 1.0 / np.sqrt(row_products(x, x) / count + eps)
    normalized = x * inverse

    def pullback_x(g: Array) -> Array:
        cotangent: Array = g * weight
        cotangent -= normalized * (row_products(cotangent, normalized) / count)
        cotangent *= inverse
        return cotangent

    return normalized * weight, (pullback_x, lambda g: sum_to(g * normalized, weight.shape))


@native_from(MANY_STEPS)
def normalize(x: Array, axis: int, eps: float) -> tuple[Array, Pullbacks]:
    """Subtract the mean along one axis and divide by the standard deviation."""
    axes, count = (axis,), x.shape[axis]
    normalized, inverse_std, _, _ = _centred(x, axes, count, eps)
    normalized *= inverse_std

    def pullback(g: Array) -> Array:
        means = (sum_over(g, axes) / count, products_over(normalized, g, axes) / count)
        return _cotangent(g, normalized, inverse_std, *means)

    return normalized, (pullback,)


@native_from(MANY_STEPS)
def batch_norm(
    x: Array, weight: Array, bias: Array, eps: float, observe: Callable[[Array, Array], None]
) -> tuple[Array, Pullbacks]:
    """Normalize every channel (axis 1) over all other axes, then scale and shift.

    `observe` is called with the mean and the biased variance of every channel.
    """
    # The rows of a matrix are read as they lie in a third of the time.
    if x.ndim > 2 and blocks.are_many_channels(x, weight, bias):
        y, means, variances, inverses = blocks.normalized_channels(x, weight, bias, eps)
        observe(np.reshape(means, weight.shape), np.reshape(variances, weight.shape))

        def cotangents(needed: Needed, g: Array) -> list[Array]:
            return blocks.cotangents_of_channels(g, x, weight, means, inverses, needed[0])

        return y, JointPullbacks((True, True, True), cotangents)
    axes, count = _beside_channels(x)
    per_channel = _channel_shape(x.ndim, weight)
    centred, inverse_std, mean, variance = _centred(x, axes, count, eps)
    observe(np.reshape(mean, weight.shape), np.reshape(variance, weight.shape))
    slope = np.reshape(weight, per_channel) * inverse_std
    y = centred * slope
    y += np.reshape(bias, per_channel)
    sums = computed_once(
        lambda g: (sum_over(g, axes), products_over(centred, g, axes) * inverse_std)
    )

    def pullback_x(g: Array) -> Array:
        total, projection = sums(g)
        return _cotangent(g, centred, slope, total / count, projection * inverse_std / count)

    return y, (
        pullback_x,
        lambda g: np.reshape(sums(g)[1], weight.shape),
        lambda g: np.reshape(sums(g)[0], bias.shape),
    )


@whole_kernel(lambda x, *_: x.shape, for_models=True)
@native_from(MANY_STEPS)
def batch_norm_inference(
    x: Array, weight: Array, bias: Array, mean: Array, var: Array, eps: float
) -> tuple[Array, Pullbacks]:
    """Scale and shift every channel (axis 1) by given statistics, which are constants."""
    axes, _ = _beside_channels(x)
    per_channel = _channel_shape(x.ndim, weight)
    std = np.sqrt(np.reshape(var, per_channel) + eps)
    normalized = x - np.reshape(mean, per_channel)
    normalized /= std
    scale = np.reshape(weight, per_channel)
    y = normalized * scale
    y += np.reshape(bias, per_channel)
    return y, (
        lambda g: g * (scale / std),
        lambda g: np.reshape(products_over(normalized, g, axes), weight.shape),
        lambda g: np.reshape(sum_over(g, axes), bias.shape),
        None,
        None,
    )


def _channel_shape(ndim: int, per_channel: Array) -> tuple[int, ...]:
    """Return the shape under which one number per channel broadcasts along axis 1."""
    return (1, per_channel.shape[0], *[1] * (ndim - 2))


def _beside_channels(x: Array) -> tuple[tuple[int, ...], int]:
    """Return all axes but that of the channels, and how many elements they have."""
    axes = (0, *range(2, x.ndim))
    return axes, math.prod([x.shape[axis] for axis in axes])


def _centred(
    x: Array, axes: tuple[int, ...], count: int, eps: float
) -> tuple[Array, Array, Array, Array]:
    """Return `x` without its mean, and ``1 / std``, mean and variance with axes of size 1."""
    mean = mean_over(x, axes)
    centred = x - mean
    variance = products_over(centred, centred, axes) / count
    return centred, 1.0 / np.sqrt(variance + eps), mean, variance


def _cotangent(g: Array, centred: Array, slope: Array, mean: Array, projection: Array) -> Array:
    """Return ``slope * (g - mean - centred * projection)``."""
    # One array holds all steps: each further one would be another trip through memory.
    cotangent = centred * -projection
    cotangent += g
    cotangent -= mean
    cotangent *= slope
    return cotangent
