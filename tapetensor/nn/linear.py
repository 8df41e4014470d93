"""Matrix products with a trained matrix, and a trained vector that is added."""

from __future__ import annotations

import math
from typing import Any, Generic, overload

import numpy as np

from tapetensor.arguments import as_size, check_rng
from tapetensor.arrays.array import as_floating_dtype
from tapetensor.kernels import linear_algebra
from tapetensor.nn import init
from tapetensor.nn.arguments import check_input
from tapetensor.nn.module import Module
from tapetensor.nn.typing import In, Out, W
from tapetensor.tape import NoneTape
from tapetensor.tensor import Tensor, Tensor1D, Tensor2D
from tapetensor.tensor.apply import apply
from tapetensor.typing import Ds, N, T


class Linear(Module, Generic[In, Out, W]):
    """A matrix product and a shift along the last axis.

        x @ weight.T + bias

    Shape: ``(*Ds, in_features) -> (*Ds, out_features)``.
    Initialization: weight and bias uniform in ``(-1/sqrt(in_features), 1/sqrt(in_features))``, as
        PyTorch's.

    Args:
        in_features: the size of the last axis of the input, > 0.
        out_features: the size of the last axis of the output, > 0.
        dtype: float32 or float64.
        rng: draws the initial values.

    >>> import tapetensor as tt
    >>> from tapetensor import nn
    >>> layer = nn.Linear(3, 2, rng=np.random.default_rng(0))
    >>> layer.forward(tt.zeros((5, 3))).shape
    (5, 2)
    """

    weight: Tensor2D[Out, In, NoneTape, W]
    bias: Tensor1D[Out, NoneTape, W]
    in_features: In
    out_features: Out

    @overload
    def __init__(
        self: Linear[In, Out, np.float32],
        in_features: In,
        out_features: Out,
        *,
        rng: np.random.Generator,
    ) -> None: ...
    @overload
    def __init__(
        self, in_features: In, out_features: Out, dtype: type[W], *, rng: np.random.Generator
    ) -> None: ...
    def __init__(
        self,
        in_features: In,
        out_features: Out,
        dtype: type[Any] = np.float32,
        *,
        rng: np.random.Generator,
    ) -> None:
        self.in_features = as_size("Linear", "in_features", in_features, low=1)
        self.out_features = as_size("Linear", "out_features", out_features, low=1)
        scalar_type = as_floating_dtype("Linear", "weights", dtype)
        uniform = init.uniform(1.0 / math.sqrt(self.in_features))
        check_rng("Linear", rng)
        shape = (self.out_features, self.in_features)
        self.weight = init.make(uniform, shape, scalar_type, rng)
        self.bias = init.make(uniform, (self.out_features,), scalar_type, rng)

    def forward(self, x: Tensor[tuple[*Ds, In], T, W]) -> Tensor[tuple[*Ds, Out], T, W]:
        """Return ``x @ weight.T + bias``.

        Raises:
            ShapeError: if the last axis of `x` does not have the size `in_features`.
            DTypeError: if `x` has another dtype than the weights.
        """
        check_input("Linear", x, self.weight, self.in_features)
        return apply(linear_algebra.linear, (x, self.weight, self.bias))


class UnbiasedLinear(Module, Generic[In, Out, W]):
    """A matrix product along the last axis, without a shift.

        x @ weight.T

    A class of its own, and not an option of `Linear`, so that the type says there is no bias.

    Shape: ``(*Ds, in_features) -> (*Ds, out_features)``.
    Initialization: uniform in ``(-1/sqrt(in_features), 1/sqrt(in_features))``, as PyTorch's.

    Args:
        in_features: the size of the last axis of the input, > 0.
        out_features: the size of the last axis of the output, > 0.
        dtype: float32 or float64.
        rng: draws the initial values.

    >>> import tapetensor as tt
    >>> from tapetensor import nn
    >>> layer = nn.UnbiasedLinear(3, 2, rng=np.random.default_rng(0))
    >>> layer.forward(tt.zeros((1, 3)))
    Tensor([[0., 0.]], shape=(1, 2), dtype=float32, NoneTape)
    """

    weight: Tensor2D[Out, In, NoneTape, W]
    in_features: In
    out_features: Out

    @overload
    def __init__(
        self: UnbiasedLinear[In, Out, np.float32],
        in_features: In,
        out_features: Out,
        *,
        rng: np.random.Generator,
    ) -> None: ...
    @overload
    def __init__(
        self, in_features: In, out_features: Out, dtype: type[W], *, rng: np.random.Generator
    ) -> None: ...
    def __init__(
        self,
        in_features: In,
        out_features: Out,
        dtype: type[Any] = np.float32,
        *,
        rng: np.random.Generator,
    ) -> None:
        self.in_features = as_size("UnbiasedLinear", "in_features", in_features, low=1)
        self.out_features = as_size("UnbiasedLinear", "out_features", out_features, low=1)
        scalar_type = as_floating_dtype("UnbiasedLinear", "weights", dtype)
        uniform = init.uniform(1.0 / math.sqrt(self.in_features))
        check_rng("UnbiasedLinear", rng)
        shape = (self.out_features, self.in_features)
        self.weight = init.make(uniform, shape, scalar_type, rng)

    def forward(self, x: Tensor[tuple[*Ds, In], T, W]) -> Tensor[tuple[*Ds, Out], T, W]:
        """Return ``x @ weight.T``.

        Raises:
            ShapeError: if the last axis of `x` does not have the size `in_features`.
            DTypeError: if `x` has another dtype than the weight.
        """
        check_input("UnbiasedLinear", x, self.weight, self.in_features)
        return apply(linear_algebra.unbiased_linear, (x, self.weight))


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
