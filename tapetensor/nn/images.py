"""Layers that stretch images, shift their channels, or give examples another shape."""

from __future__ import annotations

import math
from typing import Any, Generic

import numpy as np
from typing_extensions import TypeVarTuple

from tapetensor.arguments import as_flag, as_size, check_choice
from tapetensor.arrays.array import as_floating_dtype
from tapetensor.errors import ShapeError
from tapetensor.nn import init
from tapetensor.nn.arguments import as_sizes, check_input
from tapetensor.nn.module import Module
from tapetensor.nn.typing import ONE, ZERO, Dilation2d, Kernel, Kernel2d, Padding2d, Stride2d, W
from tapetensor.rules.windows import check_rank
from tapetensor.tape import NoneTape
from tapetensor.tensor import Tensor, Tensor1D, pixel_shuffle, pixel_unshuffle, unfold, upscale2d
from tapetensor.tensor.base import check_tensor
from tapetensor.tensor.images import Mode
from tapetensor.typing import B, D, Ds, F, K, M, N, P, Q, T


class Upscale2d(Module, Generic[M, N]):
    """Images stretched to a size: `tapetensor.upscale2d` as a module.

    The size is the layer's type arguments too: ``nn.Upscale2d[L[32], L[32]]``.

    Shape: ``(*Ds, C, H, W) -> (*Ds, C, height, width)``.

    Args:
        height: of the output, > 0 and not less than that of the input.
        width: the same.
        mode: "nearest", "bilinear" or "bicubic".
        align_corners: as for `tapetensor.upscale2d`.

    Raises:
        ArgumentValueError: if a size is not > 0, or the mode is another.

    >>> import tapetensor as tt
    >>> from tapetensor import nn
    >>> nn.Upscale2d(8, 9).forward(tt.ones((5, 3, 4, 4))).shape
    (5, 3, 8, 9)
    """

    height: M
    width: N
    mode: Mode
    align_corners: bool

    def __init__(
        self, height: M, width: N, mode: Mode = "nearest", *, align_corners: bool = True
    ) -> None:
        self.height = as_size("Upscale2d", "height", height, low=1)
        self.width = as_size("Upscale2d", "width", width, low=1)
        check_choice("Upscale2d", "mode", mode, ("nearest", "bilinear", "bicubic"))
        self.mode = mode
        self.align_corners = as_flag("Upscale2d", "align_corners", align_corners)

    def forward(self, x: Tensor[tuple[*Ds, K, P, Q], T, F]) -> Tensor[tuple[*Ds, K, M, N], T, F]:
        """Return `x` stretched.

        Raises:
            ShapeError: if the output is to be smaller than `x`.
        """
        size = (self.height, self.width)
        return upscale2d(x, size, self.mode, align_corners=self.align_corners)


class Upscale2dBy(Module, Generic[Kernel]):
    """Images stretched so many times in both directions.

    The factor is the layer's type argument too: ``nn.Upscale2dBy[L[2]]``.

    Shape: ``(*Ds, C, H, W) -> (*Ds, C, factor * H, factor * W)``.

    Args:
        factor: how many times, > 0.
        mode: "nearest", "bilinear" or "bicubic".
        align_corners: as for `tapetensor.upscale2d`.

    Raises:
        ArgumentValueError: if the factor is not > 0, or the mode is another.

    >>> import tapetensor as tt
    >>> from tapetensor import nn
    >>> nn.Upscale2dBy(2).forward(tt.ones((5, 3, 4, 6))).shape
    (5, 3, 8, 12)
    """

    factor: Kernel
    mode: Mode
    align_corners: bool

    def __init__(
        self, factor: Kernel, mode: Mode = "nearest", *, align_corners: bool = True
    ) -> None:
        self.factor = as_size("Upscale2dBy", "factor", factor, low=1)
        check_choice("Upscale2dBy", "mode", mode, ("nearest", "bilinear", "bicubic"))
        self.mode = mode
        self.align_corners = as_flag("Upscale2dBy", "align_corners", align_corners)

    def forward(
        self, x: Tensor[tuple[*Ds, K, M, N], T, F]
    ) -> Tensor[tuple[*Ds, K, Any, Any], T, F]:
        """Return `x` stretched.

        Raises:
            ShapeError: if `x` has fewer than three axes, or no pixels.
        """
        check_tensor("Upscale2dBy", "the input", x)
        check_rank("Upscale2dBy", x._array.shape, 2)
        *_, height, width = x._array.shape
        size = (self.factor * height, self.factor * width)
        return upscale2d(x, size, self.mode, align_corners=self.align_corners)


