"""Reading elements: slices, positions, masks."""

# Where an operand fits in more than one way (a dim may be 1, or Any) the overloads overlap; they
# give the same shape there, and the first that fits is taken.
# mypy: disable-error-code="overload-overlap"

from __future__ import annotations

from collections.abc import Iterator
from types import EllipsisType
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, overload

import numpy as np
from typing_extensions import TypeVar

from tapetensor.arguments import as_flag, normalize_axis
from tapetensor.arrays.array import Array, check_unmasked
from tapetensor.arrays.libraries import to_numpy
from tapetensor.arrays.stand_ins import run_check
from tapetensor.errors import (
    ArgumentTypeError,
    ArgumentValueError,
    AxisError,
    DTypeError,
    ShapeError,
    TapeTensorError,
    refusal,
)
from tapetensor.kernels import indexing
from tapetensor.rules import indexing as rules
from tapetensor.rules.dims import Size, sized
from tapetensor.tape import NoneTape
from tapetensor.tensor.apply import apply
from tapetensor.tensor.base import (
    NumberBase,
    TensorBase,
    check_integers,
    check_numeric,
    check_same_dtype,
    check_tensor,
)
from tapetensor.tensor.operands import TapeOfRhs
from tapetensor.typing import B, D, Ds, K, M, N, P, R, S, T

I = TypeVar("I", bound=np.integer[Any])  # the one letter for an index dtype
_Places = TypeVar("_Places", bound=tuple[Any, ...])
Axis: TypeAlias = Literal[1, -1, 2, -2, 3, -3]

if TYPE_CHECKING:
    from tapetensor.tensor.tensor import Joins, Tensor

    _IndexTensor: TypeAlias = TensorBase[Any, NoneTape, Any, np.integer[Any] | np.bool_]
    _IndexArray: TypeAlias = np.ndarray[Any, np.dtype[np.integer[Any] | np.bool_]]
    _IndexList: TypeAlias = list[int] | list[bool]
    _Index: TypeAlias = int | slice | EllipsisType | _IndexTensor | _IndexArray | _IndexList | None


