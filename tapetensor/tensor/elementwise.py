"""Functions that act on every element by itself, and dropout, which draws; the shape stays."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, overload

import numpy as np
from typing_extensions import override

from tapetensor.arguments import as_number, broadcasts_to, check_choice, check_rng
from tapetensor.errors import ArgumentValueError, ShapeError
from tapetensor.kernels import elementwise, indexing
from tapetensor.kernels.numerics import choice
from tapetensor.tape import NoneTape
from tapetensor.tensor.apply import apply
from tapetensor.tensor.base import (
    FloatingBase,
    NumberBase,
    TensorBase,
    check_floating,
    check_numeric,
    check_tensor,
)
from tapetensor.tensor.operands import TapeOfRhs, as_scalar
from tapetensor.typing import D, Ds, F, N, R, S, T

if TYPE_CHECKING:
    from tapetensor.tensor.tensor import Joins, Tensor


class Elementwise(TensorBase[S, T, D]):
    """Functions of one tensor, element by element, and dropout, which draws.

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
            number: the number in the place of a NaN.

        >>> import tapetensor as tt
        >>> tt.from_numpy([float("nan"), 2.0], shape=(2,)).nans_to(0.0)
        Tensor([0., 2.], shape=(2,), dtype=float32, NoneTape)
        """
        check_floating("nans_to", self)
        return apply(indexing.nans_to, (self,), (as_scalar("nans_to", "number", number),))

    def leaky_relu(self: FloatingBase[S, T, F], negative_slope: float = 0.01) -> Tensor[S, T, F]:
        """Return the elements with the negative ones made small.

            x  if x > 0  else  slope * x

        Shape: that of `self`.
        Derivative: 1 above 0, `negative_slope` below and at 0.

        Args:
            negative_slope: the factor of what is not positive, finite.

        Raises:
            ArgumentValueError: if `negative_slope` is not finite.

        Source: Maas, Hannun & Ng (2013), "Rectifier nonlinearities improve neural network acoustic
            models".

        >>> import tapetensor as tt
        >>> tt.from_numpy([-4.0, 2.0], shape=(2,)).leaky_relu(0.25)
        Tensor([-1.,  2.], shape=(2,), dtype=float32, NoneTape)
        """
        check_floating("leaky_relu", self)
        slope = as_number("leaky_relu", "negative_slope", negative_slope)
        return apply(elementwise.leaky_relu, (self,), (slope,))

    @overload
    def prelu(
        self: FloatingBase[S, T, F], slope: Joins[S, T, F] | Joins[tuple[()], T, F]
    ) -> Tensor[S, T, F]: ...
    @overload
    def prelu(
        self: FloatingBase[S, NoneTape, F],
        slope: Tensor[S, TapeOfRhs, F] | Tensor[tuple[()], TapeOfRhs, F],
    ) -> Tensor[S, TapeOfRhs, F]: ...
    @overload
    def prelu(
        self: FloatingBase[tuple[*Ds, N], T, F], slope: Joins[tuple[N], T, F]
    ) -> Tensor[tuple[*Ds, N], T, F]: ...
    @overload
    def prelu(
        self: FloatingBase[tuple[*Ds, N], NoneTape, F], slope: Tensor[tuple[N], TapeOfRhs, F]
    ) -> Tensor[tuple[*Ds, N], TapeOfRhs, F]: ...
    def prelu(self, slope: Tensor[Any, Any, Any]) -> Tensor[Any, Any, Any]:
        """Return the elements with the negative ones multiplied by slopes that can be trained.

            x  if x > 0  else  slope * x

        Shape: that of `self`, to which that of `slope` broadcasts: one slope, one for each place
            along the last axis, one for each element.
        Derivative: 1 above 0, `slope` below and at 0; for `slope`, `x` where it is not positive,
            summed over what was broadcast.

        Args:
            slope: a tensor.

        Raises:
            ShapeError: if `slope` does not broadcast to the shape of `self`.
            DTypeError: if the dtypes differ or are not floating.

        Source: He et al. (2015), "Delving deep into rectifiers".

        >>> import tapetensor as tt
        >>> tt.from_numpy([-4.0, 2.0], shape=(2,)).prelu(tt.full((), 0.25))
        Tensor([-1.,  2.], shape=(2,), dtype=float32, NoneTape)
        """
        check_tensor("prelu", "the slope", slope)
        check_floating("prelu", self)
        if not broadcasts_to(slope._array.shape, self._array.shape):
            raise ShapeError(
                f"prelu: slopes of shape {slope._array.shape} do not broadcast to the elements of "
                f"shape {self._array.shape}"
            )
        return apply(elementwise.prelu, (self, slope))

    def elu(self: FloatingBase[S, T, F], alpha: float = 1.0) -> Tensor[S, T, F]:
        """Return the exponential linear unit.

            x  if x > 0  else  alpha * (e**x - 1)

        Shape: that of `self`.
        Derivative: 1 above 0, ``alpha * e**x`` below and at 0.

        Args:
            alpha: minus the limit for ever smaller elements, finite.

        Raises:
            ArgumentValueError: if `alpha` is not finite.

        Source: Clevert, Unterthiner & Hochreiter (2015), "Fast and accurate deep network learning
            by exponential linear units (ELUs)".

        >>> import tapetensor as tt
        >>> tt.from_numpy([-1000.0, 2.0], shape=(2,)).elu()
        Tensor([-1.,  2.], shape=(2,), dtype=float32, NoneTape)
        """
        return apply(elementwise.elu, (self,), (as_number("elu", "alpha", alpha),))

    def dropout(
        self: FloatingBase[S, T, F], p: float, *, rng: np.random.Generator
    ) -> Tensor[S, T, F]:
        """Zero elements at random and scale up the others, if `self` owns a tape.

            x * mask / (1 - p)      for a tensor that owns a tape
            x                       for one without: the tensor itself, and nothing is drawn

        The tape says whether this is training, as for the layer `tapetensor.nn.Dropout`. To drop
        from plain values, multiply by a mask of your own. With the generator of a module that
        `tapetensor.nn.inference` returned nothing is dropped, either.

        Shape: that of `self`.
        Derivative: the same mask, scaled the same.

        Args:
            p: the probability of a zero, in [0, 1].
            rng: where the mask comes from.

        Raises:
            ArgumentValueError: if `p` lies outside [0, 1].
            ArgumentTypeError: if `rng` is not a numpy generator.

        Source: Srivastava et al. (2014), "Dropout: a simple way to prevent neural networks from
            overfitting".

        >>> import numpy as np
        >>> import tapetensor as tt
        >>> x = tt.ones((4,))
        >>> x.trace().dropout(0.5, rng=np.random.default_rng(0)).detach().numpy()
        array([2., 2., 2., 0.], dtype=float32)
        >>> x.dropout(0.5, rng=np.random.default_rng(0)) is x
        True
        """
        check_floating("dropout", self)
        probability = as_number("dropout", "p", p, at_least=0, at_most=1)
        check_rng("dropout", rng)
        if self.tape is None or not getattr(rng, "drops", True):
            result: Any = self
            return result  # type: ignore[no-any-return]  # a tensor is what TensorBase stands for
        data = self._array
        mask = choice.scaled_mask(data.shape, probability, data.dtype, rng)
        return apply(elementwise.dropout, (self,), (mask,))


class Undropping(np.random.Generator):
    """A generator with which nothing is dropped; it draws as any other.

    The modules that `tapetensor.nn.inference` returns have it in place of their own.
    """

    drops = False

    @override
    def __reduce__(self) -> Any:
        """Be copied and pickled as one of this class."""
        return Undropping, (self.bit_generator,)
