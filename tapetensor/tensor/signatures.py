"""Sets of overloads that several ops share, each written once.

``@same_signature(reduction)`` over a method tells type checkers that it has the overloads of
`reduction`. mypy reports an error under the method's own name; pyright, pyrefly and ty say
"reduction", and editors with pyright or ty show the docstring of the set at a call, which therefore
says what holds for all.

The sets are functions, not methods: while pyright reads a class it may take an overloaded method of
that same class for unknown.
"""

# An operator is asked of its right operand, too, with the same overloads (`__radd__`), so those say
# only what a smaller right operand gives.
#
# Where an operand fits in more than one way (a dim may be 1, or Any) the overloads overlap; they
# give the same shape there, and the first that fits is taken.
# mypy: disable-error-code="overload-overlap"

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypeVar, overload

import numpy as np

from tapetensor.tape import NoneTape, OwnedTape
from tapetensor.tensor.base import FloatingBase, NumberBase, TensorBase
from tapetensor.tensor.operands import Ints, TapeOfRhs
from tapetensor.typing import B, D, Ds, F, K, M, N, R, S, T

if TYPE_CHECKING:
    from tapetensor.tensor.tensor import Joins, Tensor

One: TypeAlias = Literal[1]
_SignatureT = TypeVar("_SignatureT", bound=Callable[..., Any])


def same_signature(overloads: _SignatureT) -> Callable[[Callable[..., Any]], _SignatureT]:
    """Return a decorator that gives a method the type of `overloads`, and leaves it as it is.

    The method says of which type its `self` is. Otherwise mypy, once it has the method from its
    cache, no longer compares `self` with the overloads, and infers nonsense.
    """

    def unchanged(method: Any) -> Any:
        return method

    return unchanged


@overload
def binary_operator(self: FloatingBase[S, T, F], other: float, /) -> Tensor[S, T, F]: ...
@overload
def binary_operator(self: NumberBase[S, T, R], other: int, /) -> Tensor[S, T, R]: ...
@overload
def binary_operator(
    self: NumberBase[S, T, R], other: Joins[S, T, R] | Joins[tuple[()], T, R], /
) -> Tensor[S, T, R]: ...
@overload
def binary_operator(
    self: NumberBase[S, NoneTape, R],
    other: Tensor[S, TapeOfRhs, R] | Tensor[tuple[()], TapeOfRhs, R],
    /,
) -> Tensor[S, TapeOfRhs, R]: ...
@overload
def binary_operator(
    self: NumberBase[S, T, R], other: Tensor[S, OwnedTape, R] | Tensor[tuple[()], OwnedTape, R], /
) -> Tensor[S, OwnedTape, R]: ...
# Not with `Joins`, from which ty would not know `T`: biases are added this way.
@overload
def binary_operator(
    self: NumberBase[tuple[*Ds, N], T, R],
    other: Tensor[tuple[N], NoneTape, R] | Tensor[tuple[*Ds, One], NoneTape, R],
    /,
) -> Tensor[tuple[*Ds, N], T, R]: ...
@overload
def binary_operator(
    self: NumberBase[tuple[*Ds, N], T, R],
    other: Tensor[tuple[N], T, R] | Tensor[tuple[*Ds, One], T, R],
    /,
) -> Tensor[tuple[*Ds, N], T, R]: ...
@overload
def binary_operator(
    self: NumberBase[tuple[*Ds, N], NoneTape, R],
    other: Tensor[tuple[N], TapeOfRhs, R] | Tensor[tuple[*Ds, One], TapeOfRhs, R],
    /,
) -> Tensor[tuple[*Ds, N], TapeOfRhs, R]: ...
@overload
def binary_operator(
    self: NumberBase[tuple[*Ds, M, N], T, R],
    other: Joins[tuple[M, N], T, R] | Joins[tuple[M, One], T, R] | Joins[tuple[One, N], T, R],
    /,
) -> Tensor[tuple[*Ds, M, N], T, R]: ...
@overload
def binary_operator(
    self: NumberBase[tuple[*Ds, M, N], NoneTape, R],
    other: Tensor[tuple[M, N], TapeOfRhs, R]
    | Tensor[tuple[M, One], TapeOfRhs, R]
    | Tensor[tuple[One, N], TapeOfRhs, R],
    /,
) -> Tensor[tuple[*Ds, M, N], TapeOfRhs, R]: ...
@overload
def binary_operator(
    self: NumberBase[tuple[B, *Ds], T, R], other: Joins[tuple[One, *Ds], T, R], /
) -> Tensor[tuple[B, *Ds], T, R]: ...
@overload
def binary_operator(
    self: NumberBase[tuple[B, *Ds], NoneTape, R], other: Tensor[tuple[One, *Ds], TapeOfRhs, R], /
) -> Tensor[tuple[B, *Ds], TapeOfRhs, R]: ...
@overload
def binary_operator(
    self: NumberBase[tuple[M, One], T, R],
    other: Joins[tuple[One, N], T, R] | Joins[tuple[N], T, R],
    /,
) -> Tensor[tuple[M, N], T, R]: ...
@overload
def binary_operator(
    self: NumberBase[tuple[M, One], NoneTape, R],
    other: Tensor[tuple[One, N], TapeOfRhs, R] | Tensor[tuple[N], TapeOfRhs, R],
    /,
) -> Tensor[tuple[M, N], TapeOfRhs, R]: ...
def binary_operator(self: Any, other: Any, /) -> Any:
    """Combine numbers element by element.

    Shape: numpy's broadcasting.
    """


