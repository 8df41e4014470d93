"""Items of any kind: in random order, in groups, and taken apart; and codes of class labels."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Any, Protocol, overload

import numpy as np
from typing_extensions import TypeVar

from tapetensor.arguments import as_flag, as_size, check_kind, check_rng
from tapetensor.errors import ArgumentTypeError, ShapeError
from tapetensor.tape import NoneTape
from tapetensor.tensor.base import check_plain
from tapetensor.tensor.creation import arange
from tapetensor.tensor.indexing import I
from tapetensor.tensor.operands import check_labels
from tapetensor.tensor.tensor import Tensor
from tapetensor.typing import D, Ds, N

Item = TypeVar("Item")
Item_co = TypeVar("Item_co", covariant=True)
First = TypeVar("First")
Second = TypeVar("Second")
Third = TypeVar("Third")


class Dataset(Protocol[Item_co]):
    """Items by number, from 0: a list, a tuple, or an object that loads them when asked."""

    def __len__(self) -> int:
        """Return how many items there are."""

    def __getitem__(self, index: int, /) -> Item_co:
        """Return an item."""


def shuffled(dataset: Dataset[Item], rng: np.random.Generator) -> Iterator[Item]:
    """Return every item of a dataset once, in random order.

    Each item is read when its turn comes, so that a dataset may load its items one by one.

    Args:
        dataset: an object with a length and items by number.
        rng: draws the order, in the call of this function. Forked processes draw the same order,
            unless each has a generator of its own: ``rng.spawn(workers)[number]``.

    Raises:
        ArgumentTypeError: if an argument is of the wrong kind.

    >>> import numpy as np
    >>> sorted(shuffled(["a", "b", "c"], np.random.default_rng(0)))
    ['a', 'b', 'c']
    """
    has_items = hasattr(dataset, "__len__") and hasattr(dataset, "__getitem__")
    if not has_items or isinstance(dataset, Mapping):
        raise ArgumentTypeError(
            "shuffled: a dataset has a length and items by number, "
            f"got {type(dataset).__name__}; make a list of it"
        )
    check_rng("shuffled", rng)
    return (dataset[index] for index in rng.permutation(len(dataset)).tolist())


def batched(items: Iterable[Item], size: int, *, exact: bool = False) -> Iterator[list[Item]]:
    """Return items in lists of one size; the last list may be shorter.

    Args:
        items: of any kind; they may come from `shuffled`.
        size: the items of a list, >= 1.
        exact: whether to leave out a shorter last list.

    Raises:
        ArgumentTypeError: if an argument is of the wrong kind.
        ArgumentValueError: if `size` is not positive.

    >>> list(batched("abcde", 2))
    [['a', 'b'], ['c', 'd'], ['e']]
    >>> list(batched("abcde", 2, exact=True))
    [['a', 'b'], ['c', 'd']]
    """
    number = as_size("batched", "size", size, low=1)
    as_flag("batched", "exact", exact)
    check_kind("batched", "items", items, Iterable, "an iterable")
    return _batched(iter(items), number, number if exact else 1)


def _batched(items: Iterator[Item], size: int, at_least: int) -> Iterator[list[Item]]:
    while len(batch := list(islice(items, size))) >= at_least:
        yield batch


@overload
def collate(rows: Iterable[tuple[First, Second]]) -> tuple[list[First], list[Second]]: ...
@overload
def collate(
    rows: Iterable[tuple[First, Second, Third]],
) -> tuple[list[First], list[Second], list[Third]]: ...
def collate(rows: Iterable[tuple[Any, ...]]) -> tuple[list[Any], ...]:
    """Return the first parts of all rows, then the second ones, and so on.

    Args:
        rows: pairs or triples, at least one.

    Raises:
        ShapeError: if there are none, or they have not as many parts each.
        ArgumentTypeError: if they are not tuples.

    >>> collate([("a", 1), ("b", 2)])
    (['a', 'b'], [1, 2])
    """
    check_kind("collate", "rows", rows, Iterable, "a list of tuples")
    listed = list(rows)
    for row in listed:
        check_kind("collate", "a row", row, tuple)
    lengths = sorted({len(row) for row in listed})
    if len(lengths) != 1:
        found = " and ".join(map(str, lengths)) or "no rows"
        raise ShapeError(f"collate: rows must have the same number of parts, got {found}")
    return tuple([list(parts) for parts in zip(*listed, strict=True)])


@overload
def one_hot(
    labels: Tensor[tuple[*Ds], NoneTape, I], classes: N
) -> Tensor[tuple[*Ds, N], NoneTape, np.float32]: ...
@overload
def one_hot(
    labels: Tensor[tuple[*Ds], NoneTape, I], classes: N, dtype: type[D]
) -> Tensor[tuple[*Ds, N], NoneTape, D]: ...
def one_hot(
    labels: Tensor[Any, NoneTape, Any], classes: int, dtype: type[np.generic] = np.float32
) -> Tensor[Any, NoneTape, Any]:
    """Return 1 at the label and 0 at the other classes, along a new last axis.

    Shape: ``(*Ds) -> (*Ds, N)`` for ``classes: N``.

    Args:
        labels: plain integers from 0 to ``classes - 1``.
        classes: how many there are, >= 1.
        dtype: float32 unless given.

    Raises:
        DTypeError: if `labels` are not integers, or a tensor cannot have that dtype.
        AxisError: if a label is not a class.
        ArgumentTypeError: if an argument is of the wrong kind.
        ArgumentValueError: if there is no class.
        UntracedTensorError: if `labels` own a tape.

    >>> import tapetensor as tt
    >>> one_hot(tt.arange(2), 3)
    Tensor([[1., 0., 0.],
            [0., 1., 0.]], shape=(2, 3), dtype=float32, NoneTape)
    """
    check_plain("one_hot", "labels", labels, "trace what comes out instead")
    number = as_size("one_hot", "classes", classes, low=1)
    check_labels("one_hot", labels, number)
    # int64 holds every class, which a narrow dtype of the labels may not.
    numbers: Tensor[Any, NoneTape, np.int64] = arange(number)
    return (labels.astype(np.int64).expand_dims(-1) == numbers).astype(dtype)
