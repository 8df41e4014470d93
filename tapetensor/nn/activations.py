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
