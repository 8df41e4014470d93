"""Layers that make sequences shorter: those of images with one row."""

from __future__ import annotations

from typing import Any

from tapetensor.errors import ShapeError
from tapetensor.nn.pooling import Pool
from tapetensor.nn.typing import KERNEL, ONE, ZERO, Dilation, Kernel, Padding, PoolStride
from tapetensor.tensor import Tensor, avg_pool2d, max_pool2d
from tapetensor.tensor.base import check_tensor
from tapetensor.typing import Ds, F, K, N, T


class Pool1d(Pool[Kernel, PoolStride, Padding, Dilation]):
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


class AvgPool1d(Pool1d[Kernel, PoolStride, Padding, Dilation]):
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

    def __init__(
        self,
        kernel_size: Kernel,
        stride: PoolStride = KERNEL,
        padding: Padding = ZERO,
        dilation: Dilation = ONE,
    ) -> None:
        self._initialize(kernel_size, stride, padding, dilation)


class MaxPool1d(Pool1d[Kernel, PoolStride, Padding, Dilation]):
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

    def __init__(
        self,
        kernel_size: Kernel,
        stride: PoolStride = KERNEL,
        padding: Padding = ZERO,
        dilation: Dilation = ONE,
    ) -> None:
        self._initialize(kernel_size, stride, padding, dilation)
