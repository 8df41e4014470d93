"""Shapes of images and sequences over which windows slide."""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from tapetensor.errors import ArgumentValueError, ShapeError
from tapetensor.rules.dims import (
    ONE,
    Dim,
    Dims,
    Size,
    are_other_numbers,
    computed,
    differ,
    is_left_over,
    is_negative,
    product,
    quotient,
    stepped,
    total,
    written,
)

_TWO: Final = Size.of(2)
_AXES: Final = {1: "C, L", 2: "C, H, W"}
_KERNEL: Final = {1: "k", 2: "kh, kw"}


@dataclass(frozen=True)
class Window:
    """The numbers of a window, one of each kind per axis; ANY for one that is not known."""

    kernel: Dims
    stride: Dims
    padding: Dims
    dilation: Dims

    def counts(self, op: str, shape: Dims) -> Dims:
        """Return how many windows fit along each axis of an image."""
        sizes = shape[-len(self.kernel) :]
        numbers = zip(sizes, self.kernel, self.stride, self.padding, self.dilation, strict=True)
        found = tuple(computed(_count, *one) for one in numbers)
        if any(map(_is_nothing, found)):
            padded = [total((size, by, by)) for size, by in zip(sizes, self.padding, strict=True)]
            wide = any((one.literal or 0) > 1 for one in self.dilation)
            spread = f" with dilation {written(self.dilation)}" if wide else ""
            raise ShapeError(
                f"{op}: a kernel of {written(self.kernel)}{spread} is larger than the padded input "
                f"{written(padded)} of shape {written(shape)}"
            )
        return found

    def extents(self, op: str, shape: Dims, more: Dims) -> Dims:
        """Return the sizes of an image in which every pixel of another has written a window."""
        sizes = shape[-len(self.kernel) :]
        numbers = zip(
            sizes, self.kernel, self.stride, self.padding, self.dilation, more, strict=True
        )
        found = tuple(computed(_extent, *one) for one in numbers)
        if any(map(_is_nothing, (*found, *sizes))):
            raise ShapeError(
                f"{op}: padding {written(self.padding)} leaves nothing of the output for an input "
                f"of shape {written(shape)} and a kernel of {written(self.kernel)}"
            )
        return found

    def check_padding(self, op: str) -> None:
        """Raise ArgumentValueError if the padding of a pool is surely more than half of it."""
        for sizes in zip(self.kernel, self.padding, self.dilation, strict=True):
            room = computed(lambda size, by, apart: apart * (size - ONE) + ONE - _TWO * by, *sizes)
            if is_negative(room):
                raise ArgumentValueError(
                    f"{op}: padding {written(self.padding)} is more than half of the window "
                    f"{written(self.kernel)}; a window would hold nothing but padding"
                )

    def check_output_padding(self, op: str, more: Dims) -> None:
        """Raise ArgumentValueError if more is surely left at an end than a window may leave."""
        for one, *steps in zip(more, self.stride, self.dilation, strict=True):
            if all(_is_nothing(computed(operator.sub, step, one)) for step in steps):
                raise ArgumentValueError(
                    f"{op}: output_padding {written(more)} must be less than the stride "
                    f"{written(self.stride)} or the dilation {written(self.dilation)}"
                )


def check_same_size(op: str, stride: Dims) -> None:
    """Raise ArgumentValueError if steps surely do not keep the size of what is padded for that."""
    if any((one.literal or 1) > 1 for one in stride):
        raise ArgumentValueError(
            f'{op}: padding="same" keeps the size of the input, which a stride of '
            f"{written(stride)} does not; give numbers"
        )


def check_division(op: str, kind: str, parts: Dim, sizes: Mapping[str, Dim]) -> None:
    """Raise ArgumentValueError if a number of parts of a kind surely does not divide sizes."""
    if any(is_left_over(size, parts) for size in sizes.values()):
        divided = " and ".join([f"{name} {size}" for name, size in sizes.items()])
        raise ArgumentValueError(f"{op}: {parts} {kind} do not divide {divided}")


def check_rank(op: str, shape: Sequence[Dim | int], axes: int) -> None:
    """Raise ShapeError if a shape has too few axes for an image, or a sequence."""
    if len(shape) < axes + 1:
        raise ShapeError(
            f"{op}: the input must have shape (..., {_AXES[axes]}), got {written(shape)}"
        )


def check_weight(op: str, weight: Dims, axes: int, *, transposed: bool = False) -> None:
    """Raise ShapeError if a weight has another number of axes, or an empty kernel."""
    if len(weight) != axes + 2 or any(dim.literal == 0 for dim in weight[2:]):
        wanted = "C, O / groups" if transposed else "O, C / groups"
        raise ShapeError(
            f"{op}: the weight must have shape ({wanted}, {_KERNEL[axes]}), got {written(weight)}"
        )


def convolution(op: str, operands: Sequence[Dims], window: Window, groups: Dim) -> Dims:
    """Return the shape of a convolution."""
    axes, (x, weight, *biases) = len(window.kernel), operands
    channels, made = x[-1 - axes], weight[0]
    check_division(op, "groups", groups, {"in_channels": channels, "out_channels": made})
    grouped = f" in each of {groups} groups" if groups != ONE else ""
    takes = f"the weight of shape {written(weight)} takes {weight[1]}{grouped}"
    check_channels(op, x, axes, computed(operator.mul, weight[1], groups), takes)
    _check_bias(op, biases, made)
    return (*x[: -1 - axes], made, *window.counts(op, x))


