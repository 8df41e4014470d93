"""Activation functions as modules, to stand in a `Sequential`; the tensor methods do the work."""

from __future__ import annotations

from typing import Literal

from tapetensor.arguments import as_number, check_choice
from tapetensor.nn.module import Module
from tapetensor.tensor import Tensor
from tapetensor.tensor.base import check_tensor
from tapetensor.typing import F, R, S, T


class Abs(Module):
    """`tapetensor.Tensor.abs` as a module."""

    def forward(self, x: Tensor[S, T, R]) -> Tensor[S, T, R]:
        """Return ``x.abs()``."""
        check_tensor("Abs", "the input", x)
        return x.abs()


class Cos(Module):
    """`tapetensor.Tensor.cos` as a module."""

    def forward(self, x: Tensor[S, T, F]) -> Tensor[S, T, F]:
        """Return ``x.cos()``."""
        check_tensor("Cos", "the input", x)
        return x.cos()


class Exp(Module):
    """`tapetensor.Tensor.exp` as a module."""

    def forward(self, x: Tensor[S, T, F]) -> Tensor[S, T, F]:
        """Return ``x.exp()``."""
        check_tensor("Exp", "the input", x)
        return x.exp()


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


class Log(Module):
    """`tapetensor.Tensor.log` as a module."""

    def forward(self, x: Tensor[S, T, F]) -> Tensor[S, T, F]:
        """Return ``x.log()``."""
        check_tensor("Log", "the input", x)
        return x.log()


class LogSoftmax(Module):
    """`tapetensor.Tensor.log_softmax` along the last axis as a module."""

    def forward(self, x: Tensor[S, T, F]) -> Tensor[S, T, F]:
        """Return ``x.log_softmax()``."""
        check_tensor("LogSoftmax", "the input", x)
        return x.log_softmax()


class ReLU(Module):
    """`tapetensor.Tensor.relu` as a module.

    >>> import tapetensor as tt
    >>> from tapetensor import nn
    >>> nn.ReLU().forward(tt.full((2,), -1.0))
    Tensor([0., 0.], shape=(2,), dtype=float32, NoneTape)
    """

    def forward(self, x: Tensor[S, T, R]) -> Tensor[S, T, R]:
        """Return ``x.relu()``."""
        check_tensor("ReLU", "the input", x)
        return x.relu()


class Sigmoid(Module):
    """`tapetensor.Tensor.sigmoid` as a module."""

    def forward(self, x: Tensor[S, T, F]) -> Tensor[S, T, F]:
        """Return ``x.sigmoid()``."""
        check_tensor("Sigmoid", "the input", x)
        return x.sigmoid()


class SiLU(Module):
    """`tapetensor.Tensor.silu` as a module."""

    def forward(self, x: Tensor[S, T, F]) -> Tensor[S, T, F]:
        """Return ``x.silu()``."""
        check_tensor("SiLU", "the input", x)
        return x.silu()


class Sin(Module):
    """`tapetensor.Tensor.sin` as a module."""

    def forward(self, x: Tensor[S, T, F]) -> Tensor[S, T, F]:
        """Return ``x.sin()``."""
        check_tensor("Sin", "the input", x)
        return x.sin()


class Softmax(Module):
    """`tapetensor.Tensor.softmax` along the last axis as a module."""

    def forward(self, x: Tensor[S, T, F]) -> Tensor[S, T, F]:
        """Return ``x.softmax()``."""
        check_tensor("Softmax", "the input", x)
        return x.softmax()


class Softplus(Module):
    """`tapetensor.Tensor.softplus` as a module."""

    def forward(self, x: Tensor[S, T, F]) -> Tensor[S, T, F]:
        """Return ``x.softplus()``."""
        check_tensor("Softplus", "the input", x)
        return x.softplus()


class Sqrt(Module):
    """`tapetensor.Tensor.sqrt` as a module."""

    def forward(self, x: Tensor[S, T, F]) -> Tensor[S, T, F]:
        """Return ``x.sqrt()``."""
        check_tensor("Sqrt", "the input", x)
        return x.sqrt()


class Square(Module):
    """`tapetensor.Tensor.square` as a module."""

    def forward(self, x: Tensor[S, T, R]) -> Tensor[S, T, R]:
        """Return ``x.square()``."""
        check_tensor("Square", "the input", x)
        return x.square()


class Tanh(Module):
    """`tapetensor.Tensor.tanh` as a module."""

    def forward(self, x: Tensor[S, T, F]) -> Tensor[S, T, F]:
        """Return ``x.tanh()``."""
        check_tensor("Tanh", "the input", x)
        return x.tanh()
