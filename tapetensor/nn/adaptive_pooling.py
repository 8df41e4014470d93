"""Means over as many bins as wanted, whatever the size of the input."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Generic

import numpy as np

from tapetensor.arguments import as_size
from tapetensor.arrays.array import Array
from tapetensor.errors import ShapeError
from tapetensor.nn.module import Module
from tapetensor.tensor import Tensor
from tapetensor.tensor.base import check_floating, check_tensor
from tapetensor.tensor.creation import constant_beside
from tapetensor.typing import Ds, F, K, M, N, P, Q, T


class AdaptiveAvgPool1d(Module, Generic[N]):
    """The means of so many bins of a sequence, of whatever length that is.

        y[i] = mean(x[floor(i * L / size) : ceil((i + 1) * L / size)])

    The size is the layer's type argument too: ``nn.AdaptiveAvgPool1d[L[4]]``.

    Shape: ``(*Ds, C, L) -> (*Ds, C, size)``.
    Derivative: each cotangent is shared alike by the positions of its bin; bins may overlap.

    Args:
        size: the length of the output, > 0.

    Raises:
        ArgumentValueError: if it is not > 0.

    Source: PyTorch's `AdaptiveAvgPool1d`.

    >>> import tapetensor as tt
    >>> from tapetensor import nn
    >>> nn.AdaptiveAvgPool1d(2).forward(tt.from_numpy([[1.0, 2.0, 6.0]], (1, 3)))
    Tensor([[1.5, 4. ]], shape=(1, 2), dtype=float32, NoneTape)
    """

    size: N

    def __init__(self, size: N) -> None:
        self.size = as_size("AdaptiveAvgPool1d", "size", size, low=1)

    def forward(self, x: Tensor[tuple[*Ds, K, P], T, F]) -> Tensor[tuple[*Ds, K, N], T, F]:
        """Return the means.

        Raises:
            ShapeError: if `x` has fewer than two axes, or no positions.
            DTypeError: if it is not floating.
        """
        _check("AdaptiveAvgPool1d", x, 1)
        found: Tensor[tuple[*Ds, K, N], T, F] = _averaged(x, self.size)
        return found


class AdaptiveAvgPool2d(Module, Generic[M, N]):
    """The means of so many bins of an image, of whatever size that is.

    Along each axis as `AdaptiveAvgPool1d`; `GlobalAvgPool2d` is the one with a single bin, without
    the axes. The size is the layer's type arguments too: ``nn.AdaptiveAvgPool2d[L[7], L[7]]``.

    Shape: ``(*Ds, C, H, W) -> (*Ds, C, height, width)``.
    Derivative: each cotangent is shared alike by the pixels of its bin; bins may overlap.

    Args:
        height: of the output, > 0.
        width: the same.

    Raises:
        ArgumentValueError: if a size is not > 0.

    Source: PyTorch's `AdaptiveAvgPool2d`.

    >>> import tapetensor as tt
    >>> from tapetensor import nn
    >>> nn.AdaptiveAvgPool2d(2, 1).forward(tt.ones((5, 3, 8, 9))).shape
    (5, 3, 2, 1)
    """

    height: M
    width: N

    def __init__(self, height: M, width: N) -> None:
        self.height = as_size("AdaptiveAvgPool2d", "height", height, low=1)
        self.width = as_size("AdaptiveAvgPool2d", "width", width, low=1)

    def forward(self, x: Tensor[tuple[*Ds, K, P, Q], T, F]) -> Tensor[tuple[*Ds, K, M, N], T, F]:
        """Return the means.

        Raises:
            ShapeError: if `x` has fewer than three axes, or no pixels.
            DTypeError: if it is not floating.
        """
        _check("AdaptiveAvgPool2d", x, 2)
        columns = _averaged(x, self.width).transpose()
        found: Tensor[tuple[*Ds, K, M, N], T, F] = _averaged(columns, self.height).transpose()
        return found


def _check(name: str, x: Tensor[Any, Any, Any], axes: int) -> None:
    check_tensor(name, "the input", x)
    check_floating(name, x)
    shape = x.array.shape
    if len(shape) <= axes or 0 in shape[-axes:]:
        wanted = "(*Ds, C, L)" if axes == 1 else "(*Ds, C, H, W)"
        raise ShapeError(f"{name}: takes {wanted} with elements, the input has shape {shape}")


def _averaged(x: Tensor[Any, Any, Any], size: int) -> Any:
    """Return the means of the bins along the last axis."""
    shares = _shares(x.array.shape[-1], size)
    return x @ constant_beside(x, shares)


@lru_cache(maxsize=64)
def _shares(length: int, size: int) -> Array:
    """Return how much each position counts in each bin, ``(length, size)``."""
    shares = np.zeros((length, size))
    for one in range(size):
        start, stop = one * length // size, -(-(one + 1) * length // size)
        shares[start:stop, one] = 1.0 / (stop - start)
    return shares
