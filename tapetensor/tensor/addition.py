"""Adding, subtracting and negating.

The shapes that plain typing can say are: equal shapes, a number or a 0-d tensor, a row or a matrix
under leading axes, and a 1 (from `keepdims`, say) in the first, the last or the second-last place.
numpy broadcasts more at run time; spell such a case with ``x.broadcast_to(shape)``.
"""

# Where an operand fits in more than one way (a dim may be 1, or Any) the overloads overlap; they
# give the same shape there, and the first that fits is taken.
# mypy: disable-error-code="overload-overlap"

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, TypeAlias, overload

from tapetensor.kernels import arithmetic
from tapetensor.tape import NoneTape, OwnedTape
from tapetensor.tensor.apply import apply, apply_pair
from tapetensor.tensor.base import FloatingBase, NumberBase, TensorBase
from tapetensor.tensor.operands import OPERAND, ShapeOfRhs, TapeOfRhs, as_scalar, binary
from tapetensor.typing import B, D, Ds, F, M, N, R, S, T

if TYPE_CHECKING:
    from tapetensor.tensor.tensor import Joins, Tensor

One: TypeAlias = Literal[1]


class Addition(TensorBase[S, T, D]):
    """The operators ``+`` and ``-``."""

    __slots__ = ()

    @overload
    def __add__(self: FloatingBase[S, T, F], rhs: float, /) -> Tensor[S, T, F]: ...
    @overload
    def __add__(self: NumberBase[S, T, R], rhs: int, /) -> Tensor[S, T, R]: ...
    @overload
    def __add__(
        self: NumberBase[S, T, R],
        rhs: Joins[S, T, R] | Joins[tuple[()], T, R],
        /,
    ) -> Tensor[S, T, R]: ...
    @overload
    def __add__(
        self: NumberBase[S, NoneTape, R],
        rhs: Tensor[S, TapeOfRhs, R] | Tensor[tuple[()], TapeOfRhs, R],
        /,
    ) -> Tensor[S, TapeOfRhs, R]: ...
    @overload
    def __add__(
        self: NumberBase[S, T, R],
        rhs: Tensor[S, OwnedTape, R] | Tensor[tuple[()], OwnedTape, R],
        /,
    ) -> Tensor[S, OwnedTape, R]: ...
    @overload
    def __add__(
        self: NumberBase[tuple[*Ds, N], T, R],
        rhs: Joins[tuple[N], T, R] | Joins[tuple[*Ds, One], T, R],
        /,
    ) -> Tensor[tuple[*Ds, N], T, R]: ...
    @overload
    def __add__(
        self: NumberBase[tuple[*Ds, N], NoneTape, R],
        rhs: Tensor[tuple[N], TapeOfRhs, R] | Tensor[tuple[*Ds, One], TapeOfRhs, R],
        /,
    ) -> Tensor[tuple[*Ds, N], TapeOfRhs, R]: ...
    @overload
    def __add__(
        self: NumberBase[tuple[*Ds, M, N], T, R],
        rhs: Joins[tuple[M, N], T, R] | Joins[tuple[M, One], T, R] | Joins[tuple[One, N], T, R],
        /,
    ) -> Tensor[tuple[*Ds, M, N], T, R]: ...
    @overload
    def __add__(
        self: NumberBase[tuple[*Ds, M, N], NoneTape, R],
        rhs: Tensor[tuple[M, N], TapeOfRhs, R]
        | Tensor[tuple[M, One], TapeOfRhs, R]
        | Tensor[tuple[One, N], TapeOfRhs, R],
        /,
    ) -> Tensor[tuple[*Ds, M, N], TapeOfRhs, R]: ...
    @overload
    def __add__(
        self: NumberBase[tuple[B, *Ds], T, R],
        rhs: Joins[tuple[One, *Ds], T, R],
        /,
    ) -> Tensor[tuple[B, *Ds], T, R]: ...
    @overload
    def __add__(
        self: NumberBase[tuple[B, *Ds], NoneTape, R],
        rhs: Tensor[tuple[One, *Ds], TapeOfRhs, R],
        /,
    ) -> Tensor[tuple[B, *Ds], TapeOfRhs, R]: ...
    @overload
    def __add__(
        self: NumberBase[tuple[N], T, R],
        rhs: Joins[tuple[*Ds, N], T, R],
        /,
    ) -> Tensor[tuple[*Ds, N], T, R]: ...
    @overload
    def __add__(
        self: NumberBase[tuple[N], NoneTape, R],
        rhs: Tensor[tuple[*Ds, N], TapeOfRhs, R],
        /,
    ) -> Tensor[tuple[*Ds, N], TapeOfRhs, R]: ...
    @overload
    def __add__(
        self: NumberBase[tuple[M, N], T, R],
        rhs: Joins[tuple[*Ds, M, N], T, R],
        /,
    ) -> Tensor[tuple[*Ds, M, N], T, R]: ...
    @overload
    def __add__(
        self: NumberBase[tuple[M, N], NoneTape, R],
        rhs: Tensor[tuple[*Ds, M, N], TapeOfRhs, R],
        /,
    ) -> Tensor[tuple[*Ds, M, N], TapeOfRhs, R]: ...
    @overload
    def __add__(
        self: NumberBase[tuple[*Ds, One], T, R],
        rhs: Joins[tuple[*Ds, N], T, R],
        /,
    ) -> Tensor[tuple[*Ds, N], T, R]: ...
    @overload
    def __add__(
        self: NumberBase[tuple[*Ds, One], NoneTape, R],
        rhs: Tensor[tuple[*Ds, N], TapeOfRhs, R],
        /,
    ) -> Tensor[tuple[*Ds, N], TapeOfRhs, R]: ...
    @overload
    def __add__(
        self: NumberBase[tuple[One, *Ds], T, R],
        rhs: Joins[tuple[B, *Ds], T, R],
        /,
    ) -> Tensor[tuple[B, *Ds], T, R]: ...
    @overload
    def __add__(
        self: NumberBase[tuple[One, *Ds], NoneTape, R],
        rhs: Tensor[tuple[B, *Ds], TapeOfRhs, R],
        /,
    ) -> Tensor[tuple[B, *Ds], TapeOfRhs, R]: ...
    @overload
    def __add__(
        self: NumberBase[tuple[M, One], T, R],
        rhs: Joins[tuple[One, N], T, R] | Joins[tuple[N], T, R],
        /,
    ) -> Tensor[tuple[M, N], T, R]: ...
    @overload
    def __add__(
        self: NumberBase[tuple[M, One], NoneTape, R],
        rhs: Tensor[tuple[One, N], TapeOfRhs, R] | Tensor[tuple[N], TapeOfRhs, R],
        /,
    ) -> Tensor[tuple[M, N], TapeOfRhs, R]: ...
    @overload
    def __add__(
        self: NumberBase[tuple[()], T, R],
        rhs: Joins[ShapeOfRhs, T, R],
        /,
    ) -> Tensor[ShapeOfRhs, T, R]: ...
    @overload
    def __add__(
        self: NumberBase[tuple[()], NoneTape, R],
        rhs: Tensor[ShapeOfRhs, TapeOfRhs, R],
        /,
    ) -> Tensor[ShapeOfRhs, TapeOfRhs, R]: ...
    def __add__(self, rhs: Any, /) -> Tensor[Any, Any, Any]:
        """Add.

            lhs + rhs

        Shape: numpy's broadcasting.
        Derivative: 1 for both, summed over the axes that were broadcast.
        Tape: the tapes of both merge; an operand that owned one is spent.

        Raises:
            ShapeError: if the shapes do not broadcast.
            DTypeError: if the dtypes differ.
        """
        if rhs.__class__ is self.__class__:
            return apply_pair(arithmetic.add, self, rhs)
        return binary(arithmetic.add, arithmetic.add_number, self, rhs)

    @overload
    def __sub__(self: FloatingBase[S, T, F], rhs: float, /) -> Tensor[S, T, F]: ...
    @overload
    def __sub__(self: NumberBase[S, T, R], rhs: int, /) -> Tensor[S, T, R]: ...
    @overload
    def __sub__(
        self: NumberBase[S, T, R],
        rhs: Joins[S, T, R] | Joins[tuple[()], T, R],
        /,
    ) -> Tensor[S, T, R]: ...
    @overload
    def __sub__(
        self: NumberBase[S, NoneTape, R],
        rhs: Tensor[S, TapeOfRhs, R] | Tensor[tuple[()], TapeOfRhs, R],
        /,
    ) -> Tensor[S, TapeOfRhs, R]: ...
    @overload
    def __sub__(
        self: NumberBase[S, T, R],
        rhs: Tensor[S, OwnedTape, R] | Tensor[tuple[()], OwnedTape, R],
        /,
    ) -> Tensor[S, OwnedTape, R]: ...
    @overload
    def __sub__(
        self: NumberBase[tuple[*Ds, N], T, R],
        rhs: Joins[tuple[N], T, R] | Joins[tuple[*Ds, One], T, R],
        /,
    ) -> Tensor[tuple[*Ds, N], T, R]: ...
    @overload
    def __sub__(
        self: NumberBase[tuple[*Ds, N], NoneTape, R],
        rhs: Tensor[tuple[N], TapeOfRhs, R] | Tensor[tuple[*Ds, One], TapeOfRhs, R],
        /,
    ) -> Tensor[tuple[*Ds, N], TapeOfRhs, R]: ...
    @overload
    def __sub__(
        self: NumberBase[tuple[*Ds, M, N], T, R],
        rhs: Joins[tuple[M, N], T, R] | Joins[tuple[M, One], T, R] | Joins[tuple[One, N], T, R],
        /,
    ) -> Tensor[tuple[*Ds, M, N], T, R]: ...
    @overload
    def __sub__(
        self: NumberBase[tuple[*Ds, M, N], NoneTape, R],
        rhs: Tensor[tuple[M, N], TapeOfRhs, R]
        | Tensor[tuple[M, One], TapeOfRhs, R]
        | Tensor[tuple[One, N], TapeOfRhs, R],
        /,
    ) -> Tensor[tuple[*Ds, M, N], TapeOfRhs, R]: ...
    @overload
    def __sub__(
        self: NumberBase[tuple[B, *Ds], T, R],
        rhs: Joins[tuple[One, *Ds], T, R],
        /,
    ) -> Tensor[tuple[B, *Ds], T, R]: ...
    @overload
    def __sub__(
        self: NumberBase[tuple[B, *Ds], NoneTape, R],
        rhs: Tensor[tuple[One, *Ds], TapeOfRhs, R],
        /,
    ) -> Tensor[tuple[B, *Ds], TapeOfRhs, R]: ...
    @overload
    def __sub__(
        self: NumberBase[tuple[N], T, R],
        rhs: Joins[tuple[*Ds, N], T, R],
        /,
    ) -> Tensor[tuple[*Ds, N], T, R]: ...
    @overload
    def __sub__(
        self: NumberBase[tuple[N], NoneTape, R],
        rhs: Tensor[tuple[*Ds, N], TapeOfRhs, R],
        /,
    ) -> Tensor[tuple[*Ds, N], TapeOfRhs, R]: ...
    @overload
    def __sub__(
        self: NumberBase[tuple[M, N], T, R],
        rhs: Joins[tuple[*Ds, M, N], T, R],
        /,
    ) -> Tensor[tuple[*Ds, M, N], T, R]: ...
    @overload
    def __sub__(
        self: NumberBase[tuple[M, N], NoneTape, R],
        rhs: Tensor[tuple[*Ds, M, N], TapeOfRhs, R],
        /,
    ) -> Tensor[tuple[*Ds, M, N], TapeOfRhs, R]: ...
    @overload
    def __sub__(
        self: NumberBase[tuple[*Ds, One], T, R],
        rhs: Joins[tuple[*Ds, N], T, R],
        /,
    ) -> Tensor[tuple[*Ds, N], T, R]: ...
    @overload
    def __sub__(
        self: NumberBase[tuple[*Ds, One], NoneTape, R],
        rhs: Tensor[tuple[*Ds, N], TapeOfRhs, R],
        /,
    ) -> Tensor[tuple[*Ds, N], TapeOfRhs, R]: ...
    @overload
    def __sub__(
        self: NumberBase[tuple[One, *Ds], T, R],
        rhs: Joins[tuple[B, *Ds], T, R],
        /,
    ) -> Tensor[tuple[B, *Ds], T, R]: ...
    @overload
    def __sub__(
        self: NumberBase[tuple[One, *Ds], NoneTape, R],
        rhs: Tensor[tuple[B, *Ds], TapeOfRhs, R],
        /,
    ) -> Tensor[tuple[B, *Ds], TapeOfRhs, R]: ...
    @overload
    def __sub__(
        self: NumberBase[tuple[M, One], T, R],
        rhs: Joins[tuple[One, N], T, R] | Joins[tuple[N], T, R],
        /,
    ) -> Tensor[tuple[M, N], T, R]: ...
    @overload
    def __sub__(
        self: NumberBase[tuple[M, One], NoneTape, R],
        rhs: Tensor[tuple[One, N], TapeOfRhs, R] | Tensor[tuple[N], TapeOfRhs, R],
        /,
    ) -> Tensor[tuple[M, N], TapeOfRhs, R]: ...
    @overload
    def __sub__(
        self: NumberBase[tuple[()], T, R],
        rhs: Joins[ShapeOfRhs, T, R],
        /,
    ) -> Tensor[ShapeOfRhs, T, R]: ...
    @overload
    def __sub__(
        self: NumberBase[tuple[()], NoneTape, R],
        rhs: Tensor[ShapeOfRhs, TapeOfRhs, R],
        /,
    ) -> Tensor[ShapeOfRhs, TapeOfRhs, R]: ...
    def __sub__(self, rhs: Any, /) -> Tensor[Any, Any, Any]:
        """Subtract.

            lhs - rhs

        Shape: numpy's broadcasting.
        Derivative: 1 for `lhs`, -1 for `rhs`, summed over the axes that were broadcast.
        Tape: the tapes of both merge; an operand that owned one is spent.

        Raises:
            ShapeError: if the shapes do not broadcast.
            DTypeError: if the dtypes differ.
        """
        if rhs.__class__ is self.__class__:
            return apply_pair(arithmetic.subtract, self, rhs)
        return binary(arithmetic.subtract, arithmetic.subtract_number, self, rhs)

    @overload
    def __radd__(self: FloatingBase[S, T, F], lhs: float, /) -> Tensor[S, T, F]: ...
    @overload
    def __radd__(self: NumberBase[S, T, R], lhs: int, /) -> Tensor[S, T, R]: ...
    def __radd__(self, lhs: Any, /) -> Tensor[Any, Any, Any]:
        """Add to a number."""
        return apply(arithmetic.add_number, (self,), (as_scalar("add", OPERAND, lhs),))

    @overload
    def __rsub__(self: FloatingBase[S, T, F], lhs: float, /) -> Tensor[S, T, F]: ...
    @overload
    def __rsub__(self: NumberBase[S, T, R], lhs: int, /) -> Tensor[S, T, R]: ...
    def __rsub__(self, lhs: Any, /) -> Tensor[Any, Any, Any]:
        """Subtract from a number."""
        return apply(arithmetic.rsubtract_number, (self,), (as_scalar("rsubtract", OPERAND, lhs),))

    def __neg__(self: NumberBase[S, T, R]) -> Tensor[S, T, R]:
        """Negate.

        Derivative: -1.
        """
        return apply(arithmetic.negative, (self,))
