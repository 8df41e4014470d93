"""The type variables that tensor signatures are written with, ready to import.

One letter, one meaning, everywhere in the library and in its examples:

========  =====================================================================
``S``     a shape, a tuple of dims
``T``     a tape state, `NoneTape` or `OwnedTape`
``D``     a dtype, a numpy scalar type
``F``     a floating dtype
``R``     a real number dtype, floating or integer
``B``     the batch dim
``M``     a dim: rows
``N``     a dim: columns, the last axis
``K``     a dim: the contracted one, or the fourth
``P Q``   two more dims, for ranks five and six
``Ds``    any number of leading (or trailing) dims
========  =====================================================================

None of them has a default, so that functions may list them in any order.

Three aliases are for kernels of your own (`tapetensor.custom_op`): `Array`, a numpy array of any
shape and dtype, `Pullback`, from the cotangent of an output to that of an operand, and `Pullbacks`,
a tuple of one per operand.

A dim that is computed from others is written ``Add[M, N]``, ``Sub[M, N]``, ``Mul[M, N]`` or
``Div[M, N]``, nested at will, with literals too: ``Mul[M, Literal[2]]``. Checkers without the mypy
plugin take it for `Any`, a dim that is open; the plugin computes with it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic

import numpy as np
from typing_extensions import TypeAliasType, TypeVar, TypeVarTuple

from tapetensor.arrays.array import Array
from tapetensor.tape import Pullback, Pullbacks, Tape

# Not `tuple[int, ...]`: a type variable tuple cannot say that its dims are ints.
S = TypeVar("S", bound=tuple[Any, ...])
T = TypeVar("T", bound=Tape)
D = TypeVar("D", bound=np.generic)
F = TypeVar("F", bound=np.floating[Any])
R = TypeVar("R", bound=np.number[Any])
B = TypeVar("B", bound=int)
M = TypeVar("M", bound=int)
N = TypeVar("N", bound=int)
K = TypeVar("K", bound=int)
P = TypeVar("P", bound=int)
Q = TypeVar("Q", bound=int)
Ds = TypeVarTuple("Ds")

Add = TypeAliasType("Add", Any, type_params=(M, N))
Sub = TypeAliasType("Sub", Any, type_params=(M, N))
Mul = TypeAliasType("Mul", Any, type_params=(M, N))
Div = TypeAliasType("Div", Any, type_params=(M, N))

if TYPE_CHECKING:

    class _Computed:
        """What the mypy plugin puts in the place of these: ints with dims as arguments."""

        class Add(int, Generic[M, N]): ...

        class Sub(int, Generic[M, N]): ...

        class Mul(int, Generic[M, N]): ...

        class Div(int, Generic[M, N]): ...

        # What the result of a call will be, which must not decide what M and N are.
        class Result(int, Generic[N]): ...


__all__ = [
    "Add",
    "Array",
    "B",
    "D",
    "Div",
    "Ds",
    "F",
    "K",
    "M",
    "Mul",
    "N",
    "P",
    "Pullback",
    "Pullbacks",
    "Q",
    "R",
    "S",
    "Sub",
    "T",
]
