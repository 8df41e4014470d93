"""Convolution layers, and those that make sequences and images larger."""

from __future__ import annotations

import math
from typing import Any, ClassVar, Generic, overload
from typing import Literal as L

import numpy as np
from typing_extensions import override

from tapetensor.arguments import as_flag, as_size, check_choice, check_rng
from tapetensor.arrays.array import as_floating_dtype
from tapetensor.nn import init
from tapetensor.nn.arguments import as_sizes, check_input, on_axes
from tapetensor.nn.module import Module
from tapetensor.nn.typing import (
    ONE,
    ZERO,
    ConvPadding,
    ConvPadding2d,
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
from tapetensor.rules.dims import Size, sized
from tapetensor.rules.windows import Window, check_division, check_same_size
from tapetensor.tape import NoneTape
from tapetensor.tensor import Tensor, Tensor1D, conv1d, conv2d, conv_transpose1d, conv_transpose2d
from tapetensor.typing import Ds, M, N, T


class Convolution(
    Module,
    Generic[In, Out, Kernel2d, Stride2d, ConvPadding2d, Dilation2d, Groups],
):
    """The base of convolution layers: their numbers and their initial weights."""

    # Along how many axes windows are slid.
    axes: ClassVar[int]

    in_channels: In
    out_channels: Out
    kernel_size: Kernel2d
    stride: Stride2d
    padding: ConvPadding2d
    dilation: Dilation2d
    groups: Groups

    def _set_sizes(self, *numbers: Any) -> None:
        """Set the numbers of a layer, given in the order of the fields."""
        name, axes = type(self).__name__, self.axes
        in_channels, out_channels, kernel_size, stride, padding, dilation, groups = numbers
        self.in_channels = as_size(name, "in_channels", in_channels, low=1)
        self.out_channels = as_size(name, "out_channels", out_channels, low=1)
        self.kernel_size = as_sizes(name, "kernel_size", kernel_size, axes, low=1)
        self.stride = as_sizes(name, "stride", stride, axes, low=1)
        self.padding = self._padding(padding)
        self.dilation = as_sizes(name, "dilation", dilation, axes, low=1)
        self.groups = as_size(name, "groups", groups, low=1)
        ends = {one: Size.of(getattr(self, one)) for one in ("in_channels", "out_channels")}
        check_division(name, "groups", Size.of(self.groups), ends)

    def _padding(self, padding: Any) -> Any:
        name = type(self).__name__
        if not isinstance(padding, str):
            return as_sizes(name, "padding", padding, self.axes)
        check_choice(name, "padding", padding, ("same",))
        check_same_size(name, sized(on_axes(self.stride, self.axes)))
        return padding

    def _first_weights(
        self, channels: tuple[int, int], dtype: object, has_bias: bool, rng: np.random.Generator
    ) -> tuple[Tensor[Any, NoneTape, Any], Tensor[Any, NoneTape, Any] | None]:
        """Return the weight, of these channels and the kernel, and the bias."""
        name = type(self).__name__
        scalar_type = as_floating_dtype(name, "weights", dtype)
        check_rng(name, rng)
        as_flag(name, "bias", has_bias)
        kernel = on_axes(self.kernel_size, self.axes)
        fan_in = self.in_channels // self.groups * math.prod(kernel)
        uniform = init.uniform(1.0 / math.sqrt(fan_in))
        weight = init.make(uniform, (*channels, *kernel), scalar_type, rng)
        bias = init.make(uniform, (self.out_channels,), scalar_type, rng) if has_bias else None
        return weight, bias

    def _numbers(self) -> dict[str, Any]:
        """Return what the functions take by keyword."""
        names = ("stride", "padding", "dilation", "groups")
        return {name: getattr(self, name) for name in names}

    def _padded(self, x: Any) -> tuple[Any, dict[str, Any]]:
        """Return the input and the numbers, those of a padding that keeps the size worked out."""
        numbers = self._numbers()
        if self.padding != "same":
            return x, numbers
        spans = [on_axes(one, self.axes) for one in (self.kernel_size, self.dilation)]
        added = [dilation * (kernel - 1) for kernel, dilation in zip(*spans, strict=True)]
        numbers["padding"] = tuple([one // 2 for one in added])
        # What is odd has one more at the end, as in PyTorch.
        odd = [(0, one % 2) for one in added]
        if any(map(any, odd)) and x.ndim > self.axes:
            x = x.pad((*[(0, 0)] * (x.ndim - self.axes), *odd))
        return x, numbers


class Conv1d(
    Convolution[In, Out, Kernel, Stride, ConvPadding, Dilation, Groups],
    Generic[In, Out, Kernel, Stride, ConvPadding, Dilation, Groups, W],
):
    """A kernel per output channel, slid over sequences.

        conv1d(x, weight) + bias

    The numbers are the layer's type arguments too, so `tapetensor.build` makes a layer from
    ``nn.Conv1d[L[3], L[16], L[3]]``, and ``nn.Conv1d[L[3], L[16], L[3], L[2], L[1]]`` has stride 2
    and padding 1.

    Shape: ``(*Ds, in_channels, L) -> (*Ds, out_channels, L')`` with
        ``L' = floor((L + 2 padding - dilation (kernel - 1) - 1) / stride) + 1``. Plain typing knows
        the size where it stays as it is: a kernel of 1, 3 or 5, stride 1 and padding 0, 1 or 2,
        or padding "same".
    Initialization: weight and bias uniform in ``(-b, b)`` with
        ``b = 1 / sqrt(in_channels / groups * kernel)``, as PyTorch's.

    Args:
        in_channels: how many channels go in, > 0.
        out_channels: how many come out, > 0.
        kernel_size: the size of the kernel, > 0.
        stride: how far apart windows stand, > 0.
        padding: how many zeros are put at both ends, >= 0; "same" for as many as keep the length.
        dilation: how far apart the elements of a window are, > 0.
        groups: into how many groups the channels are parted, each convolved by itself; > 0.
        dtype: float32 or float64.
        bias: whether a number per output channel is added; without, the field is None.
        rng: draws the initial values.

    Raises:
        ArgumentValueError: if a number is outside its range, `groups` does not divide both numbers
            of channels, or a stride does not keep the size that `padding` is to keep.

    >>> import tapetensor as tt
    >>> from tapetensor import nn
    >>> layer = nn.Conv1d(3, 4, 3, padding=1, rng=np.random.default_rng(0))
    >>> layer.forward(tt.zeros((5, 3, 8))).shape
    (5, 4, 8)
    """

    axes = 1

    weight: Tensor[tuple[Out, Any, Kernel], NoneTape, W]
    bias: Tensor1D[Out, NoneTape, W] | None

    def __init__(
        self,
        in_channels: In,
        out_channels: Out,
        kernel_size: Kernel,
        stride: Stride = ONE,
        padding: ConvPadding = ZERO,
        dilation: Dilation = ONE,
        groups: Groups = ONE,
        dtype: type[W] = np.float32,  # type: ignore[assignment]  # the default of W
        *,
        bias: bool = True,
        rng: np.random.Generator,
    ) -> None:
        self._set_sizes(in_channels, out_channels, kernel_size, stride, padding, dilation, groups)
        channels = (self.out_channels, self.in_channels // self.groups)
        self.weight, self.bias = self._first_weights(channels, dtype, bias, rng)

    @overload
    def forward(
        self: Conv1d[In, Out, L[1], L[1], L[0], Dilation, Groups, W],
        x: Tensor[tuple[*Ds, In, M], T, W],
    ) -> Tensor[tuple[*Ds, Out, M], T, W]: ...
    @overload
    def forward(
        self: Conv1d[In, Out, L[3], L[1], L[1], L[1], Groups, W],
        x: Tensor[tuple[*Ds, In, M], T, W],
    ) -> Tensor[tuple[*Ds, Out, M], T, W]: ...
    @overload
    def forward(
        self: Conv1d[In, Out, L[5], L[1], L[2], L[1], Groups, W],
        x: Tensor[tuple[*Ds, In, M], T, W],
    ) -> Tensor[tuple[*Ds, Out, M], T, W]: ...
    @overload
    def forward(
        self: Conv1d[In, Out, Kernel, L[1], L["same"], Dilation, Groups, W],
        x: Tensor[tuple[*Ds, In, M], T, W],
    ) -> Tensor[tuple[*Ds, Out, M], T, W]: ...
    @overload
    def forward(self, x: Tensor[tuple[*Ds, In, M], T, W]) -> Tensor[tuple[*Ds, Out, Any], T, W]: ...
    def forward(self, x: Tensor[Any, Any, Any]) -> Tensor[Any, Any, Any]:
        """Return ``conv1d(x, weight) + bias``.

        Raises:
            ShapeError: if the channels are not `in_channels`, or the kernel is larger than the
                padded input.
            DTypeError: if `x` has another dtype than the weights.
        """
        check_input("Conv1d", x, self.weight)
        padded, numbers = self._padded(x)
        return conv1d(padded, self.weight, self.bias, **numbers)


class Conv2d(
    Convolution[In, Out, Kernel2d, Stride2d, ConvPadding2d, Dilation2d, Groups],
    Generic[In, Out, Kernel2d, Stride2d, ConvPadding2d, Dilation2d, Groups, W],
):
    """A kernel per output channel, slid over images.

        conv2d(x, weight) + bias

    The numbers are the layer's type arguments too, so `tapetensor.build` makes a layer from
    ``nn.Conv2d[L[3], L[16], L[3]]``, and ``nn.Conv2d[L[3], L[16], L[3], L[2], L[1]]`` has stride 2
    and padding 1. A kernel of 5 rows and 3 columns is ``tuple[L[5], L[3]]``, and so are strides.

    Shape: ``(*Ds, in_channels, H, W) -> (*Ds, out_channels, H', W')`` with
        ``H' = floor((H + 2 padding - dilation (kernel - 1) - 1) / stride) + 1``, and so for
        the width. Plain typing knows the sizes where they stay as they are: a kernel of 1, 3 or 5,
        stride 1 and padding 0, 1 or 2, or padding "same".
    Initialization: weight and bias uniform in ``(-b, b)`` with
        ``b = 1 / sqrt(in_channels / groups * kernel ** 2)``, as PyTorch's.

    Args:
        in_channels: how many channels go in, > 0.
        out_channels: how many come out, > 0.
        kernel_size: the size of the kernel, > 0; one number for both axes, or one for each.
        stride: how far apart windows stand, > 0; likewise.
        padding: how many zeros are put around, >= 0; likewise, or "same" for as many as keep the
            size, one more below and to the right where they are odd.
        dilation: how far apart the elements of a window are, > 0; one number, or one for each axis.
        groups: into how many groups the channels are parted, each convolved by itself; > 0.
        dtype: float32 or float64.
        bias: whether a number per output channel is added; without, the field is None.
        rng: draws the initial values.

    Raises:
        ArgumentValueError: if a number is outside its range, `groups` does not divide both numbers
            of channels, or a stride does not keep the size that `padding` is to keep.

    >>> import tapetensor as tt
    >>> from tapetensor import nn
    >>> layer = nn.Conv2d(3, 4, 3, padding=1, rng=np.random.default_rng(0))
    >>> layer.forward(tt.zeros((5, 3, 8, 8))).shape
    (5, 4, 8, 8)
    """

    axes = 2

    weight: Tensor[tuple[Out, Any, Any, Any], NoneTape, W]
    bias: Tensor1D[Out, NoneTape, W] | None

    def __init__(
        self,
        in_channels: In,
        out_channels: Out,
        kernel_size: Kernel2d,
        stride: Stride2d = ONE,
        padding: ConvPadding2d = ZERO,
        dilation: Dilation2d = ONE,
        groups: Groups = ONE,
        dtype: type[W] = np.float32,  # type: ignore[assignment]  # the default of W
        *,
        bias: bool = True,
        rng: np.random.Generator,
    ) -> None:
        self._set_sizes(in_channels, out_channels, kernel_size, stride, padding, dilation, groups)
        channels = (self.out_channels, self.in_channels // self.groups)
        self.weight, self.bias = self._first_weights(channels, dtype, bias, rng)

    @overload
    def forward(
        self: Conv2d[In, Out, L[1], L[1], L[0], Dilation2d, Groups, W],
        x: Tensor[tuple[*Ds, In, M, N], T, W],
    ) -> Tensor[tuple[*Ds, Out, M, N], T, W]: ...
    @overload
    def forward(
        self: Conv2d[In, Out, L[3], L[1], L[1], L[1], Groups, W],
        x: Tensor[tuple[*Ds, In, M, N], T, W],
    ) -> Tensor[tuple[*Ds, Out, M, N], T, W]: ...
    @overload
    def forward(
        self: Conv2d[In, Out, L[5], L[1], L[2], L[1], Groups, W],
        x: Tensor[tuple[*Ds, In, M, N], T, W],
    ) -> Tensor[tuple[*Ds, Out, M, N], T, W]: ...
    @overload
    def forward(
        self: Conv2d[In, Out, Kernel2d, L[1], L["same"], Dilation2d, Groups, W],
        x: Tensor[tuple[*Ds, In, M, N], T, W],
    ) -> Tensor[tuple[*Ds, Out, M, N], T, W]: ...
    @overload
    def forward(
        self, x: Tensor[tuple[*Ds, In, M, N], T, W]
    ) -> Tensor[tuple[*Ds, Out, Any, Any], T, W]: ...
    def forward(self, x: Tensor[Any, Any, Any]) -> Tensor[Any, Any, Any]:
        """Return ``conv2d(x, weight) + bias``.

        Raises:
            ShapeError: if the channels are not `in_channels`, or the kernel is larger than the
                padded input.
            DTypeError: if `x` has another dtype than the weights.
        """
        check_input("Conv2d", x, self.weight)
        padded, numbers = self._padded(x)
        return conv2d(padded, self.weight, self.bias, **numbers)


class TransposedConvolution(
    Convolution[In, Out, Kernel2d, Stride2d, Padding2d, Dilation2d, Groups],
    Generic[In, Out, Kernel2d, Stride2d, Padding2d, OutputPadding2d, Dilation2d, Groups],
):
    """The base of transposed convolutions."""

    output_padding: OutputPadding2d

    def _set_output_padding(self, output_padding: OutputPadding2d) -> None:
        name, axes = type(self).__name__, self.axes
        self.output_padding = as_sizes(name, "output_padding", output_padding, axes)
        numbers = (self.kernel_size, self.stride, self.padding, self.dilation, self.output_padding)
        *window, more = [sized(on_axes(one, axes)) for one in numbers]
        Window(*window).check_output_padding(name, more)

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
