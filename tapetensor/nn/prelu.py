"""Rectifiers with a slope that is trained."""

from __future__ import annotations

from typing import Any, Generic, overload

import numpy as np

from tapetensor.arguments import as_number, as_size
from tapetensor.arrays.array import as_floating_dtype
from tapetensor.errors import ShapeError
from tapetensor.nn import init
from tapetensor.nn.arguments import check_input
from tapetensor.nn.module import Module
from tapetensor.nn.typing import W
from tapetensor.tape import NoneTape
from tapetensor.tensor import Tensor, Tensor1D
from tapetensor.typing import B, Ds, N, S, T


class PReLU(Module, Generic[W]):
    """A leaky rectifier with one trained slope.

        x  if x > 0  else  weight * x

    Shape: that of the input.
    Initialization: the weight, of shape ``(1,)`` as PyTorch's, is `init`.

    Args:
        dtype: float32 or float64.
        init: the slope to begin with, finite.

    Source: He et al. (2015), "Delving deep into rectifiers".

    >>> import tapetensor as tt
    >>> from tapetensor import nn
    >>> nn.PReLU().forward(tt.from_numpy([-4.0, 2.0], shape=(2,)))
    Tensor([-1.,  2.], shape=(2,), dtype=float32, NoneTape)
    """

    weight: Tensor[tuple[Any], NoneTape, W]

    @overload
    def __init__(self: PReLU[np.float32], *, init: float = 0.25) -> None: ...
    @overload
    def __init__(self, dtype: type[W], *, init: float = 0.25) -> None: ...
    def __init__(self, dtype: type[Any] = np.float32, *, init: float = 0.25) -> None:
        self.weight = _slopes("PReLU", 1, dtype, init)

    def forward(self, x: Tensor[S, T, W]) -> Tensor[S, T, W]:
        """Return `x` with what is not positive multiplied by the slope.

        Raises:
            DTypeError: if `x` has another dtype than the weight.
        """
        check_input("PReLU", x, self.weight)
        return x.prelu(self.weight.reshape(()))


class PReLU1d(Module, Generic[N, W]):
    """A leaky rectifier with one trained slope per channel.

        x[:, c]  if x[:, c] > 0  else  weight[c] * x[:, c]

    Shape: ``(B, N, *Ds)``, the same out; the channels are axis 1.
    Initialization: all weights are `init`.

    Args:
        num_parameters: the number of channels, > 0.
        dtype: float32 or float64.
        init: the slopes to begin with, finite.

    Source: He et al. (2015), "Delving deep into rectifiers".

    >>> import tapetensor as tt
    >>> from tapetensor import nn
    >>> nn.PReLU1d(2).forward(tt.from_numpy([[-4.0, 2.0]], shape=(1, 2)))
    Tensor([[-1.,  2.]], shape=(1, 2), dtype=float32, NoneTape)
    """

    weight: Tensor1D[N, NoneTape, W]
    num_parameters: N

    @overload
    def __init__(
        self: PReLU1d[N, np.float32], num_parameters: N, *, init: float = 0.25
    ) -> None: ...
    @overload
    def __init__(self, num_parameters: N, dtype: type[W], *, init: float = 0.25) -> None: ...
    def __init__(
        self, num_parameters: N, dtype: type[Any] = np.float32, *, init: float = 0.25
    ) -> None:
        self.num_parameters = as_size("PReLU1d", "num_parameters", num_parameters, low=1)
        self.weight = _slopes("PReLU1d", num_parameters, dtype, init)

    def forward(self, x: Tensor[tuple[B, N, *Ds], T, W]) -> Tensor[tuple[B, N, *Ds], T, W]:
        """Return `x` with what is not positive multiplied by the slope of its channel.

        Raises:
            ShapeError: if axis 1 of `x` does not have the size of the layer.
            DTypeError: if `x` has another dtype than the weight.
        """
        check_input("PReLU1d", x, self.weight)
        shape = x._array.shape
        if len(shape) < 2 or shape[1] != self.num_parameters:
            raise ShapeError(
                f"PReLU1d: axis 1 of the input must have size {self.num_parameters}, "
                f"got shape {shape}"
            )
        slopes: Any = self.weight.reshape((self.num_parameters, *[1] * (len(shape) - 2)))
        result: Tensor[tuple[B, N, *Ds], T, W] = x.prelu(slopes)
        return result


def _slopes(layer: str, count: int, dtype: object, slope: float) -> Tensor[Any, NoneTape, Any]:
    scalar_type = as_floating_dtype(layer, "weights", dtype)
    value = as_number(layer, "init", slope)
    return init.make(init.constant(value), (count,), scalar_type, init.NO_RANDOMNESS)
