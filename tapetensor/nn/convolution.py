"""Convolution layers."""

from __future__ import annotations

import math
from typing import Any, Generic, overload
from typing import Literal as L

import numpy as np

from tapetensor.arguments import as_flag, as_size, check_rng
from tapetensor.arrays.dtypes import as_floating_dtype
from tapetensor.errors import ArgumentValueError
from tapetensor.nn import init
from tapetensor.nn.arguments import check_input
from tapetensor.nn.module import Module
from tapetensor.nn.typing import (
    ONE,
    ZERO,
    Dilation,
    Groups,
    In,
    Kernel,
    Out,
    Padding,
    Stride,
    W,
)
from tapetensor.tape import NoneTape
from tapetensor.tensor import Tensor, Tensor1D, conv1d, conv2d
from tapetensor.typing import Ds, M, N, T


class Convolution(Module, Generic[In, Out, Kernel, Stride, Padding, Dilation, Groups]):
    """What convolution layers have in common: their numbers and how their weights begin."""

    in_channels: In
    out_channels: Out
    kernel_size: Kernel
    stride: Stride
    padding: Padding
    dilation: Dilation
    groups: Groups

    def _set_sizes(
        self,
        in_channels: In,
        out_channels: Out,
        kernel_size: Kernel,
        stride: Stride,
        padding: Padding,
        dilation: Dilation,
        groups: Groups,
    ) -> None:
        name = type(self).__name__
        self.in_channels = as_size(name, "in_channels", in_channels, low=1)
        self.out_channels = as_size(name, "out_channels", out_channels, low=1)
        self.kernel_size = as_size(name, "kernel_size", kernel_size, low=1)
        self.stride = as_size(name, "stride", stride, low=1)
        self.padding = as_size(name, "padding", padding)
        self.dilation = as_size(name, "dilation", dilation, low=1)
        self.groups = as_size(name, "groups", groups, low=1)
        if self.in_channels % self.groups or self.out_channels % self.groups:
            raise ArgumentValueError(
                f"{name}: {groups} groups do not divide in_channels {in_channels} and "
                f"out_channels {out_channels}"
            )

    def _first_weights(
        self,
        channels: tuple[int, int],
        axes: int,
        dtype: object,
        has_bias: bool,
        rng: np.random.Generator,
    ) -> tuple[Tensor[Any, NoneTape, Any], Tensor[Any, NoneTape, Any] | None]:
        """Return the weight, of these channels and so many axes more, and the bias."""
        name = type(self).__name__
        scalar_type = as_floating_dtype(name, "weights", dtype)
        check_rng(name, rng)
        as_flag(name, "bias", has_bias)
        kernel = (self.kernel_size,) * axes
        fan_in = self.in_channels // self.groups * math.prod(kernel)
        uniform = init.uniform(1.0 / math.sqrt(fan_in))
        weight = init.make(uniform, (*channels, *kernel), scalar_type, rng)
        bias = init.make(uniform, (self.out_channels,), scalar_type, rng) if has_bias else None
        return weight, bias

    def _numbers(self) -> dict[str, int]:
        """Return what the functions take by keyword."""
        names = ("stride", "padding", "dilation", "groups")
        return {name: getattr(self, name) for name in names}


