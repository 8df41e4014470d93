"""The layer that normalizes by the root of the mean square alone."""

from __future__ import annotations

from typing import Any, Generic, overload

import numpy as np

from tapetensor.arguments import as_number, as_size
from tapetensor.arrays.array import as_floating_dtype
from tapetensor.kernels import normalization as kernels
from tapetensor.nn import init
from tapetensor.nn.arguments import check_input
from tapetensor.nn.module import Module
from tapetensor.nn.typing import W
from tapetensor.tape import NoneTape
from tapetensor.tensor import Tensor, Tensor1D
from tapetensor.tensor.apply import apply
from tapetensor.typing import Ds, N, T


class RMSNorm(Module, Generic[N, W]):
    """Divide the last axis by the root of its mean square, then scale.

        x / sqrt(mean(x ** 2) + eps) * weight

    Shape: ``(*Ds, N) -> (*Ds, N)``.
    Derivative: ``(g - xhat * mean(g * xhat)) / sqrt(mean(x ** 2) + eps)`` for `x`, with ``g`` the
        cotangent times the weight and ``xhat`` the normalized input.
    Initialization: weight 1.

    Args:
        normalized_features: the size of the last axis, > 0.
        dtype: float32 or float64.
        eps: added to the mean square, >= 0. (PyTorch takes the smallest step from 1 of the dtype,
            if none is given.)

    Source: Zhang & Sennrich (2019), "Root mean square layer normalization".

    >>> import tapetensor as tt
    >>> from tapetensor import nn
    >>> nn.RMSNorm(2).forward(tt.from_numpy([[1.0, 7.0]], shape=(1, 2))).numpy().round(3)
    array([[0.2, 1.4]], dtype=float32)
    """

    weight: Tensor1D[N, NoneTape, W]
    normalized_features: N
    eps: float

    @overload
    def __init__(
        self: RMSNorm[N, np.float32], normalized_features: N, *, eps: float = 1e-6
    ) -> None: ...
    @overload
    def __init__(self, normalized_features: N, dtype: type[W], *, eps: float = 1e-6) -> None: ...
    def __init__(
        self, normalized_features: N, dtype: type[Any] = np.float32, *, eps: float = 1e-6
    ) -> None:
        size = as_size("RMSNorm", "normalized_features", normalized_features, low=1)
        scalar_type = as_floating_dtype("RMSNorm", "weights", dtype)
        self.eps = as_number("RMSNorm", "eps", eps, at_least=0)
        self.normalized_features = size
        self.weight = init.make(init.ones, (size,), scalar_type, init.NO_RANDOMNESS)

    def forward(self, x: Tensor[tuple[*Ds, N], T, W]) -> Tensor[tuple[*Ds, N], T, W]:
        """Return the normalized input.

        Raises:
            ShapeError: if the last axis of `x` does not have the size of the layer.
            DTypeError: if `x` has another dtype than the weight.
        """
        check_input("RMSNorm", x, self.weight, self.normalized_features)
        return apply(kernels.rms_norm, (x, self.weight), (self.eps,))
