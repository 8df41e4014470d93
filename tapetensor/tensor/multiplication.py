"""Multiplying, dividing and raising to a power.

The shapes that plain typing can say are: equal shapes, a number or a 0-d tensor, a row or a matrix
under leading axes, and a 1 (from `keepdims`, say) in the first, the last or the second-last place.
numpy broadcasts more at run time; spell such a case with ``x.broadcast_to(shape)``.
"""

# Where an operand fits in more than one way (a dim may be 1, or Any) the overloads overlap; they
# give the same shape there, and the first that fits is taken.
# mypy: disable-error-code="overload-overlap"

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, TypeAlias, overload

from tapetensor.errors import ArgumentValueError
from tapetensor.kernels import arithmetic
from tapetensor.tape import NoneTape, OwnedTape
from tapetensor.tensor.apply import apply, apply_pair
from tapetensor.tensor.base import FloatingBase, NumberBase, TensorBase, check_floating
from tapetensor.tensor.operands import OPERAND, ShapeOfRhs, TapeOfRhs, as_scalar, binary
from tapetensor.typing import B, D, Ds, F, M, N, R, S, T

if TYPE_CHECKING:
    from tapetensor.tensor.tensor import Joins, Tensor

One: TypeAlias = Literal[1]


class Multiplication(TensorBase[S, T, D]):
    """The operators ``*``, ``/`` and ``**``."""

    __slots__ = ()

    @overload
    def __mul__(self: FloatingBase[S, T, F], rhs: float, /) -> Tensor[S, T, F]: ...
    @overload
    def __mul__(self: NumberBase[S, T, R], rhs: int, /) -> Tensor[S, T, R]: ...
    @overload
    def __mul__(
        self: NumberBase[S, T, R],
        rhs: Joins[S, T, R] | Joins[tuple[()], T, R],
        /,
    ) -> Tensor[S, T, R]: ...
    @overload
    def __mul__(
        self: NumberBase[S, NoneTape, R],
        rhs: Tensor[S, TapeOfRhs, R] | Tensor[tuple[()], TapeOfRhs, R],
        /,
    ) -> Tensor[S, TapeOfRhs, R]: ...
    @overload
    def __mul__(
        self: NumberBase[S, T, R],
        rhs: Tensor[S, OwnedTape, R] | Tensor[tuple[()], OwnedTape, R],
        /,
    ) -> Tensor[S, OwnedTape, R]: ...
    @overload
    def __mul__(
        self: NumberBase[tuple[*Ds, N], T, R],
        rhs: Joins[tuple[N], T, R] | Joins[tuple[*Ds, One], T, R],
        /,
    ) -> Tensor[tuple[*Ds, N], T, R]: ...
    @overload
    def __mul__(
        self: NumberBase[tuple[*Ds, N], NoneTape, R],
        rhs: Tensor[tuple[N], TapeOfRhs, R] | Tensor[tuple[*Ds, One], TapeOfRhs, R],
        /,
    ) -> Tensor[tuple[*Ds, N], TapeOfRhs, R]: ...
    @overload
    def __mul__(
        self: NumberBase[tuple[*Ds, M, N], T, R],
        rhs: Joins[tuple[M, N], T, R] | Joins[tuple[M, One], T, R] | Joins[tuple[One, N], T, R],
        /,
    ) -> Tensor[tuple[*Ds, M, N], T, R]: ...
    @overload
    def __mul__(
        self: NumberBase[tuple[*Ds, M, N], NoneTape, R],
        rhs: Tensor[tuple[M, N], TapeOfRhs, R]
        | Tensor[tuple[M, One], TapeOfRhs, R]
        | Tensor[tuple[One, N], TapeOfRhs, R],
        /,
    ) -> Tensor[tuple[*Ds, M, N], TapeOfRhs, R]: ...
    @overload
    def __mul__(
        self: NumberBase[tuple[B, *Ds], T, R],
        rhs: Joins[tuple[One, *Ds], T, R],
        /,
    ) -> Tensor[tuple[B, *Ds], T, R]: ...
    @overload
    def __mul__(
        self: NumberBase[tuple[B, *Ds], NoneTape, R],
        rhs: Tensor[tuple[One, *Ds], TapeOfRhs, R],
        /,
    ) -> Tensor[tuple[B, *Ds], TapeOfRhs, R]: ...
    @overload
    def __mul__(
        self: NumberBase[tuple[N], T, R],
        rhs: Joins[tuple[*Ds, N], T, R],
        /,
    ) -> Tensor[tuple[*Ds, N], T, R]: ...
    @overload
    def __mul__(
        self: NumberBase[tuple[N], NoneTape, R],
        rhs: Tensor[tuple[*Ds, N], TapeOfRhs, R],
        /,
    ) -> Tensor[tuple[*Ds, N], TapeOfRhs, R]: ...
    @overload
    def __mul__(
        self: NumberBase[tuple[M, N], T, R],
        rhs: Joins[tuple[*Ds, M, N], T, R],
        /,
    ) -> Tensor[tuple[*Ds, M, N], T, R]: ...
    @overload
    def __mul__(
        self: NumberBase[tuple[M, N], NoneTape, R],
        rhs: Tensor[tuple[*Ds, M, N], TapeOfRhs, R],
        /,
    ) -> Tensor[tuple[*Ds, M, N], TapeOfRhs, R]: ...
    @overload
    def __mul__(
        self: NumberBase[tuple[*Ds, One], T, R],
        rhs: Joins[tuple[*Ds, N], T, R],
        /,
    ) -> Tensor[tuple[*Ds, N], T, R]: ...
    @overload
    def __mul__(
        self: NumberBase[tuple[*Ds, One], NoneTape, R],
        rhs: Tensor[tuple[*Ds, N], TapeOfRhs, R],
        /,
    ) -> Tensor[tuple[*Ds, N], TapeOfRhs, R]: ...
    @overload
    def __mul__(
        self: NumberBase[tuple[One, *Ds], T, R],
        rhs: Joins[tuple[B, *Ds], T, R],
        /,
    ) -> Tensor[tuple[B, *Ds], T, R]: ...
    @overload
    def __mul__(
        self: NumberBase[tuple[One, *Ds], NoneTape, R],
        rhs: Tensor[tuple[B, *Ds], TapeOfRhs, R],
        /,
    ) -> Tensor[tuple[B, *Ds], TapeOfRhs, R]: ...
    @overload
    def __mul__(
        self: NumberBase[tuple[M, One], T, R],
        rhs: Joins[tuple[One, N], T, R] | Joins[tuple[N], T, R],
        /,
    ) -> Tensor[tuple[M, N], T, R]: ...
    @overload
    def __mul__(
        self: NumberBase[tuple[M, One], NoneTape, R],
        rhs: Tensor[tuple[One, N], TapeOfRhs, R] | Tensor[tuple[N], TapeOfRhs, R],
        /,
    ) -> Tensor[tuple[M, N], TapeOfRhs, R]: ...
    @overload
    def __mul__(
        self: NumberBase[tuple[()], T, R],
        rhs: Joins[ShapeOfRhs, T, R],
        /,
    ) -> Tensor[ShapeOfRhs, T, R]: ...
    @overload
    def __mul__(
        self: NumberBase[tuple[()], NoneTape, R],
        rhs: Tensor[ShapeOfRhs, TapeOfRhs, R],
        /,
    ) -> Tensor[ShapeOfRhs, TapeOfRhs, R]: ...
    def __mul__(self, rhs: Any, /) -> Tensor[Any, Any, Any]:
        """Multiply element by element.

            lhs * rhs

        Shape: numpy's broadcasting.
        Derivative: ``rhs`` for `lhs` and the reverse, summed over the axes that were broadcast.
        Tape: the tapes of both merge; an operand that owned one is spent.

        Raises:
            ShapeError: if the shapes do not broadcast.
            DTypeError: if the dtypes differ.
        """
        if rhs.__class__ is self.__class__:
            return apply_pair(arithmetic.multiply, self, rhs)
        return binary(arithmetic.multiply, arithmetic.multiply_number, self, rhs)

    @overload
    def __truediv__(self: FloatingBase[S, T, F], rhs: float, /) -> Tensor[S, T, F]: ...
    @overload
    def __truediv__(
        self: FloatingBase[S, T, F],
        rhs: Joins[S, T, F] | Joins[tuple[()], T, F],
        /,
    ) -> Tensor[S, T, F]: ...
    @overload
    def __truediv__(
        self: FloatingBase[S, NoneTape, F],
        rhs: Tensor[S, TapeOfRhs, F] | Tensor[tuple[()], TapeOfRhs, F],
        /,
    ) -> Tensor[S, TapeOfRhs, F]: ...
    @overload
    def __truediv__(
        self: FloatingBase[S, T, F],
        rhs: Tensor[S, OwnedTape, F] | Tensor[tuple[()], OwnedTape, F],
        /,
    ) -> Tensor[S, OwnedTape, F]: ...
    @overload
    def __truediv__(
        self: FloatingBase[tuple[*Ds, N], T, F],
        rhs: Joins[tuple[N], T, F] | Joins[tuple[*Ds, One], T, F],
        /,
    ) -> Tensor[tuple[*Ds, N], T, F]: ...
    @overload
    def __truediv__(
        self: FloatingBase[tuple[*Ds, N], NoneTape, F],
        rhs: Tensor[tuple[N], TapeOfRhs, F] | Tensor[tuple[*Ds, One], TapeOfRhs, F],
        /,
    ) -> Tensor[tuple[*Ds, N], TapeOfRhs, F]: ...
    @overload
    def __truediv__(
        self: FloatingBase[tuple[*Ds, M, N], T, F],
        rhs: Joins[tuple[M, N], T, F] | Joins[tuple[M, One], T, F] | Joins[tuple[One, N], T, F],
        /,
    ) -> Tensor[tuple[*Ds, M, N], T, F]: ...
    @overload
    def __truediv__(
        self: FloatingBase[tuple[*Ds, M, N], NoneTape, F],
        rhs: Tensor[tuple[M, N], TapeOfRhs, F]
        | Tensor[tuple[M, One], TapeOfRhs, F]
        | Tensor[tuple[One, N], TapeOfRhs, F],
        /,
    ) -> Tensor[tuple[*Ds, M, N], TapeOfRhs, F]: ...
    @overload
    def __truediv__(
        self: FloatingBase[tuple[B, *Ds], T, F],
        rhs: Joins[tuple[One, *Ds], T, F],
        /,
    ) -> Tensor[tuple[B, *Ds], T, F]: ...
    @overload
    def __truediv__(
        self: FloatingBase[tuple[B, *Ds], NoneTape, F],
        rhs: Tensor[tuple[One, *Ds], TapeOfRhs, F],
        /,
    ) -> Tensor[tuple[B, *Ds], TapeOfRhs, F]: ...
    @overload
    def __truediv__(
        self: FloatingBase[tuple[N], T, F],
        rhs: Joins[tuple[*Ds, N], T, F],
        /,
    ) -> Tensor[tuple[*Ds, N], T, F]: ...
    @overload
    def __truediv__(
        self: FloatingBase[tuple[N], NoneTape, F],
        rhs: Tensor[tuple[*Ds, N], TapeOfRhs, F],
        /,
    ) -> Tensor[tuple[*Ds, N], TapeOfRhs, F]: ...
    @overload
    def __truediv__(
        self: FloatingBase[tuple[M, N], T, F],
        rhs: Joins[tuple[*Ds, M, N], T, F],
        /,
    ) -> Tensor[tuple[*Ds, M, N], T, F]: ...
    @overload
    def __truediv__(
        self: FloatingBase[tuple[M, N], NoneTape, F],
        rhs: Tensor[tuple[*Ds, M, N], TapeOfRhs, F],
        /,
    ) -> Tensor[tuple[*Ds, M, N], TapeOfRhs, F]: ...
    @overload
    def __truediv__(
        self: FloatingBase[tuple[*Ds, One], T, F],
        rhs: Joins[tuple[*Ds, N], T, F],
        /,
    ) -> Tensor[tuple[*Ds, N], T, F]: ...
    @overload
    def __truediv__(
        self: FloatingBase[tuple[*Ds, One], NoneTape, F],
        rhs: Tensor[tuple[*Ds, N], TapeOfRhs, F],
        /,
    ) -> Tensor[tuple[*Ds, N], TapeOfRhs, F]: ...
    @overload
    def __truediv__(
        self: FloatingBase[tuple[One, *Ds], T, F],
        rhs: Joins[tuple[B, *Ds], T, F],
        /,
    ) -> Tensor[tuple[B, *Ds], T, F]: ...
    @overload
    def __truediv__(
        self: FloatingBase[tuple[One, *Ds], NoneTape, F],
        rhs: Tensor[tuple[B, *Ds], TapeOfRhs, F],
        /,
    ) -> Tensor[tuple[B, *Ds], TapeOfRhs, F]: ...
    @overload
    def __truediv__(
        self: FloatingBase[tuple[M, One], T, F],
        rhs: Joins[tuple[One, N], T, F] | Joins[tuple[N], T, F],
        /,
    ) -> Tensor[tuple[M, N], T, F]: ...
    @overload
    def __truediv__(
        self: FloatingBase[tuple[M, One], NoneTape, F],
        rhs: Tensor[tuple[One, N], TapeOfRhs, F] | Tensor[tuple[N], TapeOfRhs, F],
        /,
    ) -> Tensor[tuple[M, N], TapeOfRhs, F]: ...
    @overload
    def __truediv__(
        self: FloatingBase[tuple[()], T, F],
        rhs: Joins[ShapeOfRhs, T, F],
        /,
    ) -> Tensor[ShapeOfRhs, T, F]: ...
    @overload
    def __truediv__(
        self: FloatingBase[tuple[()], NoneTape, F],
        rhs: Tensor[ShapeOfRhs, TapeOfRhs, F],
        /,
    ) -> Tensor[ShapeOfRhs, TapeOfRhs, F]: ...
    def __truediv__(self, rhs: Any, /) -> Tensor[Any, Any, Any]:
        """Divide element by element; floating dtypes only.

            lhs / rhs

        Shape: numpy's broadcasting.
        Derivative: ``1 / rhs`` for `lhs`, ``-lhs / rhs**2`` for `rhs`, summed over the axes that
            were broadcast.
        Tape: the tapes of both merge; an operand that owned one is spent.

        Raises:
            ShapeError: if the shapes do not broadcast.
            DTypeError: if the dtypes differ or are not floating.
        """
        if rhs.__class__ is self.__class__:
            return apply_pair(arithmetic.divide, self, rhs)
        return binary(arithmetic.divide, arithmetic.divide_number, self, rhs)

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
        Tape: the tapes of both merge; an operand that owned one is spent.

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

    @overload
    def __rmul__(self: FloatingBase[S, T, F], lhs: float, /) -> Tensor[S, T, F]: ...
    @overload
    def __rmul__(self: NumberBase[S, T, R], lhs: int, /) -> Tensor[S, T, R]: ...
    def __rmul__(self, lhs: Any, /) -> Tensor[Any, Any, Any]:
        """Multiply by a number."""
        return apply(arithmetic.multiply_number, (self,), (as_scalar("multiply", OPERAND, lhs),))

    def __rtruediv__(self: FloatingBase[S, T, F], lhs: float, /) -> Tensor[S, T, F]:
        """Divide a number."""
        return apply(arithmetic.rdivide_number, (self,), (as_scalar("rdivide", OPERAND, lhs),))

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
