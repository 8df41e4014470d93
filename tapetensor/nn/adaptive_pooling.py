"""Means and maxima of a given number of bins, for inputs of any size."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any, ClassVar, Generic

import numpy as np

from tapetensor.arguments import as_size
from tapetensor.arrays.array import Array
from tapetensor.arrays.libraries import like
from tapetensor.errors import ShapeError
from tapetensor.nn.module import Module
from tapetensor.tape.history import next_id
from tapetensor.tensor import Tensor
from tapetensor.tensor.base import check_floating, check_tensor, wrap
from tapetensor.tensor.creation import constant_beside
from tapetensor.typing import Ds, F, K, M, N, P, Q, T


class AdaptivePool1d(Module, Generic[N]):
    """The base of layers that make one number of every bin of a sequence."""

    # Makes one number of every bin, told the sizes of the output.
    reduce: ClassVar[Callable[..., Any]]

    size: N

    def __init__(self, size: N) -> None:
        self.size = as_size(type(self).__name__, "size", size, low=1)

    def forward(self, x: Tensor[tuple[*Ds, K, P], T, F]) -> Tensor[tuple[*Ds, K, N], T, F]:
        """Return the number that each bin makes.

        Raises:
            ShapeError: if `x` has fewer than two axes, or no positions.
            DTypeError: if it is not floating.
        """
        _check(type(self).__name__, x, 1)
        found: Tensor[tuple[*Ds, K, N], T, F] = self.reduce(x, (self.size,))
        return found


class AdaptivePool2d(Module, Generic[M, N]):
    """The same, of images."""

    reduce: ClassVar[Callable[..., Any]]

    height: M
    width: N

    def __init__(self, height: M, width: N) -> None:
        name = type(self).__name__
        self.height = as_size(name, "height", height, low=1)
        self.width = as_size(name, "width", width, low=1)

    def forward(self, x: Tensor[tuple[*Ds, K, P, Q], T, F]) -> Tensor[tuple[*Ds, K, M, N], T, F]:
        """Return the number that each bin makes.

        Raises:
            ShapeError: if `x` has fewer than three axes, or no pixels.
            DTypeError: if it is not floating.
        """
        _check(type(self).__name__, x, 2)
        found: Tensor[tuple[*Ds, K, M, N], T, F] = self.reduce(x, (self.height, self.width))
        return found


def _check(name: str, x: Tensor[Any, Any, Any], axes: int) -> None:
    check_tensor(name, "the input", x)
    check_floating(name, x)
    shape = x._array.shape
    if len(shape) <= axes or 0 in shape[-axes:]:
        wanted = "(*Ds, C, L)" if axes == 1 else "(*Ds, C, H, W)"
        raise ShapeError(f"{name}: takes {wanted} with elements, the input has shape {shape}")


def _averaged(x: Tensor[Any, Any, Any], sizes: tuple[int, ...]) -> Any:
    """Return the means of the bins along the last axes."""
    means: Any = x
    for size in reversed(sizes):
        means = means @ constant_beside(means, _shares(means.shape[-1], size))
        means = means.transpose() if len(sizes) == 2 else means
    return means


def _largest(x: Tensor[Any, Any, Any], sizes: tuple[int, ...]) -> Any:
    """Return the largest elements of the bins along the last axes."""
    first = x.ndim - len(sizes)
    # What a short bin lacks is read behind the end.
    found: Any = x.pad(((0, 0),) * first + ((0, 1),) * len(sizes), value=-math.inf)
    for count, size in enumerate(sizes):
        positions = like(_places(x.shape[first + count], size), x._array)
        found = found.take(wrap(Tensor, positions, next_id(), None), axis=first + 2 * count)
    return found.max(axis=tuple(range(first + 1, found.ndim, 2)))


@lru_cache(maxsize=64)
def _shares(length: int, size: int) -> Array:
    """Return how much each position counts in each bin, ``(length, size)``."""
    shares = np.zeros((length, size))
    for place, (start, stop) in enumerate(_bins(length, size)):
        shares[start:stop, place] = 1.0 / (stop - start)
    return shares


@lru_cache(maxsize=64)
def _places(length: int, size: int) -> Array:
    """Return the positions of bins, ``(size, length of the longest)``, and `length` for none."""
    bins = [range(start, stop) for start, stop in _bins(length, size)]
    return np.array([*itertools.zip_longest(*bins, fillvalue=length)]).T


def _bins(length: int, size: int) -> list[tuple[int, int]]:
    """Return where each bin begins and ends."""
    return [(one * length // size, -(-(one + 1) * length // size)) for one in range(size)]


class AdaptiveAvgPool1d(AdaptivePool1d[N], init=False):
    """The means of a given number of bins of a sequence of any length.

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

    reduce = staticmethod(_averaged)


class AdaptiveAvgPool2d(AdaptivePool2d[M, N], init=False):
    """The means of a given number of bins of an image of any size.

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

    reduce = staticmethod(_averaged)


class AdaptiveMaxPool1d(AdaptivePool1d[N], init=False):
    """The largest elements of a given number of bins of a sequence of any length.

        y[i] = max(x[floor(i * L / size) : ceil((i + 1) * L / size)])

    The size is the layer's type argument too: ``nn.AdaptiveMaxPool1d[L[4]]``.

    Shape: ``(*Ds, C, L) -> (*Ds, C, size)``.
    Derivative: each cotangent goes to the largest element of its bin; ties share it alike.

    Args:
        size: the length of the output, > 0.

    Raises:
        ArgumentValueError: if it is not > 0.

    Source: PyTorch's `AdaptiveMaxPool1d`.

    >>> import tapetensor as tt
    >>> from tapetensor import nn
    >>> nn.AdaptiveMaxPool1d(2).forward(tt.from_numpy([[1.0, 2.0, 6.0]], (1, 3)))
    Tensor([[2., 6.]], shape=(1, 2), dtype=float32, NoneTape)
    """

    reduce = staticmethod(_largest)


class AdaptiveMaxPool2d(AdaptivePool2d[M, N], init=False):
    """The largest elements of a given number of bins of an image of any size.

    Along each axis as `AdaptiveMaxPool1d`; `GlobalMaxPool2d` is the one with a single bin, without
    the axes. The size is the layer's type arguments too: ``nn.AdaptiveMaxPool2d[L[7], L[7]]``.

    Shape: ``(*Ds, C, H, W) -> (*Ds, C, height, width)``.
    Derivative: each cotangent goes to the largest pixel of its bin; ties share it alike.

    Args:
        height: of the output, > 0.
        width: the same.

    Raises:
        ArgumentValueError: if a size is not > 0.

    Source: PyTorch's `AdaptiveMaxPool2d`.

    >>> import tapetensor as tt
    >>> from tapetensor import nn
    >>> nn.AdaptiveMaxPool2d(2, 1).forward(tt.ones((5, 3, 8, 9))).shape
    (5, 3, 2, 1)
    """

    reduce = staticmethod(_largest)