class Indexing(TensorBase[S, T, D]):
    """Reading elements. The results never share memory that could be written."""

    __slots__ = ()

    @overload
    def __getitem__(
        self: Indexing[tuple[N, *Ds], T, D], index: int, /
    ) -> Tensor[tuple[*Ds], T, D]: ...
    @overload
    def __getitem__(
        self: Indexing[tuple[N, *Ds], T, D], index: slice, /
    ) -> Tensor[tuple[Any, *Ds], T, D]: ...
    @overload
    def __getitem__(
        self: Indexing[tuple[N, *Ds], T, D], index: Tensor[tuple[B], NoneTape, I], /
    ) -> Tensor[tuple[B, *Ds], T, D]: ...
    @overload
    def __getitem__(
        self: Indexing[tuple[N, *Ds], T, D], index: _IndexList, /
    ) -> Tensor[tuple[Any, *Ds], T, D]: ...
    @overload
    def __getitem__(self, index: Tensor[S, NoneTape, np.bool_], /) -> Tensor[tuple[Any], T, D]: ...
    @overload
    def __getitem__(
        self: Indexing[tuple[N, M, *Ds], T, D], index: tuple[int, int], /
    ) -> Tensor[tuple[*Ds], T, D]: ...
    @overload
    def __getitem__(
        self: Indexing[tuple[N, M, *Ds], T, D], index: tuple[int, slice] | tuple[slice, int], /
    ) -> Tensor[tuple[Any, *Ds], T, D]: ...
    @overload
    def __getitem__(
        self: Indexing[tuple[N, M, *Ds], T, D], index: tuple[slice, slice], /
    ) -> Tensor[tuple[Any, Any, *Ds], T, D]: ...
    @overload
    def __getitem__(
        self: Indexing[tuple[N, M, *Ds], T, D],
        index: tuple[Tensor[tuple[B], NoneTape, I], Tensor[tuple[B], NoneTape, I]],
        /,
    ) -> Tensor[tuple[B, *Ds], T, D]: ...
    @overload
    def __getitem__(self, index: _Index | tuple[_Index, ...], /) -> Tensor[Any, T, D]: ...
    def __getitem__(self, index: Any, /) -> Tensor[Any, Any, Any]:
        """Return the elements at an index, as numpy does.

        Shape: ``(N, *Ds)[int] -> (*Ds)``; a slice, an integer tensor or array, a mask, None,
            ``...`` and tuples of them follow numpy's rules.
        Derivative: 1 for the elements read, 0 for the others; an element that is read several
            times receives every cotangent, summed.

        Raises:
            AxisError: if an index lies outside the shape, or there are more indices than axes.
            ArgumentTypeError: if an index is of a kind that numpy's indexing does not know.

        >>> import tapetensor as tt
        >>> x = tt.arange(4).reshape((2, 2))
        >>> x[1]
        Tensor([2, 3], shape=(2,), dtype=int64, NoneTape)
        >>> x[:, 0]
        Tensor([0, 2], shape=(2,), dtype=int64, NoneTape)
        """
        plain = (
            tuple([_plain_index(one) for one in index])
            if isinstance(index, tuple)
            else _plain_index(index)
        )
        try:
            return apply(indexing.getitem, (self,), (plain,))
        except (ShapeError, DTypeError) as error:
            indices = plain if isinstance(plain, tuple) else (plain,)
            raise _complaint(indices, self._array.shape, error) from None

    def __iter__(self: Indexing[tuple[N, *Ds], T, D]) -> Iterator[Tensor[tuple[*Ds], T, D]]:
        """Iterate over the slices along the first axis.

        Raises:
            ArgumentTypeError: for a 0-d tensor.
        """
        return iter([self[index] for index in range(len(self))])

    @overload
    def take(
        self: Indexing[tuple[N, *Ds], T, D],
        indices: Tensor[tuple[()], NoneTape, I],
        axis: Literal[0] = 0,
    ) -> Tensor[tuple[*Ds], T, D]: ...
    @overload
    def take(
        self: Indexing[tuple[N, *Ds], T, D],
        indices: Tensor[tuple[B], NoneTape, I],
        axis: Literal[0] = 0,
    ) -> Tensor[tuple[B, *Ds], T, D]: ...
    @overload
    def take(
        self: Indexing[tuple[N, *Ds], T, D],
        indices: Tensor[tuple[B, M], NoneTape, I],
        axis: Literal[0] = 0,
    ) -> Tensor[tuple[B, M, *Ds], T, D]: ...
    @overload
    def take(
        self: Indexing[tuple[N, K], T, D],
        indices: Tensor[tuple[*Ds], NoneTape, I],
        axis: Literal[0] = 0,
    ) -> Tensor[tuple[*Ds, K], T, D]: ...
    @overload
    def take(
        self: Indexing[tuple[*Ds, N], T, D],
        indices: Tensor[tuple[B], NoneTape, I],
        axis: Literal[-1],
    ) -> Tensor[tuple[*Ds, B], T, D]: ...
    @overload
    def take(
        self: Indexing[tuple[K, N, *Ds], T, D],
        indices: Tensor[tuple[B], NoneTape, I],
        axis: Literal[1],
    ) -> Tensor[tuple[K, B, *Ds], T, D]: ...
    @overload
    def take(
        self: Indexing[tuple[B, K, N, *Ds], T, D],
        indices: Tensor[tuple[M], NoneTape, I],
        axis: Literal[2],
    ) -> Tensor[tuple[B, K, M, *Ds], T, D]: ...
    @overload
    def take(
        self: Indexing[tuple[*Ds, N, K], T, D],
        indices: Tensor[tuple[M], NoneTape, I],
        axis: Literal[-2],
    ) -> Tensor[tuple[*Ds, M, K], T, D]: ...
    @overload
    def take(
        self: Indexing[tuple[K, N, *Ds], T, D], indices: Tensor[Any, NoneTape, I], axis: Axis
    ) -> Tensor[Any, T, D]: ...
    @overload
    def take(
        self: Indexing[tuple[N, *Ds], T, D], indices: Tensor[Any, NoneTape, I], axis: Literal[0] = 0
    ) -> Tensor[Any, T, D]: ...
    def take(self, indices: Tensor[Any, Any, Any], axis: int = 0) -> Tensor[Any, Any, Any]:
        """Return the slices along one axis at integer positions.

        Shape: ``(N, *Ds)`` with indices ``(B, M)`` along axis 0 gives ``(B, M, *Ds)``.
        Derivative: each cotangent is added to the slice that it was read from.

        Args:
            indices: an integer tensor; negative counts from the back.
            axis: the axis to read along.

        Raises:
            AxisError: if there is no such axis, or an index lies outside it.
            DTypeError: if `indices` are not integers.

        >>> import tapetensor as tt
        >>> table = tt.from_numpy([[1.0, 2.0], [3.0, 4.0]], shape=(2, 2))
        >>> table.take(tt.from_numpy([1, 1], shape=(2,), dtype=np.int64))
        Tensor([[3., 4.],
                [3., 4.]], shape=(2, 2), dtype=float32, NoneTape)
        """
        position = _positions("take", self._array.shape, indices, axis)
        return apply(indexing.take, (self, indices), (position,), keeps_dtype=False)

    @overload
    def take_along_axis(
        self: Indexing[tuple[*Ds, N], T, D],
        indices: Tensor[tuple[*Ds, M], NoneTape, I],
        axis: Literal[-1] = -1,
    ) -> Tensor[tuple[*Ds, M], T, D]: ...
    @overload
    def take_along_axis(
        self: Indexing[tuple[N, *Ds], T, D],
        indices: Tensor[tuple[M, *Ds], NoneTape, I],
        axis: Literal[0],
    ) -> Tensor[tuple[M, *Ds], T, D]: ...
    @overload
    def take_along_axis(
        self: Indexing[tuple[B, N, *Ds], T, D],
        indices: Tensor[tuple[B, M, *Ds], NoneTape, I],
        axis: Literal[1],
    ) -> Tensor[tuple[B, M, *Ds], T, D]: ...
    @overload
    def take_along_axis(
        self: Indexing[tuple[B, N, K], T, D],
        indices: Tensor[tuple[B, M, Literal[1]], NoneTape, I],
        axis: Literal[1],
    ) -> Tensor[tuple[B, M, K], T, D]: ...
    @overload
    def take_along_axis(
        self: Indexing[tuple[*Ds, N, K], T, D],
        indices: Tensor[tuple[*Ds, M, K], NoneTape, I]
        | Tensor[tuple[*Ds, M, Literal[1]], NoneTape, I],
        axis: Literal[-2],
    ) -> Tensor[tuple[*Ds, M, K], T, D]: ...
    @overload
    def take_along_axis(
        self: Indexing[tuple[B, K, N, *Ds], T, D],
        indices: Tensor[tuple[B, K, M, *Ds], NoneTape, I],
        axis: Literal[2],
    ) -> Tensor[tuple[B, K, M, *Ds], T, D]: ...
    @overload
    def take_along_axis(
        self: Indexing[tuple[B, K, P, N, *Ds], T, D],
        indices: Tensor[tuple[B, K, P, M, *Ds], NoneTape, I],
        axis: Literal[3],
    ) -> Tensor[tuple[B, K, P, M, *Ds], T, D]: ...
    @overload
    def take_along_axis(
        self: Indexing[tuple[*Ds, N, K, P], T, D],
        indices: Tensor[tuple[*Ds, M, K, P], NoneTape, I],
        axis: Literal[-3],
    ) -> Tensor[tuple[*Ds, M, K, P], T, D]: ...
    def take_along_axis(
        self, indices: Tensor[Any, Any, Any], axis: int = -1
    ) -> Tensor[Any, Any, Any]:
        """Return the elements along one axis at integer positions of their own for each place.

            result[b, m, k] = x[b, indices[b, m, k], k]   along axis 1

        Shape: that of `indices`, which has the rank of `self`; all axes but `axis` broadcast, so
            ``(B, N, K)`` with indices ``(B, M, 1)`` along axis 1 gives ``(B, M, K)``: rows chosen
            batch by batch.
        Derivative: each cotangent is added to the element that it was read from.

        Args:
            indices: an integer tensor; negative counts from the back.
            axis: the axis to read along.

        Raises:
            AxisError: if there is no such axis, or an index lies outside it.
            ShapeError: if the ranks differ, or the other axes do not broadcast.
            DTypeError: if `indices` are not integers.

        >>> import tapetensor as tt
        >>> scores = tt.from_numpy([[1.0, 2.0], [3.0, 4.0]], shape=(2, 2))
        >>> scores.take_along_axis(tt.from_numpy([[1], [0]], shape=(2, 1), dtype=np.int64))
        Tensor([[2.],
                [3.]], shape=(2, 1), dtype=float32, NoneTape)
        """
        shape = self._array.shape
        position = _positions("take_along_axis", shape, indices, axis)
        beside, size = list(zip(shape, indices._array.shape, strict=False)), indices._array.shape
        if len(size) != len(shape) or any(
            mine != its and 1 not in (mine, its)
            for place, (mine, its) in enumerate(beside)
            if place != position
        ):
            own, given = sized(shape), sized(size)
            raise refusal(lambda: rules.take_along_axis("take_along_axis", own, given, position))
        operands = (self, indices)
        return apply(indexing.take_along_axis, operands, (position,), keeps_dtype=False)

    @overload
    def put_along_axis(
        self: NumberBase[S, T, R],
        indices: Tensor[_Places, NoneTape, I],
        values: Joins[_Places, T, R],
        axis: int = -1,
        *,
        accumulate: bool = False,
    ) -> Tensor[S, T, R]: ...
    @overload
    def put_along_axis(
        self: NumberBase[S, NoneTape, R],
        indices: Tensor[_Places, NoneTape, I],
        values: Tensor[_Places, TapeOfRhs, R],
        axis: int = -1,
        *,
        accumulate: bool = False,
    ) -> Tensor[S, TapeOfRhs, R]: ...
    def put_along_axis(
        self,
        indices: Tensor[Any, Any, Any],
        values: Tensor[Any, Any, Any],
        axis: int = -1,
        *,
        accumulate: bool = False,
    ) -> Tensor[Any, Any, Any]:
        """Return `self` with other elements at integer positions along one axis, as a new tensor.

            result[b, indices[b, m]] = values[b, m]   along axis 1;  self elsewhere

        With `accumulate` they are added there: ``+=``, as by scatter_add elsewhere.

        Shape: that of `self`; `indices` and `values` have one shape, which is that of `self` but
            for `axis`.
        Derivative: of `values` 1 where they are put; of `self` 1, but 0 for what is replaced.

        Args:
            indices: an integer tensor; negative counts from the back.
            values: the new elements.
            axis: the axis to write along.
            accumulate: whether `values` are added, so that a position may be named twice.

        Raises:
            AxisError: if there is no such axis, or an index lies outside it.
            ShapeError: if the shapes differ elsewhere.
            DTypeError: if `indices` are not integers, or the dtypes of the others differ.
            ArgumentValueError: if a position is named twice, without `accumulate`.

        Source: numpy, ``put_along_axis``, which writes to its first argument.

        >>> import tapetensor as tt
        >>> row, ids = tt.zeros((3,)), tt.from_numpy([2], shape=(1,), dtype=np.int64)
        >>> row.put_along_axis(ids, tt.ones((1,)))
        Tensor([0., 0., 1.], shape=(3,), dtype=float32, NoneTape)
        """
        op, shape = "put_along_axis", self._array.shape
        check_numeric(op, self)
        check_tensor(op, "values", values)
        check_same_dtype(op, (self, values))
        position = _positions(op, shape, indices, axis)
        as_flag(op, "accumulate", accumulate)
        size, held = indices._array.shape, values._array.shape
        beside = (*size[:position], *size[position + 1 :])
        if (
            len(size) != len(shape)
            or beside != (*shape[:position], *shape[position + 1 :])
            or held != size
        ):
            own, given, put = sized(shape), sized(size), sized(held)
            raise refusal(lambda: rules.check_places(op, own, given, put, position))
        if not accumulate:
            run_check(_refuse_twice, indices._array, op, position, shape[position])
        operands = (self, values, indices)
        return apply(indexing.put_along_axis, operands, (position, accumulate), keeps_dtype=False)


