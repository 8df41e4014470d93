"""Normalization by mean and variance, fused: the composite would walk through many arrays."""

from __future__ import annotations

import math

import numpy as np

from tapetensor.gradients import Array
from tapetensor.kernels.broadcasting import sum_to
from tapetensor.kernels.mean import mean_over
from tapetensor.kernels.sums import row_products, row_sums
from tapetensor.tape import Pullback, Pullbacks


def layer_norm(x: Array, weight: Array, bias: Array, eps: float) -> tuple[Array, Pullbacks]:
    """Normalize the last axis, then scale and shift."""
    count = x.shape[-1]
    normalized = x - row_sums(x) / count
    inverse_std = 1.0 / np.sqrt(row_products(normalized, normalized) / count + eps)
    normalized *= inverse_std
    y = normalized * weight
    y += bias

    def pullback_x(g: Array) -> Array:
        scaled = g * weight
        projection = row_products(scaled, normalized) / count
        cotangent: Array = scaled - row_sums(scaled) / count
        cotangent -= normalized * projection
        cotangent *= inverse_std
        return cotangent

    return y, (
        pullback_x,
        lambda g: sum_to(g * normalized, weight.shape),
        lambda g: sum_to(g, bias.shape),
    )


def normalize(x: Array, axis: int, eps: float) -> tuple[Array, Pullbacks]:
    """Subtract the mean along one axis and divide by the standard deviation."""
    normalized, inverse_std = _normalized(x, (axis,), eps)
    return normalized, (_pullback_x(normalized, inverse_std, np.ones_like(inverse_std), (axis,)),)


def batch_norm(x: Array, weight: Array, bias: Array, eps: float) -> tuple[Array, Pullbacks]:
    """Normalize every channel (axis 1) over all other axes, then scale and shift."""
    axes = (0, *range(2, x.ndim))
    per_channel = channel_shape(x.ndim, weight)
    normalized, inverse_std = _normalized(x, axes, eps)
    scale = np.reshape(weight, per_channel)
    return normalized * scale + np.reshape(bias, per_channel), (
        _pullback_x(normalized, inverse_std, scale, axes),
        lambda g: np.add.reduce(g * normalized, axis=axes),
        lambda g: np.add.reduce(g, axis=axes),
    )


def batch_norm_inference(
    x: Array, weight: Array, bias: Array, mean: Array, var: Array, eps: float
) -> tuple[Array, Pullbacks]:
    """Scale and shift every channel (axis 1) by given statistics, which are constants."""
    axes = (0, *range(2, x.ndim))
    per_channel = channel_shape(x.ndim, weight)
    centred = x - np.reshape(mean, per_channel)
    normalized = centred / np.sqrt(np.reshape(var, per_channel) + eps)
    scale = np.reshape(weight, per_channel)
    slope = scale / np.sqrt(np.reshape(var, per_channel) + eps)
    return normalized * scale + np.reshape(bias, per_channel), (
        lambda g: g * slope,
        lambda g: np.add.reduce(g * normalized, axis=axes),
        lambda g: np.add.reduce(g, axis=axes),
        None,
        None,
    )


def running_statistics(x: Array, mean: Array, var: Array, momentum: float) -> tuple[Array, Array]:
    """Return running mean and variance moved towards those of a batch.

    The variance of the batch is the unbiased one.
    """
    axes = (0, *range(2, x.ndim))
    count = math.prod([x.shape[axis] for axis in axes])
    batch_var = np.var(x, axis=axes) * (count / (count - 1))
    keep = 1.0 - momentum
    return mean * keep + np.mean(x, axis=axes) * momentum, var * keep + batch_var * momentum


def channel_shape(ndim: int, per_channel: Array) -> tuple[int, ...]:
    """Return the shape under which one number per channel broadcasts along axis 1."""
    return (1, per_channel.shape[0], *[1] * (ndim - 2))


def _normalized(x: Array, axes: tuple[int, ...], eps: float) -> tuple[Array, Array]:
    centred = x - mean_over(x, axes)
    variance = mean_over(np.square(centred), axes)
    inverse_std = 1.0 / np.sqrt(variance + eps)
    return centred * inverse_std, inverse_std


def _pullback_x(
    normalized: Array, inverse_std: Array, scale: Array, axes: tuple[int, ...]
) -> Pullback:
    def pullback(g: Array) -> Array:
        scaled = g * scale
        mean = mean_over(scaled, axes)
        projection = mean_over(scaled * normalized, axes)
        cotangent: Array = (scaled - mean - normalized * projection) * inverse_std
        return cotangent

    return pullback
