"""Functions that act on every element by itself; the shape stays."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, overload

from tapetensor.arguments import check_choice
from tapetensor.errors import ArgumentValueError
from tapetensor.kernels import elementwise, indexing
from tapetensor.tensor.apply import apply
from tapetensor.tensor.base import (
    FloatingBase,
    NumberBase,
    TensorBase,
    check_floating,
    check_numeric,
)
from tapetensor.tensor.operands import as_scalar
from tapetensor.typing import D, F, R, S, T

if TYPE_CHECKING:
    from tapetensor.tensor.tensor import Tensor


class Elementwise(TensorBase[S, T, D]):
    """Functions of one tensor, element by element.

    Those that are defined on floating dtypes only raise `DTypeError` on others.
    """

    __slots__ = ()

    def exp(self: FloatingBase[S, T, F]) -> Tensor[S, T, F]:
        """Return the exponential.

            e ** x

        Shape: that of `self`.
        Derivative: ``e ** x``.

        >>> import tapetensor as tt
        >>> tt.zeros((2,)).exp()
        Tensor([1., 1.], shape=(2,), dtype=float32, NoneTape)
        """
        return apply(elementwise.exp, (self,))

    def log(self: FloatingBase[S, T, F]) -> Tensor[S, T, F]:
        """Return the natural logarithm.

            ln(x)

        Shape: that of `self`.
        Derivative: ``1 / x``. As numpy's, minus infinity at 0 and NaN below, with a warning.

        >>> import tapetensor as tt
        >>> tt.ones((2,)).log()
        Tensor([0., 0.], shape=(2,), dtype=float32, NoneTape)
        """
        return apply(elementwise.log, (self,))

    def sqrt(self: FloatingBase[S, T, F]) -> Tensor[S, T, F]:
        """Return the square root.

            x ** 0.5

        Shape: that of `self`.
        Derivative: ``1 / (2 * sqrt(x))``, infinite at 0.

        >>> import tapetensor as tt
        >>> tt.full((2,), 9.0).sqrt()
        Tensor([3., 3.], shape=(2,), dtype=float32, NoneTape)
        """
        return apply(elementwise.sqrt, (self,))

    def square(self: NumberBase[S, T, R]) -> Tensor[S, T, R]:
        """Return the square.

            x * x

        Shape: that of `self`.
        Derivative: ``2 * x``.

        >>> import tapetensor as tt
        >>> tt.full((2,), 3.0).square()
        Tensor([9., 9.], shape=(2,), dtype=float32, NoneTape)
        """
        check_numeric("square", self)
        return apply(elementwise.square, (self,))

    def abs(self: NumberBase[S, T, R]) -> Tensor[S, T, R]:
        """Return the absolute value.

            |x|

        Shape: that of `self`.
        Derivative: the sign of `x`; 0 at 0.

        >>> import tapetensor as tt
        >>> tt.full((2,), -3.0).abs()
        Tensor([3., 3.], shape=(2,), dtype=float32, NoneTape)
        """
        check_numeric("abs", self)
        return apply(elementwise.abs, (self,))

    def __abs__(self: NumberBase[S, T, R]) -> Tensor[S, T, R]:
        """Return the absolute value."""
        check_numeric("abs", self)
        return apply(elementwise.abs, (self,))

    def sin(self: FloatingBase[S, T, F]) -> Tensor[S, T, F]:
        """Return the sine of an angle in radians.

            sin(x)

        Shape: that of `self`.
        Derivative: ``cos(x)``.

        >>> import tapetensor as tt
        >>> tt.zeros((2,)).sin()
        Tensor([0., 0.], shape=(2,), dtype=float32, NoneTape)
        """
        return apply(elementwise.sin, (self,))

    def cos(self: FloatingBase[S, T, F]) -> Tensor[S, T, F]:
        """Return the cosine of an angle in radians.

            cos(x)

        Shape: that of `self`.
        Derivative: ``-sin(x)``.

        >>> import tapetensor as tt
        >>> tt.zeros((2,)).cos()
        Tensor([1., 1.], shape=(2,), dtype=float32, NoneTape)
        """
        return apply(elementwise.cos, (self,))

    def tanh(self: FloatingBase[S, T, F]) -> Tensor[S, T, F]:
        """Return the hyperbolic tangent.

            (e**x - e**-x) / (e**x + e**-x)

        Shape: that of `self`.
        Derivative: ``1 - tanh(x)**2``.

        >>> import tapetensor as tt
        >>> tt.zeros((2,)).tanh()
        Tensor([0., 0.], shape=(2,), dtype=float32, NoneTape)
        """
        return apply(elementwise.tanh, (self,))

    def sigmoid(self: FloatingBase[S, T, F]) -> Tensor[S, T, F]:
        """Return the logistic function.

            1 / (1 + e**-x)

        Shape: that of `self`.
        Derivative: ``sigmoid(x) * (1 - sigmoid(x))``.

        >>> import tapetensor as tt
        >>> tt.zeros((2,)).sigmoid()
        Tensor([0.5, 0.5], shape=(2,), dtype=float32, NoneTape)
        """
        return apply(elementwise.sigmoid, (self,))

    def relu(self: NumberBase[S, T, R]) -> Tensor[S, T, R]:
        """Return the positive part.

            max(x, 0)

        Shape: that of `self`.
        Derivative: 1 above 0 and at NaN, 0 below and at 0.

        Source: Nair & Hinton (2010), "Rectified linear units improve restricted Boltzmann
            machines".

        >>> import tapetensor as tt
        >>> tt.from_numpy([-1.0, 2.0], shape=(2,)).relu()
        Tensor([0., 2.], shape=(2,), dtype=float32, NoneTape)
        """
        return apply(elementwise.relu, (self,))

    def silu(self: FloatingBase[S, T, F]) -> Tensor[S, T, F]:
        """Return the sigmoid linear unit, also called swish.

            x * sigmoid(x)

        Shape: that of `self`.
        Derivative: ``s * (1 + x * (1 - s))`` with ``s = sigmoid(x)``.

        Source: Elfwing, Uchibe & Doya (2018), "Sigmoid-weighted linear units for neural network
            function approximation in reinforcement learning".

        >>> import tapetensor as tt
        >>> tt.zeros((2,)).silu()
        Tensor([0., 0.], shape=(2,), dtype=float32, NoneTape)
        """
        return apply(elementwise.silu, (self,))

    def gelu(
        self: FloatingBase[S, T, F], approximate: Literal["none", "tanh"] = "none"
    ) -> Tensor[S, T, F]:
        """Return the Gaussian error linear unit.

            x * Phi(x),  or  x/2 * (1 + tanh(sqrt(2/pi) * (x + 0.044715 * x**3)))

        Shape: that of `self`.
        Derivative: ``Phi(x) + x * phi(x)``, or that of the approximation.

        Args:
            approximate: "none" for the normal distribution function, "tanh" for the second form.

        Raises:
            ArgumentValueError: if `approximate` is neither.

        Source: Hendrycks & Gimpel (2016), "Gaussian error linear units (GELUs)".

        >>> import tapetensor as tt
        >>> tt.zeros((2,)).gelu()
        Tensor([0., 0.], shape=(2,), dtype=float32, NoneTape)
        """
        check_choice("gelu", "approximate", approximate, ("none", "tanh"))
        kernel = elementwise.gelu if approximate == "none" else elementwise.gelu_tanh
        return apply(kernel, (self,))

    def softplus(self: FloatingBase[S, T, F]) -> Tensor[S, T, F]:
        """Return the smooth positive part.

            log(1 + e**x)

        Shape: that of `self`.
        Derivative: ``sigmoid(x)``.

        Source: Dugas et al. (2001), "Incorporating second-order functional knowledge for better
            option pricing".

        >>> import tapetensor as tt
        >>> tt.full((2,), 1000.0).softplus()
        Tensor([1000., 1000.], shape=(2,), dtype=float32, NoneTape)
        """
        return apply(elementwise.softplus, (self,))

    @overload
    def clip(
        self: FloatingBase[S, T, F], low: float | None = None, high: float | None = None
    ) -> Tensor[S, T, F]: ...
    @overload
    def clip(
        self: NumberBase[S, T, R], low: int | None = None, high: int | None = None
    ) -> Tensor[S, T, R]: ...
    def clip(self, low: float | None = None, high: float | None = None) -> Tensor[Any, Any, Any]:
        """Return the elements held between two bounds.

            min(max(x, low), high)

        Shape: that of `self`.
        Derivative: 1 between the bounds, at them and at NaN, 0 outside.

        Args:
            low: the lower bound; None for none.
            high: the upper bound, not below `low`; None for none.

        Raises:
            ArgumentValueError: if there is no bound, one is NaN, or they are in the wrong order.

        >>> import tapetensor as tt
        >>> tt.from_numpy([-1.0, 0.5, 2.0], shape=(3,)).clip(0.0, 1.0)
        Tensor([0. , 0.5, 1. ], shape=(3,), dtype=float32, NoneTape)
        """
        low = None if low is None else as_scalar("clip", "low", low)
        high = None if high is None else as_scalar("clip", "high", high)
        bounds = [bound for bound in (low, high) if bound is not None]
        if not bounds or any(bound != bound for bound in bounds) or bounds[0] > bounds[-1]:
            raise ArgumentValueError(
                f"clip: give low <= high, or one of them, got low={low!r} and high={high!r}"
            )
        options: tuple[Any, ...] = (low, high)
        return apply(elementwise.clip, (self,), options)

    def reciprocal(self: FloatingBase[S, T, F]) -> Tensor[S, T, F]:
        """Return one over the elements.

            1 / x

        Shape: that of `self`.
        Derivative: ``-1 / x**2``.

        >>> import tapetensor as tt
        >>> tt.full((2,), 4.0).reciprocal()
        Tensor([0.25, 0.25], shape=(2,), dtype=float32, NoneTape)
        """
        return apply(elementwise.reciprocal, (self,))

    def nans_to(self: FloatingBase[S, T, F], number: float) -> Tensor[S, T, F]:
        """Return the elements with a number where they are NaN; infinities stay.

        Shape: that of `self`.
        Derivative: 1, and 0 where the element is NaN.

        Args:
            number: what stands in the place of a NaN.

        >>> import tapetensor as tt
        >>> tt.from_numpy([float("nan"), 2.0], shape=(2,)).nans_to(0.0)
        Tensor([0., 2.], shape=(2,), dtype=float32, NoneTape)
        """
        check_floating("nans_to", self)
        return apply(indexing.nans_to, (self,), (as_scalar("nans_to", "number", number),))
