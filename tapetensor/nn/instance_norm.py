"""Each channel of each sample made mean 0 and variance 1."""

from __future__ import annotations

import math
from typing import Any

from tapetensor.arguments import as_number
from tapetensor.errors import ShapeError
from tapetensor.nn.module import Module
from tapetensor.tensor import Tensor
from tapetensor.tensor.base import check_tensor
from tapetensor.typing import B, F, K, M, N, T


class InstanceNorm(Module):
    """The base of the instance norms of sequences and of images."""

    eps: float

    def _normalized(self, x: Tensor[Any, Any, Any], rank: int) -> Tensor[Any, Any, Any]:
        name = type(self).__name__
        check_tensor(name, "the input", x)
        shape = x._array.shape
        if len(shape) != rank or 0 in shape[2:]:
            axes = "(N, C, L)" if rank == 3 else "(N, C, H, W)"
            raise ShapeError(f"{name}: takes {axes} with elements, the input has shape {shape}")
        return x.reshape((*shape[:2], math.prod(shape[2:]))).normalize(eps=self.eps).reshape(shape)


class InstanceNorm1d(InstanceNorm):
    """Every channel of every sequence made mean 0 and variance 1, in training as in inference.

        (x - mean(x)) / sqrt(var(x) + eps)   over each (n, c)

    It has no parameters, as PyTorch's by default; with a scale and a bias for each channel it is
    ``nn.GroupNorm(channels, channels)``.

    Shape: ``(N, C, L) -> (N, C, L)``.
    Derivative: that of `tapetensor.Tensor.normalize` over the positions.

    Args:
        eps: added to the variance, >= 0.

    Raises:
        ArgumentValueError: if `eps` is negative or not finite.

    Source: Ulyanov, Vedaldi & Lempitsky (2016), "Instance normalization: the missing ingredient for
        fast stylization".

    >>> import tapetensor as tt
    >>> from tapetensor import nn
    >>> nn.InstanceNorm1d(eps=0.0).forward(tt.from_numpy([[[1.0, 3.0]]], (1, 1, 2)))
    Tensor([[[-1.,  1.]]], shape=(1, 1, 2), dtype=float32, NoneTape)
    """

    def __init__(self, eps: float = 1e-5) -> None:
        self.eps = as_number("InstanceNorm1d", "eps", eps, at_least=0)

    def forward(self, x: Tensor[tuple[B, N, K], T, F]) -> Tensor[tuple[B, N, K], T, F]:
        """Return the normalized sequences.

        Raises:
            ShapeError: if `x` has not three axes, or no positions.
        """
        return self._normalized(x, 3)


class InstanceNorm2d(InstanceNorm):
    """Every channel of every image made mean 0 and variance 1, in training as in inference.

        (x - mean(x)) / sqrt(var(x) + eps)   over each (n, c)

    It has no parameters, as PyTorch's by default; with a scale and a bias for each channel it is
    ``nn.GroupNorm(channels, channels)``.

    Shape: ``(N, C, H, W) -> (N, C, H, W)``.
    Derivative: that of `tapetensor.Tensor.normalize` over the pixels.

    Args:
        eps: added to the variance, >= 0.

    Raises:
        ArgumentValueError: if `eps` is negative or not finite.

    Source: Ulyanov, Vedaldi & Lempitsky (2016), "Instance normalization: the missing ingredient for
        fast stylization".

    >>> import tapetensor as tt
    >>> from tapetensor import nn
    >>> nn.InstanceNorm2d(eps=0.0).forward(tt.from_numpy([[[[1.0, 3.0]]]], (1, 1, 1, 2)))
    Tensor([[[[-1.,  1.]]]], shape=(1, 1, 1, 2), dtype=float32, NoneTape)
    """

    def __init__(self, eps: float = 1e-5) -> None:
        self.eps = as_number("InstanceNorm2d", "eps", eps, at_least=0)

    def forward(self, x: Tensor[tuple[B, N, M, K], T, F]) -> Tensor[tuple[B, N, M, K], T, F]:
        """Return the normalized images.

        Raises:
            ShapeError: if `x` has not four axes, or no pixels.
        """
        return self._normalized(x, 4)
