"""Axes in another order, and frames around tensors."""

from __future__ import annotations

# The overloads for mistakes overlap those for open axes, which come after them.
# mypy: disable-error-code="overload-overlap"
from typing import TYPE_CHECKING, Any, Literal, Never, TypeAlias, overload

import numpy as np

from tapetensor.arguments import as_size, check_choice, check_kind, normalize_axis
from tapetensor.arguments.spellings import not_in_a_tuple
from tapetensor.arrays.array import Array
from tapetensor.errors import ArgumentTypeError, ArgumentValueError, AxisError, refusal
from tapetensor.kernels import indexing
from tapetensor.kernels import shape as kernels
from tapetensor.rules import rearranging
from tapetensor.rules.dims import sized
from tapetensor.rules.rearranging import check_repeated, check_widths
from tapetensor.tensor.apply import apply
from tapetensor.tensor.base import NumberBase, TensorBase, check_numeric
from tapetensor.tensor.operands import number_like
from tapetensor.typing import B, D, Ds, K, M, N, P, R, S, T

if TYPE_CHECKING:
    from tapetensor.tensor.tensor import Tensor


Zero: TypeAlias = Literal[0]
One: TypeAlias = Literal[1]
Two: TypeAlias = Literal[2]
Three: TypeAlias = Literal[3]
# As many literals as there are axes, of which one is missing: another is named twice, or there is
# no such one. The overload for them comes before the one for open axes, and has for its result what
# the call raises, so that nothing can be done with it.
_Not0: TypeAlias = Literal[1, 2, 3, 4]
_Not1: TypeAlias = Literal[0, 2, 3, 4]
_Not2: TypeAlias = Literal[0, 1, 3, 4]
_Not3: TypeAlias = Literal[0, 1, 2, 4]
_Not4: TypeAlias = Literal[0, 1, 2, 3]
_NotFour: TypeAlias = (
    tuple[_Not0, _Not0, _Not0, _Not0]
    | tuple[_Not1, _Not1, _Not1, _Not1]
    | tuple[_Not2, _Not2, _Not2, _Not2]
    | tuple[_Not3, _Not3, _Not3, _Not3]
)
_NotFive: TypeAlias = (
    tuple[_Not0, _Not0, _Not0, _Not0, _Not0]
    | tuple[_Not1, _Not1, _Not1, _Not1, _Not1]
    | tuple[_Not2, _Not2, _Not2, _Not2, _Not2]
    | tuple[_Not3, _Not3, _Not3, _Not3, _Not3]
    | tuple[_Not4, _Not4, _Not4, _Not4, _Not4]
)


