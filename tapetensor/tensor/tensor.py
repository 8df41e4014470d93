"""`Tensor` and its aliases by rank."""

from __future__ import annotations

from typing import Any, Generic

import numpy as np
from typing_extensions import TypeAliasType, TypeVar, override

from tapetensor.arguments.spellings import OF_TENSORS, CalledOtherwise, without_spellings
from tapetensor.tape import NoneTape, Tape
from tapetensor.tensor.arithmetic import Arithmetic
from tapetensor.tensor.elementwise import Elementwise
from tapetensor.tensor.habits import Habits
from tapetensor.tensor.indexing import Indexing
from tapetensor.tensor.linear_algebra import LinearAlgebra
from tapetensor.tensor.ownership import Ownership
from tapetensor.tensor.permutation import Padding, Permutation
from tapetensor.tensor.reductions import Reductions, Softmax
from tapetensor.tensor.scan import Order, Scans
from tapetensor.tensor.selection import Comparison
from tapetensor.tensor.shape import Shape
from tapetensor.tensor.statistics import Statistics
from tapetensor.tensor.transcendental import Transcendental
from tapetensor.typing import B, K, M, N, P, Q

# The letters of tapetensor.typing with the defaults that let `Tensor2D[B, L[10]]` mean a plain
# float32 tensor. A default forbids plain type variables to its right, so users get those without.
S = TypeVar("S", bound=tuple[Any, ...])
T = TypeVar("T", bound=Tape, default=NoneTape)
D = TypeVar("D", bound=np.generic, default=np.float32)


class Tensor(
    Ownership[S, T, D],
    Arithmetic[S, T, D],
    Comparison[S, T, D],
    Elementwise[S, T, D],
    Transcendental[S, T, D],
    Reductions[S, T, D],
    Statistics[S, T, D],
    Softmax[S, T, D],
    Scans[S, T, D],
    Order[S, T, D],
    Shape[S, T, D],
    Permutation[S, T, D],
    Padding[S, T, D],
    LinearAlgebra[S, T, D],
    Indexing[S, T, D],
    Habits[S, T, D],
    Generic[S, T, D],
):
    """An array whose type says its shape, its dtype and whether it owns a gradient tape.

    Type parameters:
        S: the shape, a tuple of dims: ``tuple[B, Literal[784]]``.
        T: the tape state, `NoneTape` (the default) or `OwnedTape`.
        D: the dtype, a numpy scalar type, ``np.float32`` by default.

    A tensor without a tape is a plain value. `trace` gives it a tape: ops on it are recorded, and
    their results have a tape, too. Both may be used any number of times, for an op changes none of
    its operands. `backward` on a scalar returns the gradients and uses up what was recorded.

    Tensors are made by the creation functions (`tapetensor.from_numpy`, `tapetensor.zeros`, ...)
    and by ops; their elements cannot be written.

    >>> import tapetensor as tt
    >>> x = tt.from_numpy([[1.0, 2.0]], shape=(1, 2))
    >>> loss = (x.trace() * 3.0).sum()
    >>> loss.backward()[x]
    Tensor([[3., 3.]], shape=(1, 2), dtype=float32, NoneTape)
    """

    __slots__ = ()

    @override
    def __dir__(self) -> list[str]:
        """Return the names of what a tensor has, without those that only say what it is called."""
        return without_spellings(self, super().__dir__())


for _name, _cure in OF_TENSORS.items():
    setattr(Tensor, _name, CalledOtherwise(_name, _cure))


Tensor0D = TypeAliasType("Tensor0D", Tensor[tuple[()], T, D], type_params=(T, D))
Tensor1D = TypeAliasType("Tensor1D", Tensor[tuple[N], T, D], type_params=(N, T, D))
Tensor2D = TypeAliasType("Tensor2D", Tensor[tuple[M, N], T, D], type_params=(M, N, T, D))
Tensor3D = TypeAliasType("Tensor3D", Tensor[tuple[B, M, N], T, D], type_params=(B, M, N, T, D))
Tensor4D = TypeAliasType(
    "Tensor4D", Tensor[tuple[B, K, M, N], T, D], type_params=(B, K, M, N, T, D)
)
Tensor5D = TypeAliasType(
    "Tensor5D", Tensor[tuple[B, P, K, M, N], T, D], type_params=(B, P, K, M, N, T, D)
)
Tensor6D = TypeAliasType(
    "Tensor6D", Tensor[tuple[B, Q, P, K, M, N], T, D], type_params=(B, Q, P, K, M, N, T, D)
)

# The right operand of an op whose result has the tape state of the left one: a plain value, or a
# tensor in the same state.
Joins = TypeAliasType("Joins", Tensor[S, NoneTape, D] | Tensor[S, T, D], type_params=(S, T, D))
