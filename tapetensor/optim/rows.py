"""Updates of some rows of a table, in place where nobody else can see that."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from sys import getrefcount
from typing import Any

import numpy as np

from tapetensor.arrays.array import Array
from tapetensor.tape.row_sparse import RowSparse
from tapetensor.tensor.base import wrap
from tapetensor.tensor.tensor import Tensor


def update_rows(
    gradient: RowSparse,
    tables: Sequence[Array],
    run: Callable[[Array, Array, Array, list[Array]], None],
) -> None:
    """Write new rows over those of a table that have a gradient, and over those of its state.

    Args:
        gradient: that of the table.
        tables: the table and then its state, of the same shape.
        run: the update of flat arrays: takes what the new parameter goes to, the parameter, its
            gradient and its state.
    """
    ids, rows = gradient.summed()
    before, *state = [table[ids].reshape(-1) for table in tables]
    after = np.empty_like(before)
    run(after, before, rows.reshape(-1), state)
    for table, changed in zip(tables, (after, *state), strict=True):
        table[ids] = changed.reshape(rows.shape)


def is_shared(flat: Array, tensor: Tensor[Any, Any, Any]) -> bool:
    """Tell whether a tape, a view or a handle holds on to the values of a parameter.

    Args:
        flat: what an attribute holds.
        tensor: the parameter, which shows it, by a view that one list holds, too.
    """
    return (getrefcount(flat), getrefcount(tensor._array)) != _UNSHARED


class _Probe:
    __slots__ = ("flat", "views")

    def __init__(self) -> None:
        self.flat = np.empty(1)
        self.views = [self.flat.reshape(1, 1)]


def _references_of_unshared() -> tuple[int, int]:
    """Return the reference counts of what nobody else holds, as `is_shared` sees them."""
    probe = _Probe()
    tensor: Tensor[Any, Any, Any] = wrap(Tensor, probe.views[0], 0, None)
    found: list[tuple[int, int]] = []

    def note(flat: Array, tensor: Tensor[Any, Any, Any]) -> None:
        found.append((getrefcount(flat), getrefcount(tensor._array)))

    note(probe.flat, tensor)
    return found[0]


_UNSHARED = _references_of_unshared()