class PixelShuffle(Module, Generic[Kernel]):
    """The channels of every pixel as a square of pixels: `tapetensor.pixel_shuffle` as a module.

    The factor is the layer's type argument too: ``nn.PixelShuffle[L[2]]``.

    Shape: ``(*Ds, C factor**2, H, W) -> (*Ds, C, factor * H, factor * W)``.

    Args:
        factor: how many times larger images become, > 0.

    Raises:
        ArgumentValueError: if the factor is not > 0.

    >>> import tapetensor as tt
    >>> from tapetensor import nn
    >>> nn.PixelShuffle(2).forward(tt.ones((5, 12, 4, 6))).shape
    (5, 3, 8, 12)
    """

    factor: Kernel

    def __init__(self, factor: Kernel) -> None:
        self.factor = as_size("PixelShuffle", "factor", factor, low=1)

    def forward(
        self, x: Tensor[tuple[*Ds, K, M, N], T, D]
    ) -> Tensor[tuple[*Ds, Any, Any, Any], T, D]:
        """Return `x` with fewer channels and more pixels.

        Raises:
            ShapeError: if the channels are no multiple of ``factor**2``.
        """
        return pixel_shuffle(x, self.factor)


class PixelUnshuffle(Module, Generic[Kernel]):
    """The pixels of every square as channels: `tapetensor.pixel_unshuffle` as a module.

    The factor is the layer's type argument too: ``nn.PixelUnshuffle[L[2]]``.

    Shape: ``(*Ds, C, H, W) -> (*Ds, C factor**2, H / factor, W / factor)``.

    Args:
        factor: how many times smaller images become, > 0.

    Raises:
        ArgumentValueError: if the factor is not > 0.

    >>> import tapetensor as tt
    >>> from tapetensor import nn
    >>> nn.PixelUnshuffle(2).forward(tt.ones((5, 3, 4, 6))).shape
    (5, 12, 2, 3)
    """

    factor: Kernel

    def __init__(self, factor: Kernel) -> None:
        self.factor = as_size("PixelUnshuffle", "factor", factor, low=1)

    def forward(
        self, x: Tensor[tuple[*Ds, K, M, N], T, D]
    ) -> Tensor[tuple[*Ds, Any, Any, Any], T, D]:
        """Return `x` with more channels and fewer pixels.

        Raises:
            ShapeError: if the height or the width is no multiple of the factor.
        """
        return pixel_unshuffle(x, self.factor)


class Unfold(Module, Generic[Kernel2d, Stride2d, Padding2d, Dilation2d]):
    """The elements of every window of images as a column: `tapetensor.unfold` as a module.

    The numbers are the layer's type arguments too: ``nn.Unfold[tuple[L[3], L[1]], L[2]]``.

    Shape: ``(*Ds, C, H, W) -> (*Ds, C kh kw, H' W')`` with
        ``H' = floor((H + 2 padding - dilation (kernel - 1) - 1) / stride) + 1``, and so for the
        width.

    Args:
        kernel_size: the size of the window, > 0; one number for both axes, or one for each, as all
            numbers may be.
        stride: how far apart windows stand, > 0. This and the following go by name, for PyTorch has
            them in another order.
        padding: how many zeros are put around, >= 0.
        dilation: how far apart the elements of a window are, > 0.

    Raises:
        ArgumentValueError: if a number is outside its range.

    >>> import tapetensor as tt
    >>> from tapetensor import nn
    >>> nn.Unfold((2, 1), stride=(2, 1)).forward(tt.ones((5, 3, 4, 6))).shape
    (5, 6, 12)
    """

    kernel_size: Kernel2d
    stride: Stride2d
    padding: Padding2d
    dilation: Dilation2d

    def __init__(
        self,
        kernel_size: Kernel2d,
        *,
        stride: Stride2d = ONE,
        padding: Padding2d = ZERO,
        dilation: Dilation2d = ONE,
    ) -> None:
        self.kernel_size = as_sizes("Unfold", "kernel_size", kernel_size, 2, low=1)
        self.stride = as_sizes("Unfold", "stride", stride, 2, low=1)
        self.padding = as_sizes("Unfold", "padding", padding, 2)
        self.dilation = as_sizes("Unfold", "dilation", dilation, 2, low=1)

    def forward(self, x: Tensor[tuple[*Ds, K, M, N], T, F]) -> Tensor[tuple[*Ds, Any, Any], T, F]:
        """Return a column for each window.

        Raises:
            ShapeError: if the window is larger than the padded input.
        """
        options: Any = {"stride": self.stride, "padding": self.padding, "dilation": self.dilation}
        return unfold(x, self.kernel_size, **options)


