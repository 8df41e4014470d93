"""Layers that add a trained vector."""

from __future__ import annotations

from typing import Any, Generic, overload

import numpy as np

from tapetensor.errors import ShapeError
from tapetensor.nn import init
from tapetensor.nn.arguments import check_input, check_size, check_weight_dtype
from tapetensor.nn.module import Module
from tapetensor.nn.typing import W
from tapetensor.tape import NoneTape
from tapetensor.tensor import Tensor, Tensor1D
from tapetensor.typing import Ds, K, M, N, T


class Bias1d(Module, Generic[N, W]):
    """Add a trained vector along the last axis.

        x + bias

    Shape: ``(*Ds, N) -> (*Ds, N)``.
    Initialization: 0.

    Args:
        features: the size of the last axis, > 0.
        dtype: float32 or float64.

    >>> import tapetensor as tt
    >>> from tapetensor import nn
    >>> nn.Bias1d(2).forward(tt.ones((3, 2))).shape
    (3, 2)
    """

    bias: Tensor1D[N, NoneTape, W]
    features: N

    @overload
    def __init__(self: Bias1d[N, np.float32], features: N) -> None: ...
    @overload
    def __init__(self, features: N, dtype: type[W]) -> None: ...
    def __init__(self, features: N, dtype: type[Any] = np.float32) -> None:
        self.features = check_size("Bias1d", "features", features)
        self.bias = _zeros("Bias1d", features, dtype)

    def forward(self, x: Tensor[tuple[*Ds, N], T, W]) -> Tensor[tuple[*Ds, N], T, W]:
        """Return ``x + bias``.

        Raises:
            ShapeError: if the last axis of `x` does not have the size of the layer.
            DTypeError: if `x` has another dtype than the bias.
        """
        check_input("Bias1d", x, self.bias, self.features)
        return x + self.bias


class Bias2d(Module, Generic[N, W]):
    """Add a trained number to every channel of an image.

        x[..., c, :, :] + bias[c]

    Shape: ``(*Ds, N, K, M) -> (*Ds, N, K, M)``: channels, rows, columns.
    Initialization: 0.

    Args:
        channels: the number of channels, > 0.
        dtype: float32 or float64.

    >>> import tapetensor as tt
    >>> from tapetensor import nn
    >>> nn.Bias2d(2).forward(tt.ones((5, 2, 3, 3))).shape
    (5, 2, 3, 3)
    """

    bias: Tensor1D[N, NoneTape, W]
    channels: N

    @overload
    def __init__(self: Bias2d[N, np.float32], channels: N) -> None: ...
    @overload
    def __init__(self, channels: N, dtype: type[W]) -> None: ...
    def __init__(self, channels: N, dtype: type[Any] = np.float32) -> None:
        self.channels = check_size("Bias2d", "channels", channels)
        self.bias = _zeros("Bias2d", channels, dtype)

    def forward(self, x: Tensor[tuple[*Ds, N, K, M], T, W]) -> Tensor[tuple[*Ds, N, K, M], T, W]:
        """Return `x` with the number of its channel added to every element.

        Raises:
            ShapeError: if the third axis from the end does not have the size of the layer.
            DTypeError: if `x` has another dtype than the bias.
        """
        check_input("Bias2d", x, self.bias)
        shape = x._data.shape
        if shape[-3:-2] != (self.channels,):
            raise ShapeError(
                f"Bias2d: the input must have shape (..., {self.channels}, rows, columns), "
                f"got {shape}"
            )
        # With a tape where the input has one: the new shape is part of what is differentiated.
        bias = self.bias.retaped(x.tape_type)
        per_channel: Any = bias.reshape((self.channels, 1, 1))
        result: Tensor[tuple[*Ds, N, K, M], T, W] = x + per_channel
        return result


def _zeros(layer: str, size: int, dtype: object) -> Tensor[Any, NoneTape, Any]:
    return init.make(init.zeros, (size,), check_weight_dtype(layer, dtype), init.NO_RANDOMNESS)
