"""Layers that normalize each sample by itself: groups of channels, or each channel."""

from __future__ import annotations

import math
from typing import Any, Generic, overload

import numpy as np

from tapetensor.arguments import as_number, as_size
from tapetensor.arrays.array import as_floating_dtype
from tapetensor.errors import ArgumentValueError, ShapeError
from tapetensor.nn import init
from tapetensor.nn.arguments import check_input
from tapetensor.nn.module import Module
from tapetensor.nn.typing import W
from tapetensor.tape import NoneTape
from tapetensor.tensor import Tensor, Tensor1D
from tapetensor.tensor.base import check_tensor
from tapetensor.typing import B, Ds, F, K, M, N, T


class GroupNorm(Module, Generic[M, N, W]):
    """Normalize every group of channels of every sample, then scale and shift each channel.

        (x - mean) / sqrt(var + eps) * weight + bias

    With one group it is layer normalization over all but the batch; with as many as there are
    channels it is instance normalization. Training and inference are the same.

    Shape: ``(B, N, *Ds)``, the same out.
    Initialization: weight 1, bias 0.

    Args:
        num_groups: how many groups the channels make, > 0; it divides `num_channels`.
        num_channels: the size of axis 1, > 0.
        dtype: float32 or float64.
        eps: added to the variance, >= 0.

    Source: Wu & He (2018), "Group normalization".

    >>> import tapetensor as tt
    >>> from tapetensor import nn
    >>> x = tt.from_numpy([[1.0, 3.0, 4.0, 8.0]], shape=(1, 4))
    >>> nn.GroupNorm(2, 4).forward(x).numpy().round(3)
    array([[-1.,  1., -1.,  1.]], dtype=float32)
    """

    weight: Tensor1D[N, NoneTape, W]
    bias: Tensor1D[N, NoneTape, W]
    num_groups: M
    num_channels: N
    eps: float

    @overload
    def __init__(
        self: GroupNorm[M, N, np.float32], num_groups: M, num_channels: N, *, eps: float = 1e-5
    ) -> None: ...
    @overload
    def __init__(
        self, num_groups: M, num_channels: N, dtype: type[W], *, eps: float = 1e-5
    ) -> None: ...
    def __init__(
        self,
        num_groups: M,
        num_channels: N,
        dtype: type[Any] = np.float32,
        *,
        eps: float = 1e-5,
    ) -> None:
        self.num_groups = as_size("GroupNorm", "num_groups", num_groups, low=1)
        self.num_channels = as_size("GroupNorm", "num_channels", num_channels, low=1)
        if self.num_channels % self.num_groups:
            raise ArgumentValueError(
                f"GroupNorm: {num_groups} groups do not divide num_channels {num_channels} evenly"
            )
        scalar_type = as_floating_dtype("GroupNorm", "weights", dtype)
        self.eps = as_number("GroupNorm", "eps", eps, at_least=0)
        shape = (self.num_channels,)
        self.weight = init.make(init.ones, shape, scalar_type, init.NO_RANDOMNESS)
        self.bias = init.make(init.zeros, shape, scalar_type, init.NO_RANDOMNESS)

    def forward(self, x: Tensor[tuple[B, N, *Ds], T, W]) -> Tensor[tuple[B, N, *Ds], T, W]:
        """Return the normalized input.

        Raises:
            ShapeError: if `x` has another number of channels than the layer.
            DTypeError: if `x` has another dtype than the weights.
        """
        check_input("GroupNorm", x, self.weight)
        shape: Any = x.shape
        if len(shape) < 2 or shape[1] != self.num_channels:
            raise ShapeError(
                f"GroupNorm: the input must have shape (B, {self.num_channels}, ...), got {shape}"
            )
        grouped = (shape[0], self.num_groups, math.prod(shape[1:]) // self.num_groups)
        normalized = x.reshape(grouped).normalize(eps=self.eps).reshape(x.shape)
        per_channel: Any = (self.num_channels, *[1] * (len(shape) - 2))
        scale: Any = self.weight.reshape(per_channel)
        result: Tensor[Any, Any, Any] = normalized * scale + self.bias.reshape(per_channel)
        return result


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