def _refuse_twice(values: Array, op: str, position: int, size: int) -> None:
    places = np.sort(to_numpy(values) % size, axis=position)
    if not np.diff(places, axis=position).all():
        raise ArgumentValueError(
            f"{op}: a position is named twice; write accumulate=True to add what is put there"
        )


def _positions(
    op: str, shape: tuple[int, ...], indices: TensorBase[Any, Any, Any], axis: object
) -> int:
    """Return `axis` from the front, after checking that `indices` are positions along it."""
    check_integers(op, "indices", indices)
    position = normalize_axis(op, axis, shape)
    run_check(_refuse_beyond, indices._array, op, axis, position, shape)
    return position


def _refuse_beyond(
    values: Array, op: str, axis: object, position: int, shape: tuple[int, ...]
) -> None:
    size = shape[position]
    if values.size and not -size <= values.min() <= values.max() < size:
        raise AxisError(
            f"{op}: axis {axis} of shape {shape} has size {size}, "
            f"the indices range from {values.min()} to {values.max()}"
        )


def _plain_index(index: Any) -> object:
    """Return one element of an index with tensors replaced by their arrays."""
    if isinstance(index, TensorBase):
        return _index_array(index._array)
    check_unmasked("getitem", "the index", index)
    if isinstance(index, list):
        return _index_array(_listed(index))
    if hasattr(index, "__array_ufunc__") and not isinstance(index, np.generic):
        return _index_array(index.copy())
    if index is None or index is ... or isinstance(index, slice | int | np.integer):
        return index
    raise ArgumentTypeError(
        "getitem: an index is an int, a slice, None, ... or an integer or bool tensor, "
        f"got {index!r}"
    )