class Permutation(TensorBase[S, T, D]):
    """Axes in another order."""

    __slots__ = ()

    @overload
    def permute_dims(
        self: Permutation[tuple[N], T, D], axes: tuple[Zero]
    ) -> Tensor[tuple[N], T, D]: ...
    @overload
    def permute_dims(
        self: Permutation[tuple[M, N], T, D], axes: tuple[One, Zero]
    ) -> Tensor[tuple[N, M], T, D]: ...
    @overload
    def permute_dims(
        self: Permutation[tuple[M, N], T, D], axes: tuple[Zero, One]
    ) -> Tensor[tuple[M, N], T, D]: ...
    @overload
    def permute_dims(
        self: Permutation[tuple[B, M, N], T, D], axes: tuple[Zero, Two, One]
    ) -> Tensor[tuple[B, N, M], T, D]: ...
    @overload
    def permute_dims(
        self: Permutation[tuple[B, M, N], T, D], axes: tuple[One, Zero, Two]
    ) -> Tensor[tuple[M, B, N], T, D]: ...
    @overload
    def permute_dims(
        self: Permutation[tuple[B, M, N], T, D], axes: tuple[One, Two, Zero]
    ) -> Tensor[tuple[M, N, B], T, D]: ...
    @overload
    def permute_dims(
        self: Permutation[tuple[B, M, N], T, D], axes: tuple[Two, Zero, One]
    ) -> Tensor[tuple[N, B, M], T, D]: ...
    @overload
    def permute_dims(
        self: Permutation[tuple[B, M, N], T, D], axes: tuple[Two, One, Zero]
    ) -> Tensor[tuple[N, M, B], T, D]: ...
    @overload
    def permute_dims(
        self: Permutation[tuple[B, M, N], T, D], axes: tuple[Zero, One, Two]
    ) -> Tensor[tuple[B, M, N], T, D]: ...
    @overload
    def permute_dims(
        self: Permutation[tuple[B, K, M, N], T, D], axes: tuple[Zero, One, Three, Two]
    ) -> Tensor[tuple[B, K, N, M], T, D]: ...
    @overload
    def permute_dims(
        self: Permutation[tuple[B, K, M, N], T, D], axes: tuple[Zero, Two, One, Three]
    ) -> Tensor[tuple[B, M, K, N], T, D]: ...
    @overload
    def permute_dims(
        self: Permutation[tuple[B, K, M, N], T, D], axes: tuple[Zero, Two, Three, One]
    ) -> Tensor[tuple[B, M, N, K], T, D]: ...
    @overload
    def permute_dims(
        self: Permutation[tuple[B, K, M, N], T, D], axes: tuple[Zero, Three, One, Two]
    ) -> Tensor[tuple[B, N, K, M], T, D]: ...
    @overload
    def permute_dims(
        self: Permutation[tuple[B, K, M, N], T, D], axes: tuple[Zero, Three, Two, One]
    ) -> Tensor[tuple[B, N, M, K], T, D]: ...
    @overload
    def permute_dims(
        self: Permutation[tuple[B, K, M, N], T, D], axes: tuple[One, Zero, Two, Three]
    ) -> Tensor[tuple[K, B, M, N], T, D]: ...
    @overload
    def permute_dims(
        self: Permutation[tuple[B, K, M, N], T, D], axes: tuple[One, Zero, Three, Two]
    ) -> Tensor[tuple[K, B, N, M], T, D]: ...
    @overload
    def permute_dims(
        self: Permutation[tuple[B, K, M, N], T, D], axes: tuple[One, Two, Zero, Three]
    ) -> Tensor[tuple[K, M, B, N], T, D]: ...
    @overload
    def permute_dims(
        self: Permutation[tuple[B, K, M, N], T, D], axes: tuple[One, Two, Three, Zero]
    ) -> Tensor[tuple[K, M, N, B], T, D]: ...
    @overload
    def permute_dims(
        self: Permutation[tuple[B, K, M, N], T, D], axes: tuple[One, Three, Zero, Two]
    ) -> Tensor[tuple[K, N, B, M], T, D]: ...
    @overload
    def permute_dims(
        self: Permutation[tuple[B, K, M, N], T, D], axes: tuple[One, Three, Two, Zero]
    ) -> Tensor[tuple[K, N, M, B], T, D]: ...
    @overload
    def permute_dims(
        self: Permutation[tuple[B, K, M, N], T, D], axes: tuple[Two, Zero, One, Three]
    ) -> Tensor[tuple[M, B, K, N], T, D]: ...
    @overload
    def permute_dims(
        self: Permutation[tuple[B, K, M, N], T, D], axes: tuple[Two, Zero, Three, One]
    ) -> Tensor[tuple[M, B, N, K], T, D]: ...
    @overload
    def permute_dims(
        self: Permutation[tuple[B, K, M, N], T, D], axes: tuple[Two, One, Zero, Three]
    ) -> Tensor[tuple[M, K, B, N], T, D]: ...
    @overload
    def permute_dims(
        self: Permutation[tuple[B, K, M, N], T, D], axes: tuple[Two, One, Three, Zero]
    ) -> Tensor[tuple[M, K, N, B], T, D]: ...
    @overload
    def permute_dims(
        self: Permutation[tuple[B, K, M, N], T, D], axes: tuple[Two, Three, Zero, One]
    ) -> Tensor[tuple[M, N, B, K], T, D]: ...
    @overload
    def permute_dims(
        self: Permutation[tuple[B, K, M, N], T, D], axes: tuple[Two, Three, One, Zero]
    ) -> Tensor[tuple[M, N, K, B], T, D]: ...
    @overload
    def permute_dims(
        self: Permutation[tuple[B, K, M, N], T, D], axes: tuple[Three, Zero, One, Two]
    ) -> Tensor[tuple[N, B, K, M], T, D]: ...
    @overload
    def permute_dims(
        self: Permutation[tuple[B, K, M, N], T, D], axes: tuple[Three, Zero, Two, One]
    ) -> Tensor[tuple[N, B, M, K], T, D]: ...
    @overload
    def permute_dims(
        self: Permutation[tuple[B, K, M, N], T, D], axes: tuple[Three, One, Zero, Two]
    ) -> Tensor[tuple[N, K, B, M], T, D]: ...
    @overload
    def permute_dims(
        self: Permutation[tuple[B, K, M, N], T, D], axes: tuple[Three, One, Two, Zero]
    ) -> Tensor[tuple[N, K, M, B], T, D]: ...
    @overload
    def permute_dims(
        self: Permutation[tuple[B, K, M, N], T, D], axes: tuple[Three, Two, Zero, One]
    ) -> Tensor[tuple[N, M, B, K], T, D]: ...
    @overload
    def permute_dims(
        self: Permutation[tuple[B, K, M, N], T, D], axes: tuple[Three, Two, One, Zero]
    ) -> Tensor[tuple[N, M, K, B], T, D]: ...
    @overload
    def permute_dims(
        self: Permutation[tuple[B, K, M, N], T, D], axes: tuple[Zero, One, Two, Three]
    ) -> Tensor[tuple[B, K, M, N], T, D]: ...
    @overload
    def permute_dims(self: Permutation[tuple[B, K, M, N], T, D], axes: _NotFour) -> AxisError: ...
    @overload
    def permute_dims(
        self: Permutation[tuple[B, K, M, N], T, D], axes: tuple[int, int, int, int]
    ) -> Tensor[tuple[Any, Any, Any, Any], T, D]: ...
    @overload
    def permute_dims(
        self: Permutation[tuple[B, P, K, M, N], T, D], axes: _NotFive
    ) -> AxisError: ...
    @overload
    def permute_dims(
        self: Permutation[tuple[B, P, K, M, N], T, D], axes: tuple[int, int, int, int, int]
    ) -> Tensor[tuple[Any, Any, Any, Any, Any], T, D]: ...
    @overload
    def permute_dims(
        self, axes: tuple[int, int, int, int, int, int, *tuple[int, ...]]
    ) -> Tensor[Any, T, D]: ...
    def permute_dims(self, axes: tuple[int, ...], *others: Never) -> Any:
        """Return the axes in another order.

        Shape: axis ``i`` of the result is axis ``axes[i]`` of `self`.
        Derivative: the cotangent with the axes put back.

        Args:
            axes: every axis once.

        Raises:
            AxisError: if an axis is missing, named twice or not there.

        >>> import tapetensor as tt
        >>> tt.ones((2, 3, 4)).permute_dims((2, 0, 1)).shape
        (4, 2, 3)
        """
        if others:
            raise not_in_a_tuple("permute_dims", (axes, *others))
        check_kind("permute_dims", "axes", axes, tuple, "a tuple of ints")
        shape = self._array.shape
        order = tuple([normalize_axis("permute_dims", axis, shape) for axis in axes])
        if sorted(order) != list(range(len(shape))):
            given = sized(shape)
            raise refusal(lambda: rearranging.permute_dims("permute_dims", axes, order, given))
        return apply(kernels.permute_dims, (self,), (order,))

    def transpose(
        self: Permutation[tuple[*Ds, M, N], T, D], *axes: Never
    ) -> Tensor[tuple[*Ds, N, M], T, D]:
        """Return the matrices transposed: the last two axes swapped.

        Shape: ``(*Ds, M, N) -> (*Ds, N, M)``.
        Derivative: the cotangent transposed.

        Raises:
            AxisError: if there are fewer than two axes.

        >>> import tapetensor as tt
        >>> tt.ones((2, 3)).transpose().shape
        (3, 2)
        """
        if axes:
            raise ArgumentTypeError(
                "transpose: takes no axes, and swaps the last two; write x.permute_dims((1, 0)) "
                "for another order"
            )
        rank = self._array.ndim
        if rank < 2:
            raise AxisError(f"transpose: needs two axes, the shape is {self._array.shape}")
        order = (*range(rank - 2), rank - 1, rank - 2)
        return apply(kernels.transpose, (self,), (order,))