class Conv1d(
    Convolution[In, Out, Kernel, Stride, Padding, Dilation, Groups],
    Generic[In, Out, Kernel, Stride, Padding, Dilation, Groups, W],
):
    """A kernel per output channel, slid over sequences.

        conv1d(x, weight) + bias

    The numbers are the layer's type arguments too, so `tapetensor.build` makes a layer from
    ``nn.Conv1d[L[3], L[16], L[3]]``, and ``nn.Conv1d[L[3], L[16], L[3], L[2], L[1]]`` has stride 2
    and padding 1.

    Shape: ``(*Ds, in_channels, L) -> (*Ds, out_channels, L')`` with
        ``L' = floor((L + 2 padding - dilation (kernel - 1) - 1) / stride) + 1``. Plain typing knows
        the size where it stays as it is: a kernel of 1, 3 or 5, stride 1 and padding 0, 1 or 2.
    Initialization: weight and bias uniform in ``(-b, b)`` with
        ``b = 1 / sqrt(in_channels / groups * kernel)``, as PyTorch's.

    Args:
        in_channels: how many channels go in, > 0.
        out_channels: how many come out, > 0.
        kernel_size: the size of the kernel, > 0.
        stride: how far apart windows stand, > 0.
        padding: how many zeros are put at both ends, >= 0.
        dilation: how far apart the elements of a window are, > 0.
        groups: into how many groups the channels are parted, each convolved by itself; > 0.
        dtype: float32 or float64.
        bias: whether a number per output channel is added; without, the field is None.
        rng: where the first values come from.

    Raises:
        ArgumentValueError: if a number is outside its range, or `groups` does not divide both
            numbers of channels.

    >>> import tapetensor as tt
    >>> from tapetensor import nn
    >>> layer = nn.Conv1d(3, 4, 3, padding=1, rng=np.random.default_rng(0))
    >>> layer.forward(tt.zeros((5, 3, 8))).shape
    (5, 4, 8)
    """

    weight: Tensor[tuple[Out, Any, Kernel], NoneTape, W]
    bias: Tensor1D[Out, NoneTape, W] | None

    def __init__(
        self,
        in_channels: In,
        out_channels: Out,
        kernel_size: Kernel,
        stride: Stride = ONE,
        padding: Padding = ZERO,
        dilation: Dilation = ONE,
        groups: Groups = ONE,
        dtype: type[W] = np.float32,  # type: ignore[assignment]  # the default of W
        *,
        bias: bool = True,
        rng: np.random.Generator,
    ) -> None:
        self._set_sizes(in_channels, out_channels, kernel_size, stride, padding, dilation, groups)
        channels = (self.out_channels, self.in_channels // self.groups)
        self.weight, self.bias = self._first_weights(channels, 1, dtype, bias, rng)

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
    def forward(self, x: Tensor[tuple[*Ds, In, M], T, W]) -> Tensor[tuple[*Ds, Out, Any], T, W]: ...
    def forward(self, x: Tensor[Any, Any, Any]) -> Tensor[Any, Any, Any]:
        """Return ``conv1d(x, weight) + bias``.

        Raises:
            ShapeError: if the channels are not `in_channels`, or the kernel is larger than the
                padded input.
            DTypeError: if `x` has another dtype than the weights.
        """
        check_input("Conv1d", x, self.weight)
        return conv1d(x, self.weight, self.bias, **self._numbers())


class Conv2d(
    Convolution[In, Out, Kernel, Stride, Padding, Dilation, Groups],
    Generic[In, Out, Kernel, Stride, Padding, Dilation, Groups, W],
):
    """A kernel per output channel, slid over images.

        conv2d(x, weight) + bias

    The numbers are the layer's type arguments too, so `tapetensor.build` makes a layer from
    ``nn.Conv2d[L[3], L[16], L[3]]``, and ``nn.Conv2d[L[3], L[16], L[3], L[2], L[1]]`` has stride 2
    and padding 1.

    Shape: ``(*Ds, in_channels, H, W) -> (*Ds, out_channels, H', W')`` with
        ``H' = floor((H + 2 padding - dilation (kernel - 1) - 1) / stride) + 1``, and so for
        the width. Plain typing knows the sizes where they stay as they are: a kernel of 1, 3 or 5,
        stride 1 and padding 0, 1 or 2.
    Initialization: weight and bias uniform in ``(-b, b)`` with
        ``b = 1 / sqrt(in_channels / groups * kernel ** 2)``, as PyTorch's.

    Args:
        in_channels: how many channels go in, > 0.
        out_channels: how many come out, > 0.
        kernel_size: the size of the kernel along both axes, > 0.
        stride: how far apart windows stand, > 0.
        padding: how many zeros are put around, >= 0.
        dilation: how far apart the elements of a window are, > 0.
        groups: into how many groups the channels are parted, each convolved by itself; > 0.
        dtype: float32 or float64.
        bias: whether a number per output channel is added; without, the field is None.
        rng: where the first values come from.

    Raises:
        ArgumentValueError: if a number is outside its range, or `groups` does not divide both
            numbers of channels.

    >>> import tapetensor as tt
    >>> from tapetensor import nn
    >>> layer = nn.Conv2d(3, 4, 3, padding=1, rng=np.random.default_rng(0))
    >>> layer.forward(tt.zeros((5, 3, 8, 8))).shape
    (5, 4, 8, 8)
    """

    weight: Tensor[tuple[Out, Any, Kernel, Kernel], NoneTape, W]
    bias: Tensor1D[Out, NoneTape, W] | None

    def __init__(
        self,
        in_channels: In,
        out_channels: Out,
        kernel_size: Kernel,
        stride: Stride = ONE,
        padding: Padding = ZERO,
        dilation: Dilation = ONE,
        groups: Groups = ONE,
        dtype: type[W] = np.float32,  # type: ignore[assignment]  # the default of W
        *,
        bias: bool = True,
        rng: np.random.Generator,
    ) -> None:
        self._set_sizes(in_channels, out_channels, kernel_size, stride, padding, dilation, groups)
        channels = (self.out_channels, self.in_channels // self.groups)
        self.weight, self.bias = self._first_weights(channels, 2, dtype, bias, rng)

    @overload
    def forward(
        self: Conv2d[In, Out, L[1], L[1], L[0], Dilation, Groups, W],
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
        return conv2d(x, self.weight, self.bias, **self._numbers())