@overload
def division(self: FloatingBase[S, T, F], other: float, /) -> Tensor[S, T, F]: ...
@overload
def division(
    self: FloatingBase[S, T, F], other: Joins[S, T, F] | Joins[tuple[()], T, F], /
) -> Tensor[S, T, F]: ...
@overload
def division(
    self: FloatingBase[S, NoneTape, F],
    other: Tensor[S, TapeOfRhs, F] | Tensor[tuple[()], TapeOfRhs, F],
    /,
) -> Tensor[S, TapeOfRhs, F]: ...
@overload
def division(
    self: FloatingBase[S, T, F], other: Tensor[S, OwnedTape, F] | Tensor[tuple[()], OwnedTape, F], /
) -> Tensor[S, OwnedTape, F]: ...
@overload
def division(
    self: FloatingBase[tuple[*Ds, N], T, F],
    other: Tensor[tuple[N], NoneTape, F] | Tensor[tuple[*Ds, One], NoneTape, F],
    /,
) -> Tensor[tuple[*Ds, N], T, F]: ...
@overload
def division(
    self: FloatingBase[tuple[*Ds, N], T, F],
    other: Tensor[tuple[N], T, F] | Tensor[tuple[*Ds, One], T, F],
    /,
) -> Tensor[tuple[*Ds, N], T, F]: ...
@overload
def division(
    self: FloatingBase[tuple[*Ds, N], NoneTape, F],
    other: Tensor[tuple[N], TapeOfRhs, F] | Tensor[tuple[*Ds, One], TapeOfRhs, F],
    /,
) -> Tensor[tuple[*Ds, N], TapeOfRhs, F]: ...
@overload
def division(
    self: FloatingBase[tuple[*Ds, M, N], T, F],
    other: Joins[tuple[M, N], T, F] | Joins[tuple[M, One], T, F] | Joins[tuple[One, N], T, F],
    /,
) -> Tensor[tuple[*Ds, M, N], T, F]: ...
@overload
def division(
    self: FloatingBase[tuple[*Ds, M, N], NoneTape, F],
    other: Tensor[tuple[M, N], TapeOfRhs, F]
    | Tensor[tuple[M, One], TapeOfRhs, F]
    | Tensor[tuple[One, N], TapeOfRhs, F],
    /,
) -> Tensor[tuple[*Ds, M, N], TapeOfRhs, F]: ...
@overload
def division(
    self: FloatingBase[tuple[B, *Ds], T, F], other: Joins[tuple[One, *Ds], T, F], /
) -> Tensor[tuple[B, *Ds], T, F]: ...
@overload
def division(
    self: FloatingBase[tuple[B, *Ds], NoneTape, F], other: Tensor[tuple[One, *Ds], TapeOfRhs, F], /
) -> Tensor[tuple[B, *Ds], TapeOfRhs, F]: ...
@overload
def division(
    self: FloatingBase[tuple[M, One], T, F],
    other: Joins[tuple[One, N], T, F] | Joins[tuple[N], T, F],
    /,
) -> Tensor[tuple[M, N], T, F]: ...
@overload
def division(
    self: FloatingBase[tuple[M, One], NoneTape, F],
    other: Tensor[tuple[One, N], TapeOfRhs, F] | Tensor[tuple[N], TapeOfRhs, F],
    /,
) -> Tensor[tuple[M, N], TapeOfRhs, F]: ...
def division(self: Any, other: Any, /) -> Any:
    """Divide element by element; floating dtypes only.

    Shape: numpy's broadcasting.
    """