# How many elements come before the first and after the last.
Pair: TypeAlias = tuple[int, int]
Mode: TypeAlias = Literal["constant", "reflect", "replicate", "circular"]


class Padding(TensorBase[S, T, D]):
    """Padding."""

    __slots__ = ()

    @overload
    def pad(
        self: NumberBase[tuple[Any], T, R],
        widths: tuple[Pair],
        mode: Mode = "constant",
        *,
        value: float = 0,
    ) -> Tensor[tuple[Any], T, R]: ...
    @overload
    def pad(
        self: NumberBase[tuple[Any, Any], T, R],
        widths: tuple[Pair, Pair],
        mode: Mode = "constant",
        *,
        value: float = 0,
    ) -> Tensor[tuple[Any, Any], T, R]: ...
    @overload
    def pad(
        self: NumberBase[tuple[Any, Any, Any], T, R],
        widths: tuple[Pair, Pair, Pair],
        mode: Mode = "constant",
        *,
        value: float = 0,
    ) -> Tensor[tuple[Any, Any, Any], T, R]: ...
    @overload
    def pad(
        self: NumberBase[tuple[Any, Any, Any, Any], T, R],
        widths: tuple[Pair, Pair, Pair, Pair],
        mode: Mode = "constant",
        *,
        value: float = 0,
    ) -> Tensor[tuple[Any, Any, Any, Any], T, R]: ...
    @overload
    def pad(
        self: NumberBase[tuple[Any, Any, Any, Any, Any, *tuple[Any, ...]], T, R],
        widths: tuple[Pair, ...],
        mode: Mode = "constant",
        *,
        value: float = 0,
    ) -> Tensor[Any, T, R]: ...
    def pad(
        self, widths: tuple[Pair, ...], mode: Mode = "constant", *, value: float = 0
    ) -> Tensor[Any, Any, Any]:
        """Return the elements within a frame.

        Shape: each axis is longer by its two widths.
        Derivative: the cotangent inside the frame, and in the modes that repeat elements that of
            each copy added to it.

        Args:
            widths: for each axis, how many elements come before and after, >= 0.
            mode: "constant" for a frame of `value`; "reflect" for the elements mirrored at the
                first and the last, which are not repeated; "replicate" for the first and the last;
                "circular" for those of the other end.
            value: the number of which a constant frame is made.

        Raises:
            ArgumentTypeError: if `widths` are no pairs of ints.
            ArgumentValueError: if a width is negative, `mode` is none of the four, or `value` is
                given without a constant frame.
            ShapeError: if there are not as many pairs as axes, or an axis is too short to reflect
                or to repeat.
            DTypeError: for a bool tensor, or if `value` does not fit the dtype.

        >>> import tapetensor as tt
        >>> x = tt.from_numpy([1.0, 2.0, 3.0], shape=(3,))
        >>> x.pad(((2, 1),), "reflect")
        Tensor([3., 2., 1., 2., 3., 2.], shape=(6,), dtype=float32, NoneTape)
        """
        check_numeric("pad", self)
        check_choice("pad", "mode", mode, ("constant", "reflect", "replicate", "circular"))
        number = number_like("pad", "value", self, value)
        shape = self._array.shape
        pairs = _as_pairs(widths, shape)
        if mode == "constant":
            return apply(kernels.pad, (self,), (pairs, number))
        if number != 0:
            raise ArgumentValueError(f'pad: value={value!r} is for mode="constant", got {mode!r}')
        sized = zip(pairs, shape, strict=True)
        places = tuple([_places(mode, *pair, size, shape) for pair, size in sized])
        return apply(indexing.pad_with_elements, (self,), (places,))


def _as_pairs(widths: object, shape: tuple[int, ...]) -> tuple[Pair, ...]:
    pairs = widths if isinstance(widths, tuple | list) else ()
    if not isinstance(widths, tuple | list) or not all(
        isinstance(pair, tuple | list) and len(pair) == 2 for pair in pairs
    ):
        raise ArgumentTypeError(
            f"pad: widths must be a pair of ints for each axis, as ((0, 0), (1, 2)), got {widths!r}"
        )
    check_widths("pad", len(pairs), shape)
    return tuple(
        [(as_size("pad", "a width", pair[0]), as_size("pad", "a width", pair[1])) for pair in pairs]
    )


def _places(mode: Mode, before: int, after: int, size: int, shape: tuple[int, ...]) -> Array:
    """Return where the elements of a padded axis come from."""
    check_repeated("pad", mode, (before, after), size, sized(shape))
    places = np.arange(-before, size + after)
    if mode == "replicate":
        return np.clip(places, 0, size - 1)
    if mode == "circular":
        return places % size
    mirrored: Array = size - 1 - np.absolute(size - 1 - np.absolute(places))
    return mirrored