def transposed_convolution(
    op: str, operands: Sequence[Dims], window: Window, groups: Dim, more: Dims
) -> Dims:
    """Return the shape of a transposed convolution."""
    window.check_output_padding(op, more)
    axes, (x, weight, *biases) = len(window.kernel), operands
    channels, made = x[-1 - axes], computed(operator.mul, weight[1], groups)
    check_division(op, "groups", groups, {"in_channels": channels})
    takes = f"the weight of shape {written(weight)} takes {weight[0]}"
    check_channels(op, x, axes, weight[0], takes)
    _check_bias(op, biases, made)
    return (*x[: -1 - axes], made, *window.extents(op, x, more))


def check_channels(op: str, x: Dims, axes: int, taken: Dim, takes: str) -> None:
    """Raise ShapeError if the channels in front of the last axes are not those that are taken."""
    if differ(x[-1 - axes], taken):
        raise ShapeError(
            f"{op}: channels differ: the input of shape {written(x)} has {x[-1 - axes]}, {takes}"
        )


def _check_bias(op: str, biases: Sequence[Dims], channels: Dim) -> None:
    for bias in biases:
        if len(bias) != 1 or differ(bias[0], channels):
            raise ShapeError(
                f"{op}: the bias must have shape {written((channels,))}, one number per output "
                f"channel, got {written(bias)}"
            )


def pooling(op: str, shape: Dims, window: Window) -> Dims:
    """Return the shape of an image reduced by windows, each of which holds some of the image."""
    window.check_padding(op)
    counts, axes = window.counts(op, shape), len(window.kernel)
    numbers = (shape[-axes:], counts, window.stride, window.padding, window.dilation)
    for along in zip(*numbers, strict=True):
        known = [one.literal for one in along if one.literal is not None]
        if len(known) == len(along) and holds_padding_alone(*known):
            raise ShapeError(
                f"{op}: a window of {written(window.kernel)} with padding "
                f"{written(window.padding)} and dilation {written(window.dilation)} holds nothing "
                f"but padding of the input of shape {written(shape)}"
            )
    return (*shape[:-axes], *counts)


def holds_padding_alone(size: int, count: int, stride: int, padding: int, dilation: int) -> bool:
    """Tell whether one of `count` windows along an axis reads nothing of the image.

    With a padding of at most half of the window, only one that begins before the image may.
    """
    # The first of its elements that does not lie before the image lies behind it.
    return any(start % dilation >= size for start in range(-padding, 0, stride)[:count])


def check_stretch(op: str, shape: Dims, size: Dims) -> None:
    """Raise ShapeError if an image would surely become smaller."""
    for have, want in zip(shape[-2:], size, strict=True):
        if have.literal is not None and want.literal is not None and want.literal < have.literal:
            raise ShapeError(
                f"{op}: an input of shape {written(shape)} cannot be stretched to {written(size)}; "
                "interpolate and avg_pool2d make images smaller"
            )


def fold(op: str, shape: Dims, size: Dims, window: Window) -> Dims:
    """Return the shape of images of a size that are put together of their windows."""
    area, count = product(window.kernel), product(window.counts(op, size))
    if len(shape) < 2 or is_left_over(shape[-2], area) or are_other_numbers(shape[-1], count):
        raise ShapeError(
            f"{op}: for images of size {written(size)} and windows of {written(window.kernel)} the "
            f"input must have shape (..., C * {area}, {count}), got {written(shape)}"
        )
    return (*shape[:-2], quotient(shape[-2], area), *size)


def pixel_shuffle(op: str, shape: Dims, factor: Dim) -> Dims:
    """Return the shape of images with fewer channels and more pixels."""
    check_rank(op, shape, 2)
    channels, area = shape[-3], product((factor, factor))
    if is_left_over(channels, area):
        raise ShapeError(
            f"{op}: the {channels} channels of shape {written(shape)} are no multiple of {area}, "
            "the pixels of a square"
        )
    sizes = [product((size, factor)) for size in shape[-2:]]
    return (*shape[:-3], quotient(channels, area), *sizes)


def pixel_unshuffle(op: str, shape: Dims, factor: Dim) -> Dims:
    """Return the shape of images with more channels and fewer pixels."""
    check_rank(op, shape, 2)
    if any(is_left_over(size, factor) for size in shape[-2:]):
        raise ShapeError(
            f"{op}: the height and the width of shape {written(shape)} are no multiples of {factor}"
        )
    sizes = [quotient(size, factor) for size in shape[-2:]]
    return (*shape[:-3], product((shape[-3], factor, factor)), *sizes)


def _is_nothing(size: Dim) -> bool:
    return size.literal is not None and size.literal < 1


def _count(size: Size, kernel: Size, stride: Size, padding: Size, dilation: Size) -> Dim:
    fitting = _TWO * padding - dilation * (kernel - ONE) - ONE + stride
    return stepped(size, fitting, stride)


def _extent(
    size: Size, kernel: Size, stride: Size, padding: Size, dilation: Size, more: Size
) -> Size:
    return (size - ONE) * stride + dilation * (kernel - ONE) - _TWO * padding + more + ONE
