"""Activation functions as modules, to stand in a `Sequential`; the tensor methods do the work.

Rectifiers with a slope that is trained stand at the end.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, Generic, Literal, overload

import numpy as np
from typing_extensions import override

from tapetensor.arguments import as_number, as_size, check_choice
from tapetensor.arrays.array import as_floating_dtype
from tapetensor.errors import ShapeError
from tapetensor.nn import init
from tapetensor.nn.arguments import check_input
from tapetensor.nn.module import Module
from tapetensor.nn.typing import W
from tapetensor.tape import NoneTape
from tapetensor.tensor import Tensor, Tensor1D
from tapetensor.tensor.base import check_tensor
from tapetensor.typing import B, Ds, F, N, R, S, T


class Activation(Module):
    """What modules have in common that are a method of tensors without further arguments."""

    # The method that a class is a module for.
    function: ClassVar[Callable[..., Tensor[Any, Any, Any]]]

    def forward(self, x: Tensor[S, T, F]) -> Tensor[S, T, F]:
        """Return what the method makes of `x`."""
        check_tensor(type(self).__name__, "the input", x)
        return self.function(x)


class RealActivation(Activation):
    """The same of a method that integers have as well."""

    @override
    def forward(self, x: Tensor[S, T, R]) -> Tensor[S, T, R]:
        """Return what the method makes of `x`."""
        check_tensor(type(self).__name__, "the input", x)
        return self.function(x)


class Abs(RealActivation):
    """`tapetensor.Tensor.abs` as a module."""

    function = staticmethod(Tensor.abs)


class Cos(Activation):
    """`tapetensor.Tensor.cos` as a module."""

    function = staticmethod(Tensor.cos)


class Exp(Activation):
    """`tapetensor.Tensor.exp` as a module."""

    function = staticmethod(Tensor.exp)


class GELU(Module):
    """`tapetensor.Tensor.gelu` as a module.

    Args:
        approximate: "none" or "tanh".
    """

    approximate: Literal["none", "tanh"]

    def __init__(self, approximate: Literal["none", "tanh"] = "none") -> None:
        check_choice("GELU", "approximate", approximate, ("none", "tanh"))
        self.approximate = approximate

    def forward(self, x: Tensor[S, T, F]) -> Tensor[S, T, F]:
        """Return ``x.gelu(approximate)``."""
        check_tensor("GELU", "the input", x)
        return x.gelu(self.approximate)


class ELU(Module):
    """`tapetensor.Tensor.elu` as a module.

    Args:
        alpha: minus the limit for ever smaller elements, finite.
    """

    alpha: float

    def __init__(self, alpha: float = 1.0) -> None:
        self.alpha = as_number("ELU", "alpha", alpha)

    def forward(self, x: Tensor[S, T, F]) -> Tensor[S, T, F]:
        """Return ``x.elu(alpha)``."""
        check_tensor("ELU", "the input", x)
        return x.elu(self.alpha)


class CELU(Module):
    """The continuously differentiable exponential linear unit, by the method `elu`.

        max(x, 0) + min(0, alpha * (exp(x / alpha) - 1)) = alpha * elu(x / alpha)

    Shape: ``S -> S``.
    Derivative: 1 above 0, ``exp(x / alpha)`` from 0 down, so that it is 1 at 0 whatever `alpha` is.

    Args:
        alpha: minus the limit for ever smaller elements, finite and > 0.

    Raises:
        ArgumentValueError: if `alpha` is outside its range.
        ArgumentTypeError: if `alpha` is no number, or the input no tensor.

    Source: Barron (2017), "Continuously differentiable exponential linear units".

    >>> import tapetensor as tt
    >>> from tapetensor import nn
    >>> nn.CELU(2.0).forward(tt.full((1,), -1.0))
    Tensor([-0.78693867], shape=(1,), dtype=float32, NoneTape)
    """

    alpha: float

    def __init__(self, alpha: float = 1.0) -> None:
        self.alpha = as_number("CELU", "alpha", alpha, above=0)

    def forward(self, x: Tensor[S, T, F]) -> Tensor[S, T, F]:
        """Return ``alpha * (x / alpha).elu()``."""
        check_tensor("CELU", "the input", x)
        return (x / self.alpha).elu() * self.alpha


class SELU(Module):
    """The self-normalizing exponential linear unit, by the method `elu`.

        scale * elu(x, alpha),  scale = 1.0507009873554805,  alpha = 1.6732632423543772

    Shape: ``S -> S``.
    Derivative: `scale` above 0, ``scale * alpha * exp(x)`` below and at 0.

    Raises:
        ArgumentTypeError: if the input is no tensor.

    Source: Klambauer, Unterthiner, Mayr & Hochreiter (2017), "Self-normalizing neural networks".

    >>> import tapetensor as tt
    >>> from tapetensor import nn
    >>> nn.SELU().forward(tt.ones((1,)))
    Tensor([1.050701], shape=(1,), dtype=float32, NoneTape)
    """

    def forward(self, x: Tensor[S, T, F]) -> Tensor[S, T, F]:
        """Return ``scale * x.elu(alpha)``."""
        check_tensor("SELU", "the input", x)
        return x.elu(1.6732632423543772) * 1.0507009873554805


class LeakyReLU(Module):
    """`tapetensor.Tensor.leaky_relu` as a module.

    Args:
        negative_slope: the factor of what is not positive, finite.
    """

    negative_slope: float

    def __init__(self, negative_slope: float = 0.01) -> None:
        self.negative_slope = as_number("LeakyReLU", "negative_slope", negative_slope)

    def forward(self, x: Tensor[S, T, F]) -> Tensor[S, T, F]:
        """Return ``x.leaky_relu(negative_slope)``."""
        check_tensor("LeakyReLU", "the input", x)
        return x.leaky_relu(self.negative_slope)


class Log(Activation):
    """`tapetensor.Tensor.log` as a module."""

    function = staticmethod(Tensor.log)


class LogSoftmax(Activation):
    """`tapetensor.Tensor.log_softmax` along the last axis as a module."""

    function = staticmethod(Tensor.log_softmax)


class ReLU(RealActivation):
    """`tapetensor.Tensor.relu` as a module.

    >>> import tapetensor as tt
    >>> from tapetensor import nn
    >>> nn.ReLU().forward(tt.full((2,), -1.0))
    Tensor([0., 0.], shape=(2,), dtype=float32, NoneTape)
    """

    function = staticmethod(Tensor.relu)


class Sigmoid(Activation):
    """`tapetensor.Tensor.sigmoid` as a module."""

    function = staticmethod(Tensor.sigmoid)


class SiLU(Activation):
    """`tapetensor.Tensor.silu` as a module."""

    function = staticmethod(Tensor.silu)


class Sin(Activation):
    """`tapetensor.Tensor.sin` as a module."""

    function = staticmethod(Tensor.sin)


class Softmax(Activation):
    """`tapetensor.Tensor.softmax` along the last axis as a module."""

    function = staticmethod(Tensor.softmax)


class Softplus(Activation):
    """`tapetensor.Tensor.softplus` as a module."""

    function = staticmethod(Tensor.softplus)


class Sqrt(Activation):
    """`tapetensor.Tensor.sqrt` as a module."""

    function = staticmethod(Tensor.sqrt)


class Square(RealActivation):
    """`tapetensor.Tensor.square` as a module."""

    function = staticmethod(Tensor.square)


class Tanh(Activation):
    """`tapetensor.Tensor.tanh` as a module."""

    function = staticmethod(Tensor.tanh)


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
