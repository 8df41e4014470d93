"""Rows of tensors: in batches, and parted into those for training and those held out."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Generic, TypeAlias, final, overload

import numpy as np
from typing_extensions import TypeVar, TypeVarTuple, override

from tapetensor.arguments import as_number, as_size, check_rng
from tapetensor.arrays.array import Array
from tapetensor.errors import ArgumentTypeError, ArgumentValueError, ShapeError, at_the_call
from tapetensor.tape import NoneTape
from tapetensor.tape.history import OWN, gap_step, next_id, size_of
from tapetensor.tensor import Tensor, from_numpy
from tapetensor.tensor.base import check_plain, rewrap
from tapetensor.typing import B, D, Ds, N

Item_co = TypeVar("Item_co", covariant=True)
# The trailing dims and the dtypes of the second and the third of several tensors.
Es = TypeVarTuple("Es")
E = TypeVar("E", bound=np.generic)
Gs = TypeVarTuple("Gs")
G = TypeVar("G", bound=np.generic)
# A plain tensor of N rows.
Rows: TypeAlias = Tensor[tuple[N, *Ds], NoneTape, D]


@final
class Batches(Generic[Item_co]):
    """The batches of an epoch, as `batches` and `batches_exact` return them.

    ``len(...)`` is the number of batches. With a generator each iteration draws a new order.
    """

    def __init__(
        self,
        tensors: tuple[Tensor[Any, Any, Any], ...],
        size: int,
        count: int,
        rng: np.random.Generator | None,
    ) -> None:
        self._tensors = tensors
        self._size = size
        self._count = count
        self.rng = rng

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[Item_co]:
        order = None if self.rng is None else self.rng.permutation(len(self._tensors[0]))
        for start in range(0, self._count * self._size, self._size):
            rows = slice(start, start + self._size)
            taken = rows if order is None else order[rows]
            yield rows_taken(self._tensors, taken)

    @override
    def __repr__(self) -> str:
        """Show how many batches of which size there are."""
        order = "in order" if self.rng is None else "shuffled"
        return f"Batches({self._count} of {self._size}, {order})"


@overload
def batches(
    data: Rows[N, *Ds, D], /, *, size: int, rng: np.random.Generator | None = None
) -> Batches[Rows[Any, *Ds, D]]: ...
@overload
def batches(
    data: Rows[N, *Ds, D],
    data2: Rows[N, *Es, E],
    /,
    *,
    size: int,
    rng: np.random.Generator | None = None,
) -> Batches[tuple[Rows[Any, *Ds, D], Rows[Any, *Es, E]]]: ...
@overload
def batches(
    data: Rows[N, *Ds, D],
    data2: Rows[N, *Es, E],
    data3: Rows[N, *Gs, G],
    /,
    *,
    size: int,
    rng: np.random.Generator | None = None,
) -> Batches[tuple[Rows[Any, *Ds, D], Rows[Any, *Es, E], Rows[Any, *Gs, G]]]: ...
def batches(
    *tensors: Tensor[Any, NoneTape, Any], size: int, rng: np.random.Generator | None = None
) -> Batches[Any]:
    """Return the rows of up to three tensors, batch by batch; the last batch may be shorter.

    Shape: ``(N, *Ds) -> (Any, *Ds)``.

    Args:
        tensors: plain tensors with equal numbers of rows. The batches of one tensor are tensors,
            those of several are tuples of tensors.
        size: the rows of a batch, >= 1.
        rng: draws a new order of the rows for each iteration. Without it they come in order.

    Raises:
        ShapeError: if there are no rows, or the tensors have not as many each.
        ArgumentTypeError: if an argument is of the wrong kind.
        ArgumentValueError: if `size` is not positive.
        UntracedTensorError: if a tensor owns a tape.

    >>> import tapetensor as tt
    >>> for x in batches(tt.arange(5), size=2):
    ...     print(x.numpy())
    [0 1]
    [2 3]
    [4]
    """
    rows, number = _checked("batches", tensors, size, rng)
    return Batches(tensors, number, -(-rows // number), rng)


@overload
def batches_exact(
    data: Rows[N, *Ds, D], /, *, size: B, rng: np.random.Generator | None = None
) -> Batches[Rows[B, *Ds, D]]: ...
@overload
def batches_exact(
    data: Rows[N, *Ds, D],
    data2: Rows[N, *Es, E],
    /,
    *,
    size: B,
    rng: np.random.Generator | None = None,
) -> Batches[tuple[Rows[B, *Ds, D], Rows[B, *Es, E]]]: ...
@overload
def batches_exact(
    data: Rows[N, *Ds, D],
    data2: Rows[N, *Es, E],
    data3: Rows[N, *Gs, G],
    /,
    *,
    size: B,
    rng: np.random.Generator | None = None,
) -> Batches[tuple[Rows[B, *Ds, D], Rows[B, *Es, E], Rows[B, *Gs, G]]]: ...
def batches_exact(
    *tensors: Tensor[Any, NoneTape, Any], size: int, rng: np.random.Generator | None = None
) -> Batches[Any]:
    """Return the rows of up to three tensors in batches of one size; a short rest is left out.

    Shape: ``(N, *Ds) -> (B, *Ds)`` for ``size: B``.

    Args:
        tensors: plain tensors with equal numbers of rows. The batches of one tensor are tensors,
            those of several are tuples of tensors.
        size: the rows of a batch, from 1 to the number of rows.
        rng: draws a new order of the rows for each iteration. Without it they come in order.

    Raises:
        ShapeError: if there are no rows, or the tensors have not as many each.
        ArgumentTypeError: if an argument is of the wrong kind.
        ArgumentValueError: if `size` is not positive, or there are fewer rows.
        UntracedTensorError: if a tensor owns a tape.

    >>> import tapetensor as tt
    >>> for x in batches_exact(tt.arange(5), size=2):
    ...     print(x.numpy())
    [0 1]
    [2 3]
    """
    rows, number = _checked("batches_exact", tensors, size, rng)
    if number > rows:
        raise ArgumentValueError(
            f"batches_exact: size must not exceed the {rows} rows, got {number}; "
            "batches(...) takes a short last batch as well"
        )
    return Batches(tensors, number, rows // number, rng)


def _checked(op: str, tensors: tuple[Any, ...], size: object, rng: object) -> tuple[int, int]:
    """Return how many rows there are in all and in a batch."""
    with at_the_call:
        rows = rows_in(op, tensors, low=1)
        number = as_size(op, "size", size, low=1)
        if rng is not None:
            check_rng(op, rng)
        return rows, number


def rows_in(op: str, tensors: tuple[Any, ...], low: int = 0) -> int:
    """Return how many rows plain tensors have; refuse others, and fewer rows than `low`."""
    if not tensors:
        raise ArgumentTypeError(f"{op}: give at least one tensor to take rows of")
    for position, tensor in enumerate(tensors):
        check_plain(op, f"argument {position + 1}", tensor, "trace what comes out instead")
    lengths = {tensor._array.shape[:1] for tensor in tensors}
    if len(lengths) > 1 or () in lengths or min(lengths) < (low,):
        shapes = " and ".join([str(tensor._array.shape) for tensor in tensors])
        size = f"one size, at least {low}" if low else "one size"
        raise ShapeError(f"{op}: tensors need a first axis of {size}, got shape {shapes}")
    ((rows,),) = lengths
    return int(rows)


def rows_taken(tensors: tuple[Tensor[Any, Any, Any], ...], rows: slice | Array) -> Any:
    """Return rows of one tensor, or a tuple with those of each of several."""
    found = []
    for tensor in tensors:
        array = tensor._array
        # numpy's `take` would copy all rows of an array that does not lie in order.
        is_apart = type(array) is np.ndarray and not array.flags.c_contiguous
        array = array[rows] if isinstance(rows, slice) or is_apart else np.take(array, rows, axis=0)
        found.append(rewrap(tensor, array, next_id(), None))
        if tensor.history is not None and tensor.history is not OWN:
            # What was computed comes of what it was computed from; data does not.
            origins = tensor.id, tensor.history
            found[-1].history = gap_step(found[-1].id, rows_taken, origins, size_of(origins))
    return tuple(found) if len(found) > 1 else found[0]


@overload
def split(
    data: Rows[N, *Ds, D], /, *, held_out: float, rng: np.random.Generator | None = None
) -> tuple[Rows[Any, *Ds, D], Rows[Any, *Ds, D]]: ...
@overload
def split(
    data: Rows[N, *Ds, D],
    data2: Rows[N, *Es, E],
    /,
    *,
    held_out: float,
    rng: np.random.Generator | None = None,
) -> tuple[
    tuple[Rows[Any, *Ds, D], Rows[Any, *Es, E]], tuple[Rows[Any, *Ds, D], Rows[Any, *Es, E]]
]: ...
@overload
def split(
    data: Rows[N, *Ds, D],
    data2: Rows[N, *Es, E],
    data3: Rows[N, *Gs, G],
    /,
    *,
    held_out: float,
    rng: np.random.Generator | None = None,
) -> tuple[
    tuple[Rows[Any, *Ds, D], Rows[Any, *Es, E], Rows[Any, *Gs, G]],
    tuple[Rows[Any, *Ds, D], Rows[Any, *Es, E], Rows[Any, *Gs, G]],
]: ...
def split(
    *tensors: Tensor[Any, NoneTape, Any], held_out: float, rng: np.random.Generator | None = None
) -> tuple[Any, Any]:
    """Return the rows of up to three tensors in two parts: for training, and held out.

    The parts of one tensor are tensors, those of several are tuples of tensors. Rows that belong
    together, such as those of one patient, must all be in one part: split such data by hand.

    Shape: ``(N, *Ds) -> (N - n, *Ds), (n, *Ds)`` for ``n = round(held_out * N)``.

    Args:
        tensors: plain tensors with equal numbers of rows.
        held_out: the share of the rows in the second part, between 0 and 1.
        rng: draws the rows of the second part. Without it they are the last rows, as for series in
            time.

    Raises:
        ShapeError: if the tensors have not as many rows each.
        ArgumentTypeError: if an argument is of the wrong kind.
        ArgumentValueError: if the share is out of its range, or leaves a part without rows.
        UntracedTensorError: if a tensor owns a tape.

    >>> import tapetensor as tt
    >>> training, last = split(tt.arange(5), held_out=0.4)
    >>> training.tolist(), last.tolist()
    ([0, 1, 2], [3, 4])
    """
    rows = rows_in("split", tensors, low=1)
    share = as_number("split", "held_out", held_out, above=0, below=1)
    if rng is not None:
        check_rng("split", rng)
    count = rows - round(share * rows)
    if not 0 < count < rows:
        raise ArgumentValueError(
            f"split: held_out={held_out!r} of {rows} rows leaves a part without any"
        )
    order = np.arange(rows) if rng is None else rng.permutation(rows)
    first, second = (
        tuple([tensor.take(from_numpy(chosen)) for tensor in tensors])
        for chosen in (order[:count], order[count:])
    )
    return (first, second) if len(tensors) > 1 else (first[0], second[0])
