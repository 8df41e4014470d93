"""Adding, subtracting, negating, multiplying, dividing and raising to a power.

The shapes that plain typing can say are: equal shapes, a number or a 0-d tensor, a row or a matrix
under leading axes, and a 1 (from `keepdims`, say) in the first, the last or the second-last place.
numpy broadcasts more at run time; spell such a case with ``x.broadcast_to(shape)``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, overload

from tapetensor.errors import ArgumentValueError
from tapetensor.kernels import arithmetic
from tapetensor.tape import NoneTape
from tapetensor.tensor.apply import apply, apply_pair
from tapetensor.tensor.base import FloatingBase, NumberBase, TensorBase, check_floating
from tapetensor.tensor.operands import OPERAND, TapeOfRhs, as_scalar, binary
from tapetensor.tensor.signatures import binary_operator, division, same_signature
from tapetensor.typing import D, F, R, S, T

if TYPE_CHECKING:
    from tapetensor.tensor.tensor import Joins, Tensor


class Arithmetic(TensorBase[S, T, D]):
    """The operators ``+``, ``-``, ``*``, ``/``, ``//``, ``%``, ``**``, and functions of two."""

    __slots__ = ()

    @same_signature(binary_operator)
    def __add__(self: TensorBase[S, T, D], rhs: Any, /) -> Tensor[Any, Any, Any]:
        """Add.

            lhs + rhs

        Shape: numpy's broadcasting.
        Derivative: 1 for both, summed over the axes that were broadcast.

        Raises:
            ShapeError: if the shapes do not broadcast.
            DTypeError: if the dtypes differ.
        """
        if rhs.__class__ is self.__class__:
            return apply_pair(arithmetic.add, self, rhs)
        return binary(arithmetic.add, arithmetic.add_number, self, rhs)

    @same_signature(binary_operator)
    def __sub__(self: TensorBase[S, T, D], rhs: Any, /) -> Tensor[Any, Any, Any]:
        """Subtract.

            lhs - rhs

        Shape: numpy's broadcasting.
        Derivative: 1 for `lhs`, -1 for `rhs`, summed over the axes that were broadcast.

        Raises:
            ShapeError: if the shapes do not broadcast.
            DTypeError: if the dtypes differ.
        """
        if rhs.__class__ is self.__class__:
            return apply_pair(arithmetic.subtract, self, rhs)
        return binary(arithmetic.subtract, arithmetic.subtract_number, self, rhs)

    @same_signature(binary_operator)
    def __mul__(self: TensorBase[S, T, D], rhs: Any, /) -> Tensor[Any, Any, Any]:
        """Multiply element by element.

            lhs * rhs

        Shape: numpy's broadcasting.
        Derivative: ``rhs`` for `lhs` and the reverse, summed over the axes that were broadcast.

        Raises:
            ShapeError: if the shapes do not broadcast.
            DTypeError: if the dtypes differ.
        """
        if rhs.__class__ is self.__class__:
            return apply_pair(arithmetic.multiply, self, rhs)
        return binary(arithmetic.multiply, arithmetic.multiply_number, self, rhs)

    @same_signature(division)
    def __truediv__(self: TensorBase[S, T, D], rhs: Any, /) -> Tensor[Any, Any, Any]:
        """Divide element by element; floating dtypes only.

            lhs / rhs

        Shape: numpy's broadcasting.
        Derivative: ``1 / rhs`` for `lhs`, ``-lhs / rhs**2`` for `rhs`, summed over the axes that
            were broadcast.

        Raises:
            ShapeError: if the shapes do not broadcast.
            DTypeError: if the dtypes differ or are not floating.
        """
        if rhs.__class__ is self.__class__:
            return apply_pair(arithmetic.divide, self, rhs)
        return binary(arithmetic.divide, arithmetic.divide_number, self, rhs)

    @same_signature(binary_operator)
    def __floordiv__(self: TensorBase[S, T, D], rhs: Any, /) -> Tensor[Any, Any, Any]:
        """Divide, and round down to a whole number.

            floor(lhs / rhs)

        Shape: numpy's broadcasting.
        Derivative: 0 for both.

        Raises:
            ShapeError: if the shapes do not broadcast.
            DTypeError: if the dtypes differ.
        """
        return binary(arithmetic.floor_divide, arithmetic.floor_divide_number, self, rhs)

    @same_signature(binary_operator)
    def __mod__(self: TensorBase[S, T, D], rhs: Any, /) -> Tensor[Any, Any, Any]:
        """Return what is left of a division that gives a whole number, with the sign of `rhs`.

            lhs - rhs * floor(lhs / rhs)

        Shape: numpy's broadcasting.
        Derivative: 1 for `lhs`, ``-floor(lhs / rhs)`` for `rhs`, summed over the axes that were
            broadcast.

        Raises:
            ShapeError: if the shapes do not broadcast.
            DTypeError: if the dtypes differ.
        """
        return binary(arithmetic.remainder, arithmetic.remainder_number, self, rhs)

    @overload
    def __pow__(self: FloatingBase[S, T, F], exponent: float, /) -> Tensor[S, T, F]: ...
    @overload
    def __pow__(self: FloatingBase[S, T, F], exponent: Joins[S, T, F], /) -> Tensor[S, T, F]: ...
    @overload
    def __pow__(
        self: FloatingBase[S, NoneTape, F], exponent: Tensor[S, TapeOfRhs, F], /
    ) -> Tensor[S, TapeOfRhs, F]: ...
    def __pow__(self, exponent: Any, /) -> Tensor[Any, Any, Any]:
        """Raise to a power; floating dtypes only.

            x ** p

        Shape: that of `x`; a tensor exponent broadcasts as numpy's.
        Derivative: ``p * x**(p - 1)`` for `x`, 0 where ``p`` is 0; ``x**p * log(x)`` for `p`, 0
            where `x` is 0 and `p` is not negative.

        Raises:
            ShapeError: if the shapes do not broadcast.
            DTypeError: if the dtypes differ or are not floating.

        >>> import tapetensor as tt
        >>> x = tt.from_numpy([1.0, 3.0], shape=(2,))
        >>> x**2
        Tensor([1., 9.], shape=(2,), dtype=float32, NoneTape)
        """
        check_floating("power", self)
        return binary(arithmetic.power, arithmetic.power_number, self, exponent)

    @same_signature(binary_operator)
    def __radd__(self: TensorBase[S, T, D], lhs: Any, /) -> Tensor[Any, Any, Any]:
        """Add to a number."""
        return apply(arithmetic.add_number, (self,), (as_scalar("add", OPERAND, lhs),))

    @same_signature(binary_operator)
    def __rsub__(self: TensorBase[S, T, D], lhs: Any, /) -> Tensor[Any, Any, Any]:
        """Subtract from a number."""
        return apply(arithmetic.rsubtract_number, (self,), (as_scalar("rsubtract", OPERAND, lhs),))

    @same_signature(binary_operator)
    def __rmul__(self: TensorBase[S, T, D], lhs: Any, /) -> Tensor[Any, Any, Any]:
        """Multiply by a number."""
        return apply(arithmetic.multiply_number, (self,), (as_scalar("multiply", OPERAND, lhs),))

    @same_signature(division)
    def __rtruediv__(self: TensorBase[S, T, D], lhs: Any, /) -> Tensor[Any, Any, Any]:
        """Divide a number."""
        return apply(arithmetic.rdivide_number, (self,), (as_scalar("rdivide", OPERAND, lhs),))

    @same_signature(binary_operator)
    def __rfloordiv__(self: TensorBase[S, T, D], lhs: Any, /) -> Tensor[Any, Any, Any]:
        """Divide a number, and round down to a whole number."""
        number = as_scalar("rfloor_divide", OPERAND, lhs)
        return apply(arithmetic.rfloor_divide_number, (self,), (number,))

    @same_signature(binary_operator)
    def __rmod__(self: TensorBase[S, T, D], lhs: Any, /) -> Tensor[Any, Any, Any]:
        """Return what is left of a number that is divided."""
        return apply(
            arithmetic.rremainder_number, (self,), (as_scalar("rremainder", OPERAND, lhs),)
        )

    def __rpow__(self: FloatingBase[S, T, F], base: float, /) -> Tensor[S, T, F]:
        """Raise a positive number to a power.

        Raises:
            ArgumentValueError: if the base is not positive.
            DTypeError: if the dtype is not floating.
        """
        check_floating("rpower", self)
        number = as_scalar("rpower", OPERAND, base)
        if not number > 0:
            raise ArgumentValueError(f"rpower: the base must be > 0, got {base!r}")
        return apply(arithmetic.rpower_number, (self,), (number,))

    @same_signature(division)
    def logaddexp(
        self: TensorBase[S, T, D], other: Tensor[Any, Any, Any] | float, /
    ) -> Tensor[Any, Any, Any]:
        """Return the logarithm of a sum of exponentials, without leaving the range of the dtype.

            ln(e**x + e**other)

        Shape: numpy's broadcasting.
        Derivative: ``e**(x - y)`` for `x`, ``e**(other - y)`` for `other`, with the result `y`;
            NaN where both are one infinity.

        Raises:
            ShapeError: if the shapes do not broadcast.
            DTypeError: if the dtypes differ or are not floating.

        Source: array API, ``logaddexp``.

        >>> import tapetensor as tt
        >>> tt.full((1,), 1000.0).logaddexp(-1000.0)
        Tensor([1000.], shape=(1,), dtype=float32, NoneTape)
        """
        check_floating("logaddexp", self)
        return binary(arithmetic.logaddexp, arithmetic.logaddexp_number, self, other)

    @same_signature(division)
    def atan2(
        self: TensorBase[S, T, D], other: Tensor[Any, Any, Any] | float, /
    ) -> Tensor[Any, Any, Any]:
        """Return the angle in radians, from -pi to pi, of the points ``(other, self)``.

            arctan(y / x), in the right quadrant, for y.atan2(x)

        Shape: numpy's broadcasting.
        Derivative: ``x / (x**2 + y**2)`` for `y`, ``-y / (x**2 + y**2)`` for `x`; 0 at the origin.

        Raises:
            ShapeError: if the shapes do not broadcast.
            DTypeError: if the dtypes differ or are not floating.

        Source: array API, ``atan2``.

        >>> import tapetensor as tt
        >>> tt.zeros((1,)).atan2(1.0)
        Tensor([0.], shape=(1,), dtype=float32, NoneTape)
        """
        check_floating("atan2", self)
        return binary(arithmetic.atan2, arithmetic.atan2_number, self, other)

    def __neg__(self: NumberBase[S, T, R]) -> Tensor[S, T, R]:
        """Negate.

        Derivative: -1.
        """
        return apply(arithmetic.negative, (self,))
