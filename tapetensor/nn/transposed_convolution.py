"""Convolution layers that make sequences and images larger."""

from __future__ import annotations

from typing import Any, Generic

import numpy as np
from typing_extensions import override

from tapetensor.errors import ArgumentValueError
from tapetensor.nn.arguments import as_sizes, check_input, on_axes
from tapetensor.nn.convolution import Convolution
from tapetensor.nn.typing import (
    ONE,
    ZERO,
    Dilation,
    Dilation2d,
    Groups,
    In,
    Kernel,
    Kernel2d,
    Out,
    OutputPadding,
    OutputPadding2d,
    Padding,
    Padding2d,
    Stride,
    Stride2d,
    W,
)
from tapetensor.tape import NoneTape
from tapetensor.tensor import Tensor, Tensor1D, conv_transpose1d, conv_transpose2d
from tapetensor.typing import Ds, M, N, T


class TransposedConvolution(
    Convolution[In, Out, Kernel2d, Stride2d, Padding2d, Dilation2d, Groups],
    Generic[In, Out, Kernel2d, Stride2d, Padding2d, OutputPadding2d, Dilation2d, Groups],
):
    """The base of transposed convolutions."""

    output_padding: OutputPadding2d

    def _set_output_padding(self, output_padding: OutputPadding2d) -> None:
        name, axes = type(self).__name__, self.axes
        self.output_padding = as_sizes(name, "output_padding", output_padding, axes)
        numbers = (self.output_padding, self.stride, self.dilation)
        along = zip(*[on_axes(one, axes) for one in numbers], strict=True)
        if any(more >= max(stride, dilation) for more, stride, dilation in along):
            raise ArgumentValueError(
                f"{name}: output_padding must be less than the stride {self.stride} or the "
                f"dilation {self.dilation}, got {output_padding}"
            )

    @override
    def _padding(self, padding: Any) -> Any:
        # What is cut off here has no size to keep.
        return as_sizes(type(self).__name__, "padding", padding, self.axes)

    @override
    def _numbers(self) -> dict[str, Any]:
        return super()._numbers() | {"output_padding": self.output_padding}


