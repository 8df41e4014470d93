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
"""

from __future__ import annotations

from typing import Any

import numpy as np
from typing_extensions import TypeVar, TypeVarTuple

from tapetensor.gradients import Array
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

__all__ = [
    "Array", "B", "D", "Ds", "F", "K", "M", "N", "P", "Pullback", "Pullbacks", "Q", "R", "S", "T",
]  # fmt: skip