class Bias2d(Module, Generic[N, W]):
    """A number per channel, added to every pixel.

        x[..., c, h, w] + bias[c]

    For a convolution that is made without one, where something stands between the two.

    Shape: ``(*Ds, channels, H, W)``, the same out.
    Initialization: 0.

    Args:
        channels: how many there are, > 0.
        dtype: float32 or float64.

    >>> import tapetensor as tt
    >>> from tapetensor import nn
    >>> nn.Bias2d(3).forward(tt.ones((5, 3, 4, 4))).shape
    (5, 3, 4, 4)
    """

    bias: Tensor1D[N, NoneTape, W]
    channels: N

    def __init__(
        self,
        channels: N,
        dtype: type[W] = np.float32,  # type: ignore[assignment]  # the default of W
    ) -> None:
        self.channels = as_size("Bias2d", "channels", channels, low=1)
        scalar_type = as_floating_dtype("Bias2d", "weights", dtype)
        self.bias = init.make(init.zeros, (self.channels,), scalar_type, init.NO_RANDOMNESS)

    def forward(self, x: Tensor[tuple[*Ds, N, P, Q], T, W]) -> Tensor[tuple[*Ds, N, P, Q], T, W]:
        """Return `x` with its channels shifted.

        Raises:
            ShapeError: if `x` has another number of channels than the layer.
            DTypeError: if `x` has another dtype than the bias.
        """
        check_input("Bias2d", x, self.bias)
        shape: tuple[int, ...] = x._array.shape
        check_rank("Bias2d", shape, 2)
        if shape[-3] != self.channels:
            raise ShapeError(
                f"Bias2d: the input must have shape (..., {self.channels}, H, W), got {shape}"
            )
        column: Any = self.bias.reshape((self.channels, 1, 1))
        result: Tensor[tuple[*Ds, N, P, Q], T, W] = x + column
        return result


class Flatten(Module):
    """Every element of a batch as one row of features.

    Shape: ``(B, *Ds) -> (B, product of Ds)``.

    >>> import tapetensor as tt
    >>> from tapetensor import nn
    >>> nn.Flatten().forward(tt.ones((5, 3, 4, 6))).shape
    (5, 72)
    """

    def forward(self, x: Tensor[tuple[B, *Ds], T, D]) -> Tensor[tuple[B, Any], T, D]:
        """Return `x` with all axes but the first made one.

        Raises:
            ShapeError: if `x` has no axes.
        """
        check_tensor("Flatten", "the input", x)
        if not x._array.shape:
            raise ShapeError("Flatten: the input must have shape (B, ...), got ()")
        batch, *rest = x._array.shape
        size: Any = math.prod(rest)
        return x.reshape((batch, size))


# The dims of an example. For ``tuple[Any, ...]`` in its place mypy 2.0 refuses every input.
Gs = TypeVarTuple("Gs")


class Reshape(Module, Generic[*Ds]):
    """Bring every example of a batch into another shape.

    Shape: ``(B, ...) -> (B, *sizes)``, with as many elements.

    Args:
        *sizes: the shape of one example.

    >>> from typing import Literal as L
    >>> import numpy as np
    >>> import tapetensor as tt
    >>> from tapetensor import nn
    >>> layer = tt.build(nn.Reshape[L[2], L[3]], rng=np.random.default_rng(0))
    >>> layer.forward(tt.ones((5, 6))).shape
    (5, 2, 3)
    """

    sizes: tuple[*Ds]

    def __init__(self, *sizes: *Ds) -> None:
        for size in sizes:
            as_size("Reshape", "a size", size)
        self.sizes = sizes

    def forward(self, x: Tensor[tuple[B, *Gs], T, D]) -> Tensor[tuple[B, *Ds], T, D]:
        """Return every example in the shape of the layer.

        Raises:
            ShapeError: if an example does not hold as many elements.
        """
        check_tensor("Reshape", "the input", x)
        shape: tuple[int, ...] = x._array.shape
        sizes: Any = self.sizes
        if not shape or math.prod(shape[1:]) != math.prod(sizes):
            raise ShapeError(
                f"Reshape: examples of shape {sizes} were asked for, "
                f"the input has shape {shape}, whose first axis is the batch"
            )
        result: Tensor[tuple[B, *Ds], T, D] = x.reshape((shape[0], *sizes))
        return result
