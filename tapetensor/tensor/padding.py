"""Frames around tensors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, TypeAlias, overload

import numpy as np

from tapetensor.arguments import as_size, check_choice
from tapetensor.arrays.array import Array
from tapetensor.errors import ArgumentTypeError, ArgumentValueError
from tapetensor.kernels import indexing
from tapetensor.kernels import shape as kernels
from tapetensor.rules.dims import sized
from tapetensor.rules.rearranging import check_repeated, check_widths
from tapetensor.tensor.apply import apply
from tapetensor.tensor.base import NumberBase, TensorBase, check_numeric
from tapetensor.tensor.operands import number_like
from tapetensor.typing import D, R, S, T

if TYPE_CHECKING:
    from tapetensor.tensor.tensor import Tensor

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
