"""Functions of elements from geometry, growth and probability, and whole numbers next to them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tapetensor.kernels import elementwise
from tapetensor.tape import Kernel
from tapetensor.tensor.apply import apply
from tapetensor.tensor.base import (
    FloatingBase,
    NumberBase,
    TensorBase,
    check_floating,
    check_numeric,
)
from tapetensor.typing import D, F, R, S, T

if TYPE_CHECKING:
    from tapetensor.tensor.tensor import Tensor


class Transcendental(TensorBase[S, T, D]):
    """Angles, hyperbolic functions, logarithms and the error function; functions that go in steps.

    The former are defined on floating dtypes only and raise `DTypeError` on others. Of the latter
    the derivative is 0, at the steps as well. NaN stays NaN, infinities stay.
    """

    __slots__ = ()

    def tan(self: FloatingBase[S, T, F]) -> Tensor[S, T, F]:
        """Return the tangent of an angle in radians.

            tan(x)

        Shape: that of `self`.
        Derivative: ``1 + tan(x)**2``.

        Source: array API, ``tan``.

        >>> import tapetensor as tt
        >>> tt.zeros((2,)).tan()
        Tensor([0., 0.], shape=(2,), dtype=float32, NoneTape)
        """
        return _of_floats(elementwise.tan, self)

    def asin(self: FloatingBase[S, T, F]) -> Tensor[S, T, F]:
        """Return the angle in radians, from -pi/2 to pi/2, that has a sine.

            arcsin(x)

        Shape: that of `self`.
        Derivative: ``1 / sqrt(1 - x**2)``, infinite at -1 and 1; NaN outside of them.

        Source: array API, ``asin``.

        >>> import tapetensor as tt
        >>> tt.zeros((2,)).asin()
        Tensor([0., 0.], shape=(2,), dtype=float32, NoneTape)
        """
        return _of_floats(elementwise.asin, self)

    def acos(self: FloatingBase[S, T, F]) -> Tensor[S, T, F]:
        """Return the angle in radians, from 0 to pi, that has a cosine.

            arccos(x)

        Shape: that of `self`.
        Derivative: ``-1 / sqrt(1 - x**2)``, infinite at -1 and 1; NaN outside of them.

        Source: array API, ``acos``.

        >>> import tapetensor as tt
        >>> tt.ones((2,)).acos()
        Tensor([0., 0.], shape=(2,), dtype=float32, NoneTape)
        """
        return _of_floats(elementwise.acos, self)

    def atan(self: FloatingBase[S, T, F]) -> Tensor[S, T, F]:
        """Return the angle in radians, from -pi/2 to pi/2, that has a tangent.

            arctan(x)

        Shape: that of `self`.
        Derivative: ``1 / (1 + x**2)``.

        Source: array API, ``atan``.

        >>> import tapetensor as tt
        >>> tt.zeros((2,)).atan()
        Tensor([0., 0.], shape=(2,), dtype=float32, NoneTape)
        """
        return _of_floats(elementwise.atan, self)

    def sinh(self: FloatingBase[S, T, F]) -> Tensor[S, T, F]:
        """Return the hyperbolic sine.

            (e**x - e**-x) / 2

        Shape: that of `self`.
        Derivative: ``cosh(x)``.

        Source: array API, ``sinh``.

        >>> import tapetensor as tt
        >>> tt.zeros((2,)).sinh()
        Tensor([0., 0.], shape=(2,), dtype=float32, NoneTape)
        """
        return _of_floats(elementwise.sinh, self)

    def cosh(self: FloatingBase[S, T, F]) -> Tensor[S, T, F]:
        """Return the hyperbolic cosine.

            (e**x + e**-x) / 2

        Shape: that of `self`.
        Derivative: ``sinh(x)``.

        Source: array API, ``cosh``.

        >>> import tapetensor as tt
        >>> tt.zeros((2,)).cosh()
        Tensor([1., 1.], shape=(2,), dtype=float32, NoneTape)
        """
        return _of_floats(elementwise.cosh, self)

    def asinh(self: FloatingBase[S, T, F]) -> Tensor[S, T, F]:
        """Return the inverse hyperbolic sine.

            ln(x + sqrt(x**2 + 1))

        Shape: that of `self`.
        Derivative: ``1 / sqrt(x**2 + 1)``.

        Source: array API, ``asinh``.

        >>> import tapetensor as tt
        >>> tt.zeros((2,)).asinh()
        Tensor([0., 0.], shape=(2,), dtype=float32, NoneTape)
        """
        return _of_floats(elementwise.asinh, self)

    def acosh(self: FloatingBase[S, T, F]) -> Tensor[S, T, F]:
        """Return the inverse hyperbolic cosine.

            ln(x + sqrt(x**2 - 1))

        Shape: that of `self`.
        Derivative: ``1 / sqrt(x**2 - 1)``, infinite at 1; NaN below.

        Source: array API, ``acosh``.

        >>> import tapetensor as tt
        >>> tt.ones((2,)).acosh()
        Tensor([0., 0.], shape=(2,), dtype=float32, NoneTape)
        """
        return _of_floats(elementwise.acosh, self)

    def atanh(self: FloatingBase[S, T, F]) -> Tensor[S, T, F]:
        """Return the inverse hyperbolic tangent.

            ln((1 + x) / (1 - x)) / 2

        Shape: that of `self`.
        Derivative: ``1 / (1 - x**2)``, infinite at -1 and 1; NaN outside of them.

        Source: array API, ``atanh``.

        >>> import tapetensor as tt
        >>> tt.zeros((2,)).atanh()
        Tensor([0., 0.], shape=(2,), dtype=float32, NoneTape)
        """
        return _of_floats(elementwise.atanh, self)

    def expm1(self: FloatingBase[S, T, F]) -> Tensor[S, T, F]:
        """Return the exponential minus one, exact near 0.

            e**x - 1

        Shape: that of `self`.
        Derivative: ``e**x``.

        Source: array API, ``expm1``.

        >>> import tapetensor as tt
        >>> tt.zeros((2,)).expm1()
        Tensor([0., 0.], shape=(2,), dtype=float32, NoneTape)
        """
        return _of_floats(elementwise.expm1, self)

    def log1p(self: FloatingBase[S, T, F]) -> Tensor[S, T, F]:
        """Return the natural logarithm of one plus the elements, exact near 0.

            ln(1 + x)

        Shape: that of `self`.
        Derivative: ``1 / (1 + x)``. As numpy's, minus infinity at -1 and NaN below, with a warning.

        Source: array API, ``log1p``.

        >>> import tapetensor as tt
        >>> tt.zeros((2,)).log1p()
        Tensor([0., 0.], shape=(2,), dtype=float32, NoneTape)
        """
        return _of_floats(elementwise.log1p, self)

    def log2(self: FloatingBase[S, T, F]) -> Tensor[S, T, F]:
        """Return the logarithm to the base 2.

            ln(x) / ln(2)

        Shape: that of `self`.
                Derivative: ``1 / (x * ln(2))``. As numpy's, minus infinity at 0 and NaN below, with
            a warning.

        Source: array API, ``log2``.

        >>> import tapetensor as tt
        >>> tt.full((2,), 8.0).log2()
        Tensor([3., 3.], shape=(2,), dtype=float32, NoneTape)
        """
        return _of_floats(elementwise.log2, self)

    def log10(self: FloatingBase[S, T, F]) -> Tensor[S, T, F]:
        """Return the logarithm to the base 10.

            ln(x) / ln(10)

        Shape: that of `self`.
                Derivative: ``1 / (x * ln(10))``. As numpy's, minus infinity at 0 and NaN below,
            with a warning.

        Source: array API, ``log10``.

        >>> import tapetensor as tt
        >>> tt.ones((2,)).log10()
        Tensor([0., 0.], shape=(2,), dtype=float32, NoneTape)
        """
        return _of_floats(elementwise.log10, self)

    def rsqrt(self: FloatingBase[S, T, F]) -> Tensor[S, T, F]:
        """Return the reciprocal of the square root.

            1 / sqrt(x)

        Shape: that of `self`.
        Derivative: ``-1 / (2 * x * sqrt(x))``.

        >>> import tapetensor as tt
        >>> tt.full((2,), 4.0).rsqrt()
        Tensor([0.5, 0.5], shape=(2,), dtype=float32, NoneTape)
        """
        return _of_floats(elementwise.rsqrt, self)

    def erf(self: FloatingBase[S, T, F]) -> Tensor[S, T, F]:
        """Return the error function.

            2 / sqrt(pi) * integral of e**(-t**2) from 0 to x

        Shape: that of `self`.
        Derivative: ``2 / sqrt(pi) * e**(-x**2)``.

        Source: W. J. Cody (1969), "Rational Chebyshev approximations for the error function".

        >>> import tapetensor as tt
        >>> tt.zeros((2,)).erf()
        Tensor([0., 0.], shape=(2,), dtype=float32, NoneTape)
        """
        return _of_floats(elementwise.erf, self)

    def floor(self: FloatingBase[S, T, F]) -> Tensor[S, T, F]:
        """Return the largest whole numbers that are not above the elements.

        Shape: that of `self`.
        Derivative: 0.

        Raises:
            DTypeError: if the dtype is not floating.

        Source: array API, ``floor``.

        >>> import tapetensor as tt
        >>> tt.from_numpy([-1.5, 2.5], shape=(2,)).floor()
        Tensor([-2.,  2.], shape=(2,), dtype=float32, NoneTape)
        """
        check_floating("floor", self)
        return apply(elementwise.floor, (self,))

    def ceil(self: FloatingBase[S, T, F]) -> Tensor[S, T, F]:
        """Return the smallest whole numbers that are not below the elements.

        Shape: that of `self`.
        Derivative: 0.

        Raises:
            DTypeError: if the dtype is not floating.

        Source: array API, ``ceil``.

        >>> import tapetensor as tt
        >>> tt.from_numpy([-1.5, 2.5], shape=(2,)).ceil()
        Tensor([-1.,  3.], shape=(2,), dtype=float32, NoneTape)
        """
        check_floating("ceil", self)
        return apply(elementwise.ceil, (self,))

    def round(self: FloatingBase[S, T, F]) -> Tensor[S, T, F]:
        """Return the nearest whole numbers; halfway between two, the even one.

        Shape: that of `self`.
        Derivative: 0.

        Raises:
            DTypeError: if the dtype is not floating.

        Source: array API, ``round``.

        >>> import tapetensor as tt
        >>> tt.from_numpy([1.5, 2.5], shape=(2,)).round()
        Tensor([2., 2.], shape=(2,), dtype=float32, NoneTape)
        """
        check_floating("round", self)
        return apply(elementwise.round, (self,))

    def trunc(self: FloatingBase[S, T, F]) -> Tensor[S, T, F]:
        """Return the whole numbers next to the elements on the way to 0.

        Shape: that of `self`.
        Derivative: 0.

        Raises:
            DTypeError: if the dtype is not floating.

        Source: array API, ``trunc``.

        >>> import tapetensor as tt
        >>> tt.from_numpy([-1.5, 2.5], shape=(2,)).trunc()
        Tensor([-1.,  2.], shape=(2,), dtype=float32, NoneTape)
        """
        check_floating("trunc", self)
        return apply(elementwise.trunc, (self,))

    def sign(self: NumberBase[S, T, R]) -> Tensor[S, T, R]:
        """Return -1 for elements below 0, 1 for those above, 0 for 0.

        Shape: that of `self`.
        Derivative: 0.

        Raises:
            DTypeError: for a bool tensor.

        Source: array API, ``sign``.

        >>> import tapetensor as tt
        >>> tt.from_numpy([-1.5, 2.5], shape=(2,)).sign()
        Tensor([-1.,  1.], shape=(2,), dtype=float32, NoneTape)
        """
        check_numeric("sign", self)
        return apply(elementwise.sign, (self,))


def _of_floats(kernel: Kernel, x: TensorBase[Any, Any, Any]) -> Tensor[Any, Any, Any]:
    check_floating(kernel.__name__, x)
    return apply(kernel, (x,))
