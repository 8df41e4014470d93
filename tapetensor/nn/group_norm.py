"""The layer that normalizes groups of channels, each sample by itself."""

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
from tapetensor.typing import B, Ds, M, N, T


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
            ShapeError: if `x` does not have as many channels as the layer.
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