class ConvTranspose1d(
    TransposedConvolution[In, Out, Kernel, Stride, Padding, OutputPadding, Dilation, Groups],
    Generic[In, Out, Kernel, Stride, Padding, OutputPadding, Dilation, Groups, W],
):
    """A kernel per input channel that every element writes: `Conv1d` transposed.

        conv_transpose1d(x, weight) + bias

    The numbers are the layer's type arguments too: `tapetensor.build` makes a layer that doubles
    the length from ``nn.ConvTranspose1d[L[16], L[8], L[2], L[2]]``.

    Shape: ``(*Ds, in_channels, L) -> (*Ds, out_channels, L')`` with
        ``L' = (L - 1) stride - 2 padding + dilation (kernel - 1) + output_padding + 1``.
    Initialization: weight and bias uniform in ``(-b, b)`` with
        ``b = 1 / sqrt(in_channels / groups * kernel)``.

    Args:
        in_channels: how many channels go in, > 0.
        out_channels: how many come out, > 0.
        kernel_size: the size of the kernel, > 0.
        stride: how far apart the windows that are written stand, > 0.
        padding: how many elements are cut off at both ends, >= 0.
        output_padding: how many elements are left at the end, >= 0 and less than the stride or the
            dilation.
        dilation: how far apart the elements of a window are, > 0.
        groups: into how many groups the channels are parted, each convolved by itself; > 0.
        dtype: float32 or float64.
        bias: whether a number per output channel is added; without, the field is None.
        rng: draws the initial values.

    Raises:
        ArgumentValueError: if a number is outside its range, or `groups` does not divide both
            numbers of channels.

    >>> import tapetensor as tt
    >>> from tapetensor import nn
    >>> layer = nn.ConvTranspose1d(3, 4, 2, stride=2, rng=np.random.default_rng(0))
    >>> layer.forward(tt.zeros((5, 3, 8))).shape
    (5, 4, 16)
    """

    axes = 1

    weight: Tensor[tuple[In, Any, Kernel], NoneTape, W]
    bias: Tensor1D[Out, NoneTape, W] | None

    def __init__(
        self,
        in_channels: In,
        out_channels: Out,
        kernel_size: Kernel,
        stride: Stride = ONE,
        padding: Padding = ZERO,
        output_padding: OutputPadding = ZERO,
        dilation: Dilation = ONE,
        groups: Groups = ONE,
        dtype: type[W] = np.float32,  # type: ignore[assignment]  # the default of W
        *,
        bias: bool = True,
        rng: np.random.Generator,
    ) -> None:
        self._set_sizes(in_channels, out_channels, kernel_size, stride, padding, dilation, groups)
        self._set_output_padding(output_padding)
        channels = (self.in_channels, self.out_channels // self.groups)
        self.weight, self.bias = self._first_weights(channels, dtype, bias, rng)

    def forward(self, x: Tensor[tuple[*Ds, In, N], T, W]) -> Tensor[tuple[*Ds, Out, Any], T, W]:
        """Return ``conv_transpose1d(x, weight) + bias``.

        Raises:
            ShapeError: if the channels are not `in_channels`, or nothing is left of the output.
            DTypeError: if `x` has another dtype than the weights.
        """
        check_input("ConvTranspose1d", x, self.weight)
        return conv_transpose1d(x, self.weight, self.bias, **self._numbers())


class ConvTranspose2d(
    TransposedConvolution[
        In, Out, Kernel2d, Stride2d, Padding2d, OutputPadding2d, Dilation2d, Groups
    ],
    Generic[In, Out, Kernel2d, Stride2d, Padding2d, OutputPadding2d, Dilation2d, Groups, W],
):
    """A kernel per input channel that every pixel writes: `Conv2d` transposed, to enlarge images.

        conv_transpose2d(x, weight) + bias

    The numbers are the layer's type arguments too: `tapetensor.build` makes a layer that doubles
    both sizes from ``nn.ConvTranspose2d[L[16], L[8], L[2], L[2]]``.

    Shape: ``(*Ds, in_channels, H, W) -> (*Ds, out_channels, H', W')`` with
        ``H' = (H - 1) stride - 2 padding + dilation (kernel - 1) + output_padding + 1``, and so for
        the width.
    Initialization: weight and bias uniform in ``(-b, b)`` with
        ``b = 1 / sqrt(in_channels / groups * kernel ** 2)``.

    Args:
        in_channels: how many channels go in, > 0.
        out_channels: how many come out, > 0.
        kernel_size: the size of the kernel, > 0; one number for both axes, or one for each, as all
            numbers of the window may be.
        stride: how far apart the windows that are written stand, > 0.
        padding: how many pixels are cut off all around, >= 0.
        output_padding: how many pixels are left below and to the right, >= 0 and less than the
            stride or the dilation.
        dilation: how far apart the elements of a window are, > 0.
        groups: into how many groups the channels are parted, each convolved by itself; > 0.
        dtype: float32 or float64.
        bias: whether a number per output channel is added; without, the field is None.
        rng: draws the initial values.

    Raises:
        ArgumentValueError: if a number is outside its range, or `groups` does not divide both
            numbers of channels.

    >>> import tapetensor as tt
    >>> from tapetensor import nn
    >>> layer = nn.ConvTranspose2d(3, 4, 2, stride=2, rng=np.random.default_rng(0))
    >>> layer.forward(tt.zeros((5, 3, 8, 8))).shape
    (5, 4, 16, 16)
    """

    axes = 2

    weight: Tensor[tuple[In, Any, Any, Any], NoneTape, W]
    bias: Tensor1D[Out, NoneTape, W] | None

    def __init__(
        self,
        in_channels: In,
        out_channels: Out,
        kernel_size: Kernel2d,
        stride: Stride2d = ONE,
        padding: Padding2d = ZERO,
        output_padding: OutputPadding2d = ZERO,
        dilation: Dilation2d = ONE,
        groups: Groups = ONE,
        dtype: type[W] = np.float32,  # type: ignore[assignment]  # the default of W
        *,
        bias: bool = True,
        rng: np.random.Generator,
    ) -> None:
        self._set_sizes(in_channels, out_channels, kernel_size, stride, padding, dilation, groups)
        self._set_output_padding(output_padding)
        channels = (self.in_channels, self.out_channels // self.groups)
        self.weight, self.bias = self._first_weights(channels, dtype, bias, rng)

    def forward(
        self, x: Tensor[tuple[*Ds, In, M, N], T, W]
    ) -> Tensor[tuple[*Ds, Out, Any, Any], T, W]:
        """Return ``conv_transpose2d(x, weight) + bias``.

        Raises:
            ShapeError: if the channels are not `in_channels`, or nothing is left of the output.
            DTypeError: if `x` has another dtype than the weights.
        """
        check_input("ConvTranspose2d", x, self.weight)
        return conv_transpose2d(x, self.weight, self.bias, **self._numbers())
