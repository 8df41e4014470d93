"""The order of the elements along one axis."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, Never, overload

import numpy as np

from tapetensor.arguments import as_flag, as_size, normalize_axis
from tapetensor.arguments.spellings import no_such_argument
from tapetensor.kernels import indexing
from tapetensor.kernels.numerics.choice import order_of
from tapetensor.rules.dims import Size, sized
from tapetensor.rules.indexing import check_count
from tapetensor.rules.refusals import refusal
from tapetensor.tape import NoneTape
from tapetensor.tape.ids import next_id
from tapetensor.tensor.apply import apply
from tapetensor.tensor.base import TensorBase, rewrap
from tapetensor.typing import B, D, Ds, K, M, N, P, S, T

if TYPE_CHECKING:
    from tapetensor.tensor.tensor import Tensor


class Order(TensorBase[S, T, D]):
    """The order of the elements: NaN is larger than all numbers, and equal ones keep theirs."""

    __slots__ = ()

    def argsort(
        self: Order[tuple[*Ds, N], Any, D],
        axis: int = -1,
        *,
        descending: bool = False,
        **elsewhere: Never,
    ) -> Tensor[tuple[*Ds, N], NoneTape, np.int64]:
        """Return the positions that sort the elements along one axis; equal ones keep their order.

        The sorted elements are `sort`, the k largest `topk`; another tensor goes into the same
        order by ``y.take_along_axis(x.argsort(axis), axis)``. NaN is larger than all numbers.

        Shape: that of `self`.
        Derivative: none. `take_along_axis` has that of the sorted elements.

        Args:
            axis: the axis to sort along.
            descending: whether the largest comes first.

        Raises:
            AxisError: if there is no such axis.
            ArgumentTypeError: if `descending` is no bool.

        >>> import tapetensor as tt
        >>> tt.from_numpy([3.0, 1.0, 2.0], shape=(3,)).argsort()
        Tensor([1, 2, 0], shape=(3,), dtype=int64, NoneTape)
        """
        if elsewhere:
            raise no_such_argument("argsort", elsewhere)
        position = normalize_axis("argsort", axis, self._array.shape)
        is_descending = as_flag("argsort", "descending", descending)
        order = order_of(self._array, position, is_descending).astype(np.int64)
        result: Tensor[Any, NoneTape, np.int64] = rewrap(self, order, next_id(), None)
        return result

    def sort(
        self: Order[tuple[*Ds, N], T, D],
        axis: int = -1,
        *,
        descending: bool = False,
        **elsewhere: Never,
    ) -> Tensor[tuple[*Ds, N], T, D]:
        """Return the elements in order along one axis; NaN is larger than all numbers.

        Shape: that of `self`.
        Derivative: each element gets the cotangent of the place that it goes to; equal elements
            keep their order, so the first of them gets that of the first place.

        Args:
            axis: the axis to sort along.
            descending: whether the largest comes first.

        Raises:
            AxisError: if there is no such axis.
            ArgumentTypeError: if `descending` is no bool.

        Source: array API, ``sort``.

        >>> import tapetensor as tt
        >>> tt.from_numpy([3.0, 1.0, 2.0], shape=(3,)).sort(descending=True)
        Tensor([3., 2., 1.], shape=(3,), dtype=float32, NoneTape)
        """
        if elsewhere:
            raise no_such_argument("sort", elsewhere)
        position = normalize_axis("sort", axis, self._array.shape)
        options = (position, as_flag("sort", "descending", descending))
        return apply(indexing.sort, (self,), options)

    @overload
    def topk(
        self: Order[tuple[*Ds, N], T, D], k: K, axis: Literal[-1] = -1, *, largest: bool = True
    ) -> tuple[Tensor[tuple[*Ds, K], T, D], Tensor[tuple[*Ds, K], NoneTape, np.int64]]: ...
    @overload
    def topk(
        self: Order[tuple[N, *Ds], T, D], k: K, axis: Literal[0], *, largest: bool = True
    ) -> tuple[Tensor[tuple[K, *Ds], T, D], Tensor[tuple[K, *Ds], NoneTape, np.int64]]: ...
    @overload
    def topk(
        self: Order[tuple[B, N, *Ds], T, D], k: K, axis: Literal[1], *, largest: bool = True
    ) -> tuple[Tensor[tuple[B, K, *Ds], T, D], Tensor[tuple[B, K, *Ds], NoneTape, np.int64]]: ...
    @overload
    def topk(
        self: Order[tuple[*Ds, N, M], T, D], k: K, axis: Literal[-2], *, largest: bool = True
    ) -> tuple[Tensor[tuple[*Ds, K, M], T, D], Tensor[tuple[*Ds, K, M], NoneTape, np.int64]]: ...
    @overload
    def topk(
        self: Order[tuple[B, M, P, *Ds], T, D],
        k: int,
        axis: Literal[2, 3, -3],
        *,
        largest: bool = True,
    ) -> tuple[Tensor[Any, T, D], Tensor[Any, NoneTape, np.int64]]: ...
    def topk(
        self, k: int, axis: int = -1, *, largest: bool = True, **elsewhere: Never
    ) -> tuple[Tensor[Any, Any, Any], Tensor[Any, NoneTape, np.int64]]:
        """Return the k largest elements along one axis, the largest first, and their positions.

        Of equal ones that which comes first; NaN is larger than all numbers.

        Shape: ``(*Ds, N) -> (*Ds, k), (*Ds, k)`` for ``axis=-1``.
        Derivative: the cotangent for the elements returned, 0 for the others.

        Args:
            k: how many, from 0 to the size of the axis.
            axis: the axis to choose along.
            largest: False for the k smallest, the smallest first.

        Raises:
            AxisError: if there is no such axis.
            ShapeError: if the axis has fewer elements than `k`.
            ArgumentTypeError: if `k` is no int or `largest` no bool.
            ArgumentValueError: if `k` is negative.

        >>> import tapetensor as tt
        >>> values, positions = tt.from_numpy([3.0, 1.0, 5.0], shape=(3,)).topk(2)
        >>> values
        Tensor([5., 3.], shape=(2,), dtype=float32, NoneTape)
        >>> positions
        Tensor([2, 0], shape=(2,), dtype=int64, NoneTape)
        """
        if elsewhere:
            raise no_such_argument("topk", elsewhere)
        shape = self._array.shape
        position = normalize_axis("topk", axis, shape)
        count = as_size("topk", "k", k)
        if count > shape[position]:
            asked = Size.of(count)
            raise refusal(lambda: check_count("topk", sized(shape), position, asked))
        order = order_of(self._array, position, as_flag("topk", "largest", largest))
        first = order[(slice(None),) * position + (slice(count),)].astype(np.int64)
        indices: Tensor[Any, NoneTape, np.int64] = rewrap(self, first, next_id(), None)
        values = apply(indexing.topk, (self, indices), (position,), keeps_dtype=False)
        return values, indices