@overload
def extreme(lhs: Tensor[S, T, F], rhs: float, /) -> Tensor[S, T, F]: ...
@overload
def extreme(lhs: Tensor[S, T, R], rhs: int, /) -> Tensor[S, T, R]: ...
@overload
def extreme(
    lhs: Tensor[S, T, R], rhs: Joins[S, T, R] | Joins[tuple[()], T, R], /
) -> Tensor[S, T, R]: ...
@overload
def extreme(
    lhs: Tensor[S, NoneTape, R], rhs: Tensor[S, T, R] | Tensor[tuple[()], T, R], /
) -> Tensor[S, T, R]: ...
@overload
def extreme(
    lhs: Tensor[S, T, R], rhs: Tensor[S, OwnedTape, R] | Tensor[tuple[()], OwnedTape, R], /
) -> Tensor[S, OwnedTape, R]: ...
@overload
def extreme(
    lhs: Tensor[tuple[*Ds, N], T, R], rhs: Joins[tuple[N], T, R] | Joins[tuple[*Ds, One], T, R], /
) -> Tensor[tuple[*Ds, N], T, R]: ...
@overload
def extreme(
    lhs: Tensor[tuple[*Ds, N], NoneTape, R],
    rhs: Tensor[tuple[N], T, R] | Tensor[tuple[*Ds, One], T, R],
    /,
) -> Tensor[tuple[*Ds, N], T, R]: ...
def extreme(lhs: Any, rhs: Any, /) -> Any:
    """Choose one of two numbers, element by element.

    Shape: numpy's broadcasting.
    """


@overload
def reduction(
    self: NumberBase[S, T, R], axis: None = None, keepdims: Literal[False] = False
) -> Tensor[tuple[()], T, R]: ...
@overload
def reduction(
    self: NumberBase[tuple[*Ds, N], T, R], axis: Literal[-1], keepdims: Literal[False] = False
) -> Tensor[tuple[*Ds], T, R]: ...
@overload
def reduction(
    self: NumberBase[tuple[*Ds, N], T, R], axis: Literal[-1], keepdims: Literal[True]
) -> Tensor[tuple[*Ds, One], T, R]: ...
@overload
def reduction(
    self: NumberBase[tuple[N, *Ds], T, R], axis: Literal[0], keepdims: Literal[False] = False
) -> Tensor[tuple[*Ds], T, R]: ...
@overload
def reduction(
    self: NumberBase[tuple[N, *Ds], T, R], axis: Literal[0], keepdims: Literal[True]
) -> Tensor[tuple[One, *Ds], T, R]: ...
@overload
def reduction(
    self: NumberBase[tuple[B, N, *Ds], T, R], axis: Literal[1], keepdims: Literal[False] = False
) -> Tensor[tuple[B, *Ds], T, R]: ...
@overload
def reduction(
    self: NumberBase[tuple[B, N, *Ds], T, R], axis: Literal[1], keepdims: Literal[True]
) -> Tensor[tuple[B, One, *Ds], T, R]: ...
@overload
def reduction(
    self: NumberBase[tuple[*Ds, M, N], T, R], axis: Literal[-2], keepdims: Literal[False] = False
) -> Tensor[tuple[*Ds, N], T, R]: ...
@overload
def reduction(
    self: NumberBase[tuple[*Ds, M, N], T, R], axis: Literal[-2], keepdims: Literal[True]
) -> Tensor[tuple[*Ds, One, N], T, R]: ...
@overload
def reduction(
    self: NumberBase[tuple[B, M, N, *Ds], T, R], axis: Literal[2], keepdims: Literal[False] = False
) -> Tensor[tuple[B, M, *Ds], T, R]: ...
@overload
def reduction(
    self: NumberBase[tuple[B, M, N, *Ds], T, R], axis: Literal[2], keepdims: Literal[True]
) -> Tensor[tuple[B, M, One, *Ds], T, R]: ...
@overload
def reduction(
    self: NumberBase[tuple[B, M, N, K, *Ds], T, R],
    axis: Literal[3],
    keepdims: Literal[False] = False,
) -> Tensor[tuple[B, M, N, *Ds], T, R]: ...
@overload
def reduction(
    self: NumberBase[tuple[B, M, N, K, *Ds], T, R], axis: Literal[3], keepdims: Literal[True]
) -> Tensor[tuple[B, M, N, One, *Ds], T, R]: ...
@overload
def reduction(
    self: NumberBase[tuple[*Ds, M, N, K], T, R], axis: Literal[-3], keepdims: Literal[False] = False
) -> Tensor[tuple[*Ds, N, K], T, R]: ...
@overload
def reduction(
    self: NumberBase[tuple[*Ds, M, N, K], T, R], axis: Literal[-3], keepdims: Literal[True]
) -> Tensor[tuple[*Ds, One, N, K], T, R]: ...
@overload
def reduction(
    self: NumberBase[S, T, R], axis: tuple[int, ...] | None = None, keepdims: bool = False
) -> Tensor[Any, T, R]: ...
def reduction(self: Any, axis: Any = None, keepdims: bool = False) -> Any:
    """Reduce numbers to one, over all axes or over some.

    Args:
        axis: None for all axes, an int, a tuple of ints; negative counts from the back.
        keepdims: whether reduced axes stay with size 1.
    """


