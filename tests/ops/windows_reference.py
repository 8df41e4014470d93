"""Convolutions, pooling and stretching written down window by window, for complex arrays too."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np

from tapetensor.arrays.array import Array

Numbers: TypeAlias = int | tuple[int, ...]


def pair(value: Any, axes: int = 2) -> tuple[int, ...]:
    return value if isinstance(value, tuple) else (value,) * axes


def windows(
    x: Array, kernel: Numbers, stride: Numbers, padding: Numbers, dilation: Numbers, fill: float
) -> Array:
    """Return what each window reads of ``(..., H, W)``, on two more axes at the end."""
    kernel, stride, padding, dilation = map(pair, (kernel, stride, padding, dilation))
    edges = [*[(0, 0)] * (x.ndim - 2), *[(extra, extra) for extra in padding]]
    padded = np.pad(x, edges, constant_values=fill)
    spans = tuple([d * (k - 1) + 1 for k, d in zip(kernel, dilation, strict=True)])
    seen = np.lib.stride_tricks.sliding_window_view(padded, spans, axis=(-2, -1))
    return seen[..., :: stride[0], :: stride[1], :: dilation[0], :: dilation[1]]


def conv2d(
    x: Array,
    weight: Array,
    bias: Array | None = None,
    *,
    stride: Numbers = 1,
    padding: Numbers = 0,
    dilation: Numbers = 1,
    groups: int = 1,
) -> Array:
    read = windows(x, weight.shape[2:], stride, padding, dilation, 0.0)
    of_group = zip(np.split(read, groups, axis=-5), np.split(weight, groups), strict=True)
    parts = [np.einsum("...chwkl,ockl->...ohw", seen, kernels) for seen, kernels in of_group]
    y = np.concatenate(parts, axis=-3)
    return y if bias is None else y + bias[:, None, None]


def conv1d(x: Array, weight: Array, bias: Array | None = None, **options: Any) -> Array:
    for name, neutral in (("stride", 1), ("padding", 0), ("dilation", 1)):
        options[name] = (neutral, *pair(options.get(name, neutral), 1))
    return conv2d(x[..., None, :], weight[:, :, None], bias, **options)[..., 0, :]


def conv_transpose2d(
    x: Array,
    weight: Array,
    bias: Array | None = None,
    *,
    stride: Numbers = 1,
    padding: Numbers = 0,
    output_padding: Numbers = 0,
    dilation: Numbers = 1,
    groups: int = 1,
) -> Array:
    kernel = weight.shape[2:]
    step, cut, more, spread = map(pair, (stride, padding, output_padding, dilation))

    extent = [
        (size - 1) * s + d * (k - 1) + 1 + extra
        for size, s, d, k, extra in zip(x.shape[-2:], step, spread, kernel, more, strict=True)
    ]
    parts = []
    of_group = zip(np.split(x, groups, axis=-3), np.split(weight, groups), strict=True)
    for part, kernels in of_group:
        shape = (*x.shape[:-3], kernels.shape[1], *extent)
        y = np.zeros(shape, np.result_type(x, weight))
        for h, w in np.ndindex(*x.shape[-2:]):
            top, left = h * step[0], w * step[1]
            rows = slice(top, top + spread[0] * (kernel[0] - 1) + 1, spread[0])
            columns = slice(left, left + spread[1] * (kernel[1] - 1) + 1, spread[1])
            y[..., rows, columns] += np.einsum("...c,cohw->...ohw", part[..., h, w], kernels)
        parts.append(y)
    y = np.concatenate(parts, axis=-3)
    y = y[..., cut[0] : extent[0] - cut[0], cut[1] : extent[1] - cut[1]]
    return y if bias is None else y + bias[:, None, None]


def conv_transpose1d(x: Array, weight: Array, bias: Array | None = None, **options: Any) -> Array:
    for name, neutral in (("stride", 1), ("padding", 0), ("output_padding", 0), ("dilation", 1)):
        options[name] = (neutral, *pair(options.get(name, neutral), 1))
    return conv_transpose2d(x[..., None, :], weight[:, :, None], bias, **options)[..., 0, :]


def pool2d(reduce: Callable[[Array], Array], fill: float) -> Callable[..., Array]:
    """Return a pooling that reduces the last two axes of a window by `reduce`."""

    def reference(
        x: Array,
        kernel_size: Numbers,
        *,
        stride: Numbers | None = None,
        padding: Numbers = 0,
        dilation: Numbers = 1,
    ) -> Array:
        step = kernel_size if stride is None else stride
        return reduce(windows(x, kernel_size, step, padding, dilation, fill))

    return reference


def upscale2d(
    x: Array, size: tuple[int, int], mode: str = "nearest", align_corners: bool = True
) -> Array:
    y = np.zeros((*x.shape[:-2], *size), x.dtype)
    for place in np.ndindex(*size):
        rows, columns = (
            _read(mode, align_corners, at, old, new)
            for at, old, new in zip(place, x.shape[-2:], size, strict=True)
        )
        y[..., *place] = sum(
            x[..., row, column] * (down * right) for row, down in rows for column, right in columns
        )
    return y


def _read(mode: str, align_corners: bool, at: int, old: int, new: int) -> list[tuple[int, float]]:
    """Return which of the elements of an axis a new one reads, with their weights."""
    if mode == "nearest":
        return [(at * old // new, 1.0)]
    place = Fraction(2 * at + 1, 2) * Fraction(old, new) - Fraction(1, 2)
    if align_corners:
        place = at * Fraction(old - 1, max(new - 1, 1))
    if mode == "bilinear":
        place = max(place, Fraction(0))
    first = math.floor(place)
    near = range(first, first + 2) if mode == "bilinear" else range(first - 1, first + 3)
    weighed = [(min(max(one, 0), old - 1), _weight(mode, abs(place - one))) for one in near]
    return [(one, float(weight)) for one, weight in weighed]


def _weight(mode: str, distance: Fraction) -> Fraction:
    if mode == "bilinear":
        return 1 - distance
    a = Fraction(-3, 4)
    if distance <= 1:
        return (a + 2) * distance**3 - (a + 3) * distance**2 + 1
    return a * distance**3 - 5 * a * distance**2 + 8 * a * distance - 4 * a


def unfold(
    x: Array, kernel_size: Numbers, stride: Numbers = 1, padding: Numbers = 0, dilation: Numbers = 1
) -> Array:
    read = windows(x, kernel_size, stride, padding, dilation, 0.0)
    columns = np.moveaxis(read, (-2, -1), (-4, -3))
    rows = x.shape[-3] * math.prod(pair(kernel_size))
    return columns.reshape(*x.shape[:-3], rows, math.prod(read.shape[-4:-2]))


def fold(
    x: Array, size: tuple[int, int], kernel_size: Numbers, padding: Numbers = 0, **steps: Numbers
) -> Array:
    area = math.prod(pair(kernel_size))
    # Where each element of a column belongs, which `unfold` of the places says.
    places = np.arange(1, 1 + math.prod(size)).reshape(1, *size)
    to = unfold(places, kernel_size, padding=padding, **steps)
    parts = x.reshape(*x.shape[:-2], x.shape[-2] // area, area, x.shape[-1])
    y = np.zeros((*parts.shape[:-2], math.prod(size)), x.dtype)
    for row, column in zip(*np.nonzero(to), strict=True):
        y[..., to[row, column] - 1] += parts[..., row, column]
    return y.reshape(*y.shape[:-1], *size)


def pixel_shuffle(x: Array, factor: int) -> Array:
    *leading, channels, height, width = x.shape
    y = np.zeros((*leading, channels // factor**2, height * factor, width * factor), x.dtype)
    for i, j in np.ndindex(factor, factor):
        y[..., i::factor, j::factor] = x[..., i * factor + j :: factor**2, :, :]
    return y


def pixel_unshuffle(x: Array, factor: int) -> Array:
    *leading, channels, height, width = x.shape
    y = np.zeros((*leading, channels * factor**2, height // factor, width // factor), x.dtype)
    for i, j in np.ndindex(factor, factor):
        y[..., i * factor + j :: factor**2, :, :] = x[..., i::factor, j::factor]
    return y