def _listed(index: list[Any]) -> Any:
    try:
        array = np.asarray(index)
    except ValueError:
        raise ArgumentTypeError(f"getitem: an index list is ragged: {index!r}") from None
    # An empty list holds no floats, whatever numpy takes it for.
    return array if array.size else array.astype(np.intp)


def _index_array(array: Any) -> Any:
    if array.dtype.kind not in "iub":
        raise DTypeError(f"getitem: an index tensor holds integers or bools, not {array.dtype}")
    return array


def _complaint(
    indices: tuple[object, ...], shape: tuple[int, ...], error: TapeTensorError
) -> TapeTensorError:
    """Return what to say of an index that numpy has refused, as the context of `error` tells."""
    try:
        _ask_rule(indices, shape)
    except TapeTensorError as refused:
        return refused.with_traceback(None)
    numpys = error.__context__
    if isinstance(numpys, IndexError):
        return AxisError(f"getitem: the index does not fit shape {shape} ({numpys})")
    if isinstance(numpys, TypeError):
        return ArgumentTypeError(f"getitem: {numpys}")
    return error.with_traceback(None)


def _ask_rule(indices: tuple[object, ...], shape: tuple[int, ...]) -> None:
    """Raise the error of the rule for an index that numpy has refused, if that says why."""
    asked: list[rules.Index] = []
    for one in indices:
        if one is None:
            asked.append(rules.Index(rules.Kind.NEW_AXIS))
        elif one is Ellipsis:
            asked.append(rules.Index(rules.Kind.REST))
        elif isinstance(one, slice):
            start, stop, step = [
                Size.of(bound) if isinstance(bound, int) else None
                for bound in (one.start, one.stop, one.step)
            ]
            asked.append(rules.Index(rules.Kind.SLICE, bounds=(start, stop, step)))
        elif isinstance(one, int):
            asked.append(rules.Index(rules.Kind.POSITION, position=one))
        elif isinstance(one, np.ndarray) and one.dtype.kind in "iu":
            asked.append(rules.Index(rules.Kind.TENSOR, shape=sized(one.shape)))
        else:
            if isinstance(one, np.ndarray) and one.dtype.kind == "b" and len(indices) == 1:
                rules.check_mask("getitem", sized(one.shape), sized(shape))
            # Of other masks, and of what is no index, numpy says enough.
            return
    rules.getitem("getitem", asked, sized(shape))