@overload
def position(
    self: TensorBase[S, Any, D], axis: None = None
) -> Tensor[tuple[()], NoneTape, np.int64]: ...
@overload
def position(
    self: TensorBase[tuple[*Ds, N], Any, D], axis: Literal[-1]
) -> Tensor[tuple[*Ds], NoneTape, np.int64]: ...
@overload
def position(
    self: TensorBase[tuple[N, *Ds], Any, D], axis: Literal[0]
) -> Tensor[tuple[*Ds], NoneTape, np.int64]: ...
@overload
def position(
    self: TensorBase[tuple[B, N, *Ds], Any, D], axis: Literal[1]
) -> Tensor[tuple[B, *Ds], NoneTape, np.int64]: ...
@overload
def position(
    self: TensorBase[tuple[B, M, N, *Ds], Any, D], axis: Literal[2]
) -> Tensor[tuple[B, M, *Ds], NoneTape, np.int64]: ...
@overload
def position(
    self: TensorBase[tuple[*Ds, M, N], Any, D], axis: Literal[-2]
) -> Tensor[tuple[*Ds, N], NoneTape, np.int64]: ...
@overload
def position(
    self: TensorBase[tuple[B, K, M, N, *Ds], Any, D], axis: Literal[3]
) -> Tensor[tuple[B, K, M, *Ds], NoneTape, np.int64]: ...
@overload
def position(
    self: TensorBase[tuple[*Ds, K, M, N], Any, D], axis: Literal[-3]
) -> Tensor[tuple[*Ds, M, N], NoneTape, np.int64]: ...
def position(self: Any, axis: Any = None) -> Any:
    """Return the position of one element, of all or along one axis.

    Args:
        axis: None for all elements, or an int; negative counts from the back.
    """


@overload
def mask_reduction(
    self: TensorBase[S, NoneTape, np.bool_], axis: None = None, keepdims: Literal[False] = False
) -> Tensor[tuple[()], NoneTape, np.bool_]: ...
@overload
def mask_reduction(
    self: TensorBase[tuple[*Ds, N], NoneTape, np.bool_],
    axis: Literal[-1],
    keepdims: Literal[False] = False,
) -> Tensor[tuple[*Ds], NoneTape, np.bool_]: ...
@overload
def mask_reduction(
    self: TensorBase[tuple[N, *Ds], NoneTape, np.bool_],
    axis: Literal[0],
    keepdims: Literal[False] = False,
) -> Tensor[tuple[*Ds], NoneTape, np.bool_]: ...
@overload
def mask_reduction(
    self: TensorBase[S, NoneTape, np.bool_],
    axis: int | tuple[int, ...] | None = None,
    keepdims: bool = False,
) -> Tensor[Any, NoneTape, np.bool_]: ...
def mask_reduction(self: Any, axis: Any = None, keepdims: bool = False) -> Any:
    """Reduce a mask to one answer, over all axes or over some.

    Args:
        axis: None for all axes, an int, a tuple of ints; negative counts from the back.
        keepdims: whether reduced axes stay with size 1.
    """


