"""Layers that add a trained vector."""

from __future__ import annotations

from typing import Any, Generic, overload

import numpy as np

from tapetensor.arguments import as_size
from tapetensor.arrays.array import as_floating_dtype
from tapetensor.nn import init
from tapetensor.nn.arguments import check_input
from tapetensor.nn.module import Module
from tapetensor.nn.typing import W
from tapetensor.tape import NoneTape
from tapetensor.tensor import Tensor, Tensor1D
from tapetensor.typing import Ds, N, T


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
        self.features = as_size("Bias1d", "features", features, low=1)
        scalar_type = as_floating_dtype("Bias1d", "weights", dtype)
        self.bias = init.make(init.zeros, (self.features,), scalar_type, init.NO_RANDOMNESS)

    def forward(self, x: Tensor[tuple[*Ds, N], T, W]) -> Tensor[tuple[*Ds, N], T, W]:
        """Return ``x + bias``.

        Raises:
            ShapeError: if the last axis of `x` does not have the size of the layer.
            DTypeError: if `x` has another dtype than the bias.
        """
        check_input("Bias1d", x, self.bias, self.features)
        return x + self.bias
