"""Layers that make images smaller, or sequences: those are images with one row."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, Generic, overload
from typing import Literal as L

from tapetensor.errors import ShapeError
from tapetensor.nn.arguments import as_sizes, on_axes
from tapetensor.nn.module import Module
from tapetensor.nn.typing import (
    KERNEL,
    ONE,
    ZERO,
    Dilation,
    Dilation2d,
    Kernel,
    Kernel2d,
    Padding,
    Padding2d,
    PoolStride,
    PoolStride2d,
)
from tapetensor.rules.dims import sized
from tapetensor.rules.windows import Window, check_rank
from tapetensor.tensor import Tensor, avg_pool2d, max_pool2d, min_pool2d
from tapetensor.tensor.base import check_tensor
from tapetensor.typing import Ds, F, K, M, N, T


class Pool(Module, Generic[Kernel2d, PoolStride2d, Padding2d, Dilation2d]):
    """The base of layers that make one number of every window."""

    # The function of images that a class is a module for.
    pool: ClassVar[Callable[..., Tensor[Any, Any, Any]]]
    # Along how many axes windows are slid.
    axes: ClassVar[int] = 2

    kernel_size: Kernel2d
    stride: PoolStride2d
    padding: Padding2d
    dilation: Dilation2d

    def __init__(
        self,
        kernel_size: Kernel2d,
        stride: PoolStride2d = KERNEL,
        padding: Padding2d = ZERO,
        dilation: Dilation2d = ONE,
    ) -> None:
        name, axes = type(self).__name__, self.axes
        step: Any = kernel_size if stride is None else stride
        self.kernel_size = as_sizes(name, "kernel_size", kernel_size, axes, low=1)
        self.stride = as_sizes(name, "stride", step, axes, low=1)
        self.padding = as_sizes(name, "padding", padding, axes)
        self.dilation = as_sizes(name, "dilation", dilation, axes, low=1)
        numbers = (self.kernel_size, self.stride, self.padding, self.dilation)
        Window(*[sized(on_axes(one, axes)) for one in numbers]).check_padding(name)


class Pool2d(Pool[Kernel2d, PoolStride2d, Padding2d, Dilation2d], init=False):
    """The same, of images."""

    @overload
    def forward(
        self: Pool2d[L[3], L[1], L[1], L[1]], x: Tensor[tuple[*Ds, K, M, N], T, F]
    ) -> Tensor[tuple[*Ds, K, M, N], T, F]: ...
    @overload
    def forward(
        self, x: Tensor[tuple[*Ds, K, M, N], T, F]
    ) -> Tensor[tuple[*Ds, K, Any, Any], T, F]: ...
    def forward(self, x: Tensor[Any, Any, Any]) -> Tensor[Any, Any, Any]:
        """Return the number that each window makes.

        Raises:
            ShapeError: if the window is larger than the padded input.
        """
        options = {"stride": self.stride, "padding": self.padding, "dilation": self.dilation}
        return self.pool(x, self.kernel_size, **options)


class AvgPool2d(Pool2d[Kernel2d, PoolStride2d, Padding2d, Dilation2d], init=False):
    """The mean of every window: `tapetensor.avg_pool2d` as a module.

    The numbers are the layer's type arguments too, so `tapetensor.build` makes a layer from
    ``nn.AvgPool2d[L[2]]``, and ``nn.AvgPool2d[L[3], L[2], L[1]]`` has stride 2 and padding 1.

    Shape: ``(*Ds, C, H, W) -> (*Ds, C, H', W')`` with
        ``H' = floor((H + 2 padding - dilation (kernel - 1) - 1) / stride) + 1``, and so for the
        width.

    Args:
        kernel_size: the size of the window, > 0; one number for both axes, or one for each, as all
            numbers may be: ``tuple[L[2], L[1]]``.
        stride: how far apart windows stand, > 0; by default as far as they are large.
        padding: how many pixels are put around, from 0 to half of the window; its zeros count.
        dilation: how far apart the elements of a window are, > 0.

    Raises:
        ArgumentValueError: if a number is outside its range.

    >>> import tapetensor as tt
    >>> from tapetensor import nn
    >>> nn.AvgPool2d(2).forward(tt.ones((1, 3, 8, 6))).shape
    (1, 3, 4, 3)
    """

    pool = staticmethod(avg_pool2d)


class MaxPool2d(Pool2d[Kernel2d, PoolStride2d, Padding2d, Dilation2d], init=False):
    """The largest element of every window: `tapetensor.max_pool2d` as a module.

    The numbers are the layer's type arguments too, so `tapetensor.build` makes a layer from
    ``nn.MaxPool2d[L[2]]``, and ``nn.MaxPool2d[L[3], L[2], L[1]]`` has stride 2 and padding 1.

    Shape: ``(*Ds, C, H, W) -> (*Ds, C, H', W')`` with
        ``H' = floor((H + 2 padding - dilation (kernel - 1) - 1) / stride) + 1``, and so for the
        width.

    Args:
        kernel_size: the size of the window, > 0; one number for both axes, or one for each, as all
            numbers may be: ``tuple[L[2], L[1]]``.
        stride: how far apart windows stand, > 0; by default as far as they are large.
        padding: how many pixels are put around, from 0 to half of the window; it never
            wins.
        dilation: how far apart the elements of a window are, > 0.

    Raises:
        ArgumentValueError: if a number is outside its range.

    >>> import tapetensor as tt
    >>> from tapetensor import nn
    >>> nn.MaxPool2d(2).forward(tt.ones((1, 3, 8, 6))).shape
    (1, 3, 4, 3)
    """

    pool = staticmethod(max_pool2d)


class MinPool2d(Pool2d[Kernel2d, PoolStride2d, Padding2d, Dilation2d], init=False):
    """The smallest element of every window: `tapetensor.min_pool2d` as a module.

    The numbers are the layer's type arguments too, so `tapetensor.build` makes a layer from
    ``nn.MinPool2d[L[2]]``, and ``nn.MinPool2d[L[3], L[2], L[1]]`` has stride 2 and padding 1.

    Shape: ``(*Ds, C, H, W) -> (*Ds, C, H', W')`` with
        ``H' = floor((H + 2 padding - dilation (kernel - 1) - 1) / stride) + 1``, and so for the
        width.

    Args:
        kernel_size: the size of the window, > 0; one number for both axes, or one for each, as all
            numbers may be: ``tuple[L[2], L[1]]``.
        stride: how far apart windows stand, > 0; by default as far as they are large.
        padding: how many pixels are put around, from 0 to half of the window; it never
            wins.
        dilation: how far apart the elements of a window are, > 0.

    Raises:
        ArgumentValueError: if a number is outside its range.

    >>> import tapetensor as tt
    >>> from tapetensor import nn
    >>> nn.MinPool2d(2).forward(tt.ones((1, 3, 8, 6))).shape
    (1, 3, 4, 3)
    """

    pool = staticmethod(min_pool2d)


class GlobalPool2d(Module):
    """The base of layers that make one number of every channel."""

    # The method that a class is a module for.
    reduction: ClassVar[Callable[..., Tensor[Any, Any, Any]]]

    def forward(self, x: Tensor[tuple[*Ds, K, M, N], T, F]) -> Tensor[tuple[*Ds, K], T, F]:
        """Return the number that the last two axes make.

        Raises:
            ShapeError: if `x` has fewer than three axes, or no pixels to take the largest or the
                smallest of.
        """
        check_tensor(type(self).__name__, "the input", x)
        check_rank(type(self).__name__, x._array.shape, 2)
        return self.reduction(x, axis=(-2, -1))


class GlobalAvgPool2d(GlobalPool2d):
    """The mean of every channel.

    Shape: ``(*Ds, C, H, W) -> (*Ds, C)``.

    >>> import tapetensor as tt
    >>> from tapetensor import nn
    >>> nn.GlobalAvgPool2d().forward(tt.ones((5, 3, 8, 6))).shape
    (5, 3)
    """

    reduction = staticmethod(Tensor.mean)


class GlobalMaxPool2d(GlobalPool2d):
    """The largest element of every channel.

    Shape: ``(*Ds, C, H, W) -> (*Ds, C)``.

    >>> import tapetensor as tt
    >>> from tapetensor import nn
    >>> nn.GlobalMaxPool2d().forward(tt.ones((5, 3, 8, 6))).shape
    (5, 3)
    """

    reduction = staticmethod(Tensor.max)


class GlobalMinPool2d(GlobalPool2d):
    """The smallest element of every channel.

    Shape: ``(*Ds, C, H, W) -> (*Ds, C)``.

    >>> import tapetensor as tt
    >>> from tapetensor import nn
    >>> nn.GlobalMinPool2d().forward(tt.ones((5, 3, 8, 6))).shape
    (5, 3)
    """

    reduction = staticmethod(Tensor.min)


class Pool1d(Pool[Kernel, PoolStride, Padding, Dilation], init=False):
    """The base of layers that make one number of every window of a sequence."""

    axes = 1

    def forward(self, x: Tensor[tuple[*Ds, K, N], T, F]) -> Tensor[tuple[*Ds, K, Any], T, F]:
        """Return the number that each window makes.

        Raises:
            ShapeError: if `x` has fewer than two axes, or the window is larger than the padded
                input.
        """
        name = type(self).__name__
        check_tensor(name, "the input", x)
        length = x._array.shape[-1] + 2 * self.padding if x.ndim > 1 else 0
        span = self.dilation * (self.kernel_size - 1) + 1
        if length < span:
            raise ShapeError(
                f"{name}: takes (*Ds, C, L) with a window of {span} or more, padding "
                f"{self.padding} counted twice; the input has shape {x._array.shape}"
            )
        rows: Any = x.expand_dims(-2)
        pooled: Any = self.pool(
            rows,
            (1, self.kernel_size),
            stride=(1, self.stride),
            padding=(0, self.padding),
            dilation=(1, self.dilation),
        )
        found: Tensor[tuple[*Ds, K, Any], T, F] = pooled.squeeze(-2)
        return found


class AvgPool1d(Pool1d[Kernel, PoolStride, Padding, Dilation], init=False):
    """The mean of every window of a sequence: `tapetensor.avg_pool2d` of one row as a module.

    The numbers are the layer's type arguments too, so `tapetensor.build` makes a layer from
    ``nn.AvgPool1d[L[2]]``, and ``nn.AvgPool1d[L[3], L[2], L[1]]`` has stride 2 and padding 1.

    Shape: ``(*Ds, C, L) -> (*Ds, C, L')`` with
        ``L' = floor((L + 2 padding - dilation (kernel - 1) - 1) / stride) + 1``.
    Derivative: each cotangent is shared alike by the elements of its window.

    Args:
        kernel_size: the size of the window, > 0.
        stride: how far apart windows stand, > 0; by default as far as they are large.
        padding: how many elements are put at each end, from 0 to half of the window; its zeros
            count.
        dilation: how far apart the elements of a window are, > 0.

    Raises:
        ArgumentValueError: if a number is outside its range.

    >>> import tapetensor as tt
    >>> from tapetensor import nn
    >>> nn.AvgPool1d(2).forward(tt.from_numpy([[1.0, 3.0, 5.0, 7.0]], (1, 4)))
    Tensor([[2., 6.]], shape=(1, 2), dtype=float32, NoneTape)
    """

    pool = staticmethod(avg_pool2d)


class MaxPool1d(Pool1d[Kernel, PoolStride, Padding, Dilation], init=False):
    """The largest element of every window of a sequence: `tapetensor.max_pool2d` of one row.

    The numbers are the layer's type arguments too, so `tapetensor.build` makes a layer from
    ``nn.MaxPool1d[L[2]]``, and ``nn.MaxPool1d[L[3], L[2], L[1]]`` has stride 2 and padding 1.

    Shape: ``(*Ds, C, L) -> (*Ds, C, L')`` with
        ``L' = floor((L + 2 padding - dilation (kernel - 1) - 1) / stride) + 1``.
    Derivative: 1 for the largest element; ties share it equally.

    Args:
        kernel_size: the size of the window, > 0.
        stride: how far apart windows stand, > 0; by default as far as they are large.
        padding: how many elements are put at each end, from 0 to half of the window; it never
            wins.
        dilation: how far apart the elements of a window are, > 0.

    Raises:
        ArgumentValueError: if a number is outside its range.

    >>> import tapetensor as tt
    >>> from tapetensor import nn
    >>> nn.MaxPool1d(2).forward(tt.from_numpy([[1.0, 3.0, 7.0, 5.0]], (1, 4)))
    Tensor([[3., 7.]], shape=(1, 2), dtype=float32, NoneTape)
    """

    pool = staticmethod(max_pool2d)
