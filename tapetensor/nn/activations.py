"""Activation functions as modules, to stand in a `Sequential`; the tensor methods do the work."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, Literal

from typing_extensions import override

from tapetensor.arguments import as_number, check_choice
from tapetensor.nn.module import Module
from tapetensor.tensor import Tensor
from tapetensor.tensor.base import check_tensor
from tapetensor.typing import F, R, S, T


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
