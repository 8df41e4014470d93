"""Activation functions that are a few ops on each element, or have a trained slope, as modules."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, Generic, Literal, TypeAlias, overload

import numpy as np
from typing_extensions import override

from tapetensor.arguments import as_number, as_size
from tapetensor.arrays.array import as_floating_dtype
from tapetensor.errors import ArgumentValueError, AxisError, ShapeError
from tapetensor.nn import init
from tapetensor.nn.activations import CELU, SELU, Activation
from tapetensor.nn.arguments import check_input
from tapetensor.nn.module import Module
from tapetensor.nn.typing import W
from tapetensor.tape import NoneTape
from tapetensor.tensor import Tensor, Tensor1D
from tapetensor.tensor.base import check_floating, check_tensor
from tapetensor.tensor.creation import zeros_beside
from tapetensor.tensor.selection import where
from tapetensor.typing import B, Ds, F, N, S, T


class ComposedActivation(Activation):
    """The base of modules that are a few ops on each element."""

    @override
    def forward(self, x: Tensor[S, T, F]) -> Tensor[S, T, F]:
        """Return the function of each element of `x`, of its shape.

        Raises:
            DTypeError: if `x` is not floating.
            ArgumentTypeError: if it is no tensor.
        """
        check_tensor(type(self).__name__, "the input", x)
        check_floating(type(self).__name__, x)
        return self.function(x)


class Mish(ComposedActivation):
    """The self-regularized activation ``x * tanh(log(1 + exp(x)))``.

    Shape: ``S -> S``.
    Derivative: ``t + x * (1 - t**2) * sigmoid(x)``, `t` the factor of `x`.
    Source: Misra (2019), "Mish: a self regularized non-monotonic activation function".

    >>> import tapetensor as tt
    >>> from tapetensor import nn
    >>> print(f"{nn.Mish().forward(tt.ones((1,))):.4f}")
    0.8651
    """

    function = staticmethod(lambda x: x * x.softplus().tanh())


class Hardtanh(ComposedActivation):
    """`tapetensor.Tensor.clip` as a module: ``min(max(x, low), high)``.

    Shape: ``S -> S``.
    Derivative: 1 from `low` to `high`, at both, too; 0 beyond.

    Args:
        low: the smallest value, finite.
        high: the largest, finite and above `low`.

    Raises:
        ArgumentValueError: if `high` is not above `low`.
        ArgumentTypeError: if one is no number.

    >>> import tapetensor as tt
    >>> from tapetensor import nn
    >>> nn.Hardtanh().forward(tt.full((1,), 3.0))
    Tensor([1.], shape=(1,), dtype=float32, NoneTape)
    """

    low: float
    high: float

    def __init__(self, low: float = -1.0, high: float = 1.0) -> None:
        self.low, self.high = as_number("Hardtanh", "low", low), as_number("Hardtanh", "high", high)
        if not self.low < self.high:
            raise ArgumentValueError(f"Hardtanh: high must be above low, got {low!r} and {high!r}")

    @override
    def function(self, x: Tensor[S, T, F]) -> Tensor[S, T, F]:
        return x.clip(self.low, self.high)


class ReLU6(ComposedActivation):
    """``min(max(x, 0), 6)``.

    Shape: ``S -> S``.
    Derivative: 1 from 0 to 6, at both, too; 0 beyond.
    Source: Howard et al. (2017), "MobileNets".

    >>> import tapetensor as tt
    >>> from tapetensor import nn
    >>> nn.ReLU6().forward(tt.full((1,), 8.0))
    Tensor([6.], shape=(1,), dtype=float32, NoneTape)
    """

    function = staticmethod(lambda x: x.clip(0.0, 6.0))


class Hardsigmoid(ComposedActivation):
    """The sigmoid in three straight lines: ``min(max(x / 6 + 1 / 2, 0), 1)``.

    Shape: ``S -> S``.
    Derivative: 1 / 6 from -3 to 3, at both, too; 0 beyond.
    Source: Howard et al. (2019), "Searching for MobileNetV3".

    >>> import tapetensor as tt
    >>> from tapetensor import nn
    >>> nn.Hardsigmoid().forward(tt.full((1,), 1.5))
    Tensor([0.75], shape=(1,), dtype=float32, NoneTape)
    """

    function = staticmethod(lambda x: (x + 3.0).clip(0.0, 6.0) / 6.0)


class Hardswish(ComposedActivation):
    """``x * min(max(x / 6 + 1 / 2, 0), 1)``: SiLU with straight lines for its sigmoid.

    Shape: ``S -> S``.
    Derivative: ``x / 3 + 1 / 2`` from -3 to 3, at both, too; 0 below, 1 above.
    Source: Howard et al. (2019), "Searching for MobileNetV3".

    >>> import tapetensor as tt
    >>> from tapetensor import nn
    >>> nn.Hardswish().forward(tt.full((1,), 3.0))
    Tensor([3.], shape=(1,), dtype=float32, NoneTape)
    """

    function = staticmethod(lambda x: x * ((x + 3.0).clip(0.0, 6.0) / 6.0))


class Softsign(ComposedActivation):
    """``x / (1 + abs(x))``.

    Shape: ``S -> S``.
    Derivative: ``1 / (1 + abs(x))**2``.
    Source: Turian, Bergstra & Bengio (2009), "Quadratic features and deep architectures for
        chunking".

    >>> import tapetensor as tt
    >>> from tapetensor import nn
    >>> nn.Softsign().forward(tt.full((1,), -3.0))
    Tensor([-0.75], shape=(1,), dtype=float32, NoneTape)
    """

    function = staticmethod(lambda x: x / (x.abs() + 1.0))


class LogSigmoid(ComposedActivation):
    """``log(sigmoid(x)) = -softplus(-x)``, finite at any size.

    Shape: ``S -> S``.
    Derivative: ``sigmoid(-x)``.

    >>> import tapetensor as tt
    >>> from tapetensor import nn
    >>> nn.LogSigmoid().forward(tt.full((1,), -100.0))
    Tensor([-100.], shape=(1,), dtype=float32, NoneTape)
    """

    function = staticmethod(lambda x: -(-x).softplus())


class Tanhshrink(ComposedActivation):
    """``x - tanh(x)``.

    Shape: ``S -> S``.
    Derivative: ``tanh(x)**2``.

    >>> import tapetensor as tt
    >>> from tapetensor import nn
    >>> nn.Tanhshrink().forward(tt.zeros((1,)))
    Tensor([0.], shape=(1,), dtype=float32, NoneTape)
    """

    function = staticmethod(lambda x: x - x.tanh())


class Softshrink(ComposedActivation):
    """Soft thresholding: ``x`` moved towards 0 by `threshold`, but not past it.

        x - min(max(x, -threshold), threshold)

    Shape: ``S -> S``.
    Derivative: 0 from ``-threshold`` to ``threshold``, at both, too; 1 beyond.

    Args:
        threshold: how far, >= 0 and finite.

    Raises:
        ArgumentValueError: if it is outside its range.
        ArgumentTypeError: if it is no number.

    Source: Donoho & Johnstone (1994), "Ideal spatial adaptation by wavelet shrinkage".

    >>> import tapetensor as tt
    >>> from tapetensor import nn
    >>> nn.Softshrink().forward(tt.full((1,), -2.0))
    Tensor([-1.5], shape=(1,), dtype=float32, NoneTape)
    """

    threshold: float

    def __init__(self, threshold: float = 0.5) -> None:
        self.threshold = as_number("Softshrink", "threshold", threshold, at_least=0)

    @override
    def function(self, x: Tensor[S, T, F]) -> Tensor[S, T, F]:
        # What is taken away is a constant, so that a NaN that passes keeps its cotangent.
        near = x.detach().clip(-self.threshold, self.threshold)
        is_near = abs(x.detach()) <= self.threshold
        return where(is_near, zeros_beside(x, ()), x - near)


class Hardshrink(ComposedActivation):
    """Hard thresholding: 0 from ``-threshold`` to ``threshold``, ``x`` beyond.

    Shape: ``S -> S``.
    Derivative: 0 from ``-threshold`` to ``threshold``, at both, too; 1 beyond.

    Args:
        threshold: up to where, >= 0 and finite.

    Raises:
        ArgumentValueError: if it is outside its range.
        ArgumentTypeError: if it is no number.

    Source: Donoho & Johnstone (1994), "Ideal spatial adaptation by wavelet shrinkage".

    >>> import tapetensor as tt
    >>> from tapetensor import nn
    >>> nn.Hardshrink().forward(tt.full((1,), 0.25))
    Tensor([0.], shape=(1,), dtype=float32, NoneTape)
    """

    threshold: float

    def __init__(self, threshold: float = 0.5) -> None:
        self.threshold = as_number("Hardshrink", "threshold", threshold, at_least=0)

    @override
    def function(self, x: Tensor[S, T, F]) -> Tensor[S, T, F]:
        # Asked this way round, a NaN passes.
        return where(abs(x.detach()) <= self.threshold, zeros_beside(x, ()), x)


class Threshold(ComposedActivation):
    """``x`` above a threshold, a number elsewhere.

    Shape: ``S -> S``.
    Derivative: 1 above `threshold`, 0 elsewhere, at it, too.

    Args:
        threshold: the bound, finite; elements above it stay.
        value: the number, finite.

    Raises:
        ArgumentValueError: if one is not finite.
        ArgumentTypeError: if one is no number.

    >>> import tapetensor as tt
    >>> from tapetensor import nn
    >>> nn.Threshold(0.5, -1.0).forward(tt.full((1,), 0.25))
    Tensor([-1.], shape=(1,), dtype=float32, NoneTape)
    """

    threshold: float
    value: float

    def __init__(self, threshold: float, value: float) -> None:
        self.threshold = as_number("Threshold", "threshold", threshold)
        self.value = as_number("Threshold", "value", value)

    @override
    def function(self, x: Tensor[S, T, F]) -> Tensor[S, T, F]:
        # Asked this way round, a NaN passes.
        return where(x.detach() <= self.threshold, zeros_beside(x, ()) + self.value, x)


class Softmin(ComposedActivation):
    """`tapetensor.Tensor.softmax` of ``-x`` along the last axis as a module.

    Shape: ``S -> S``.
    Derivative: ``-y * (g - sum(y * g))`` of a cotangent `g`, for an output `y`.

    >>> import tapetensor as tt
    >>> from tapetensor import nn
    >>> nn.Softmin().forward(tt.ones((2,)))
    Tensor([0.5, 0.5], shape=(2,), dtype=float32, NoneTape)
    """

    function = staticmethod(lambda x: (-x).softmax())


class GLU(Module):
    """The gated linear unit: one half of the last axis by the sigmoid of the other.

        a * sigmoid(b),  a, b = x[..., :n], x[..., n:]

    Shape: ``(*Ds, 2 * n) -> (*Ds, n)``.
    Derivative: ``sigmoid(b)`` for `a`, ``a * sigmoid(b) * (1 - sigmoid(b))`` for `b`.
    Source: Dauphin et al. (2017), "Language modeling with gated convolutional networks".

    >>> import tapetensor as tt
    >>> from tapetensor import nn
    >>> nn.GLU().forward(tt.from_numpy([[3.0, 0.0]], shape=(1, 2)))
    Tensor([[1.5]], shape=(1, 1), dtype=float32, NoneTape)
    """

    def forward(self, x: Tensor[tuple[*Ds, Any], T, F]) -> Tensor[tuple[*Ds, Any], T, F]:
        """Return the gated half.

        Raises:
            AxisError: if `x` has no axis, or an odd number of elements along the last.
            DTypeError: if `x` is not floating.
            ArgumentTypeError: if it is no tensor.
        """
        check_tensor("GLU", "the input", x)
        check_floating("GLU", x)
        shape = x._array.shape
        if not shape or shape[-1] % 2:
            raise AxisError(f"GLU: the last axis must be even, the input has shape {shape}")
        half = shape[-1] // 2
        left: Any = x[..., :half]
        right: Any = x[..., half:]
        gated: Tensor[tuple[*Ds, Any], T, F] = left * right.sigmoid()
        return gated


class Identity(Module):
    """A module that returns its input, for the place of a module that is left out.

    >>> import tapetensor as tt
    >>> from tapetensor import nn
    >>> nn.Identity().forward(tt.ones((1,)))
    Tensor([1.], shape=(1,), dtype=float32, NoneTape)
    """

    def forward(self, x: Tensor[S, T, F]) -> Tensor[S, T, F]:
        """Return `x`."""
        check_tensor("Identity", "the input", x)
        return x


# The activations that a block takes by name, as PyTorch's functions are called.
ActivationName: TypeAlias = Literal[
    "relu", "relu6", "gelu", "silu", "mish", "elu", "selu", "celu", "leaky_relu",
    "tanh", "sigmoid", "softplus", "softsign", "logsigmoid",
    "hardtanh", "hardsigmoid", "hardswish", "hardshrink", "softshrink", "tanhshrink",
]  # fmt: skip
ACTIVATIONS: Final[dict[ActivationName, Callable[[Any], Tensor[Any, Any, Any]]]] = {
    "relu": Tensor.relu,
    "relu6": ReLU6().forward,
    "gelu": Tensor.gelu,
    "silu": Tensor.silu,
    "mish": Mish().forward,
    "elu": Tensor.elu,
    "selu": SELU().forward,
    "celu": CELU().forward,
    "leaky_relu": Tensor.leaky_relu,
    "tanh": Tensor.tanh,
    "sigmoid": Tensor.sigmoid,
    "softplus": Tensor.softplus,
    "softsign": Softsign().forward,
    "logsigmoid": LogSigmoid().forward,
    "hardtanh": Hardtanh().forward,
    "hardsigmoid": Hardsigmoid().forward,
    "hardswish": Hardswish().forward,
    "hardshrink": Hardshrink().forward,
    "softshrink": Softshrink().forward,
    "tanhshrink": Tanhshrink().forward,
}


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
        """Return `x`, with elements that are not positive multiplied by the slope.

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
        """Return `x`, with elements that are not positive multiplied by the slope of their channel.

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