@overload
def average(
    self: FloatingBase[S, T, F], axis: None = None, keepdims: Literal[False] = False
) -> Tensor[tuple[()], T, F]: ...
@overload
def average(
    self: FloatingBase[tuple[*Ds, N], T, F], axis: Literal[-1], keepdims: Literal[False] = False
) -> Tensor[tuple[*Ds], T, F]: ...
@overload
def average(
    self: FloatingBase[tuple[*Ds, N], T, F], axis: Literal[-1], keepdims: Literal[True]
) -> Tensor[tuple[*Ds, One], T, F]: ...
@overload
def average(
    self: FloatingBase[tuple[N, *Ds], T, F], axis: Literal[0], keepdims: Literal[False] = False
) -> Tensor[tuple[*Ds], T, F]: ...
@overload
def average(
    self: FloatingBase[tuple[N, *Ds], T, F], axis: Literal[0], keepdims: Literal[True]
) -> Tensor[tuple[One, *Ds], T, F]: ...
@overload
def average(
    self: FloatingBase[tuple[B, N, *Ds], T, F], axis: Literal[1], keepdims: Literal[False] = False
) -> Tensor[tuple[B, *Ds], T, F]: ...
@overload
def average(
    self: FloatingBase[tuple[B, N, *Ds], T, F], axis: Literal[1], keepdims: Literal[True]
) -> Tensor[tuple[B, One, *Ds], T, F]: ...
@overload
def average(
    self: FloatingBase[tuple[*Ds, M, N], T, F], axis: Literal[-2], keepdims: Literal[False] = False
) -> Tensor[tuple[*Ds, N], T, F]: ...
@overload
def average(
    self: FloatingBase[tuple[*Ds, M, N], T, F], axis: Literal[-2], keepdims: Literal[True]
) -> Tensor[tuple[*Ds, One, N], T, F]: ...
@overload
def average(
    self: FloatingBase[tuple[B, M, N, *Ds], T, F],
    axis: Literal[2],
    keepdims: Literal[False] = False,
) -> Tensor[tuple[B, M, *Ds], T, F]: ...
@overload
def average(
    self: FloatingBase[tuple[B, M, N, *Ds], T, F], axis: Literal[2], keepdims: Literal[True]
) -> Tensor[tuple[B, M, One, *Ds], T, F]: ...
@overload
def average(
    self: FloatingBase[tuple[B, M, N, K, *Ds], T, F],
    axis: Literal[3],
    keepdims: Literal[False] = False,
) -> Tensor[tuple[B, M, N, *Ds], T, F]: ...
@overload
def average(
    self: FloatingBase[tuple[B, M, N, K, *Ds], T, F], axis: Literal[3], keepdims: Literal[True]
) -> Tensor[tuple[B, M, N, One, *Ds], T, F]: ...
@overload
def average(
    self: FloatingBase[tuple[*Ds, M, N, K], T, F],
    axis: Literal[-3],
    keepdims: Literal[False] = False,
) -> Tensor[tuple[*Ds, N, K], T, F]: ...
@overload
def average(
    self: FloatingBase[tuple[*Ds, M, N, K], T, F], axis: Literal[-3], keepdims: Literal[True]
) -> Tensor[tuple[*Ds, One, N, K], T, F]: ...
@overload
def average(
    self: FloatingBase[S, T, F], axis: tuple[int, ...] | None = None, keepdims: bool = False
) -> Tensor[Any, T, F]: ...
def average(self: Any, axis: Any = None, keepdims: bool = False) -> Any:
    """Reduce numbers of a floating dtype to one, over all axes or over some.

    Args:
        axis: None for all axes, an int, a tuple of ints; negative counts from the back.
        keepdims: whether reduced axes stay with size 1.
    """


@overload
def pooling(
    x: Tensor[tuple[*Ds, K, M, N], T, F],
    kernel_size: Literal[3],
    *,
    stride: Literal[1],
    padding: Literal[1],
    dilation: Literal[1] = 1,
) -> Tensor[tuple[*Ds, K, M, N], T, F]: ...
@overload
def pooling(
    x: Tensor[tuple[*Ds, K, M, N], T, F],
    kernel_size: Ints,
    *,
    stride: Ints | None = None,
    padding: Ints = 0,
    dilation: Ints = 1,
) -> Tensor[tuple[*Ds, K, Any, Any], T, F]: ...
def pooling(x: Any, kernel_size: Any, **options: Any) -> Any:
    """Reduce every window of images to one pixel."""
