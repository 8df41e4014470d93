"""Gradients of tables of which few rows were read: these rows alone, and where they belong."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias, final

import numpy as np
from typing_extensions import override

from tapetensor.arrays.array import Array

# Rows of shape (n, width), n targets, and a count: so many rows, each the sum of those for it.
SumRows: TypeAlias = Callable[[Array, Array, int], Array]


@final
class RowSparse:
    """The gradient of a matrix, which is zero but for some rows.

    A pullback that reads rows of a leaf returns one, and a store of gradients holds it until
    somebody asks for the gradient, who gets the whole of it. No other pullback ever sees one,
    because no step produced the leaf. Two of them are added by holding on to both, so that a
    recurrence may read a table many times; one and an array are an array.

    It refuses numpy's functions: whoever computes with a gradient asks `dense_of` for the whole, or
    `values_of` for the numbers in it.

    Args:
        shape: of the matrix.
        dtype: of the rows.
        sum_rows: adds rows that have one target.
        parts: ids of rows in ascending order, each once, and the rows, in pairs.
    """

    __slots__ = ("_parts", "_sum_rows", "dtype", "shape")

    # Makes `array + rows` ask __radd__, and any function of numpy's raise a TypeError.
    __array_ufunc__ = None

    def __init__(
        self,
        shape: tuple[int, ...],
        dtype: np.dtype[Any],
        sum_rows: SumRows,
        parts: list[tuple[Array, Array]],
    ) -> None:
        self.shape = shape
        self.dtype = dtype
        self._sum_rows = sum_rows
        self._parts = parts

    @classmethod
    def of(
        cls,
        shape: tuple[int, ...],
        dtype: np.dtype[Any],
        sum_rows: SumRows,
        ids: Array,
        rows: Array,
    ) -> RowSparse:
        """Return the gradient in which each of several rows is added to the one of its id.

        What it holds is its own: others may write to the ids and to the rows afterwards.
        """
        found, places = np.unique(ids, return_inverse=True)
        return cls(shape, dtype, sum_rows, [(found, sum_rows(rows, places, found.size))])

    def summed(self) -> tuple[Array, Array]:
        """Return the ids in ascending order, each once, and the rows that belong to them."""
        if len(self._parts) > 1:
            ids, rows = (np.concatenate(several) for several in zip(*self._parts, strict=True))
            one = RowSparse.of(self.shape, self.dtype, self._sum_rows, ids, rows)
            self._parts = [one.summed()]
        (pair,) = self._parts
        return pair

    def dense(self) -> Array:
        """Return the whole matrix, a new array."""
        ids, rows = self.summed()
        whole = np.zeros(self.shape, self.dtype)
        whole[ids] = rows
        return whole

    def with_rows(self, ids: Array, rows: Array) -> RowSparse:
        """Return a gradient of the same matrix with other rows, whose ids ascend."""
        return RowSparse(self.shape, self.dtype, self._sum_rows, [(ids, rows)])

    def __add__(self, other: RowSparse | Array) -> Any:
        """Return the sum with another one, or the whole matrix that is the sum with an array."""
        if isinstance(other, RowSparse):
            parts = self._parts + other._parts
            return RowSparse(self.shape, self.dtype, self._sum_rows, parts)
        ids, rows = self.summed()
        total = np.array(other)
        total[ids] += rows
        return total

    __radd__ = __add__

    @override
    def __repr__(self) -> str:
        """Show how much of the matrix it holds."""
        count = sum([ids.size for ids, _ in self._parts])
        return f"RowSparse({count} rows of shape {self.shape}, dtype={self.dtype})"


def dense_of(gradient: Any) -> Array:
    """Return the whole of a gradient, of which perhaps only rows are held."""
    whole: Array = gradient.dense() if gradient.__class__ is RowSparse else gradient
    return whole


def values_of(gradient: Any) -> Array:
    """Return the numbers in a gradient, but for those that are zero because no row is there."""
    values: Array = gradient.summed()[1] if gradient.__class__ is RowSparse else gradient
    return values


def changed(gradient: Any, change: Callable[[Array], Array]) -> Any:
    """Return a gradient with its numbers changed by a function that leaves a zero as it is."""
    if gradient.__class__ is RowSparse:
        ids, rows = gradient.summed()
        return gradient.with_rows(ids, change(rows))
    return change(gradient)


def zeros_of(gradient: Any) -> Any:
    """Return a gradient of the same shape that is zero throughout; of rows one that has none."""
    if gradient.__class__ is RowSparse:
        no_rows = np.empty((0, *gradient.shape[1:]), gradient.dtype)
        return gradient.with_rows(np.empty(0, np.intp), no_rows)
    return np.zeros_like(gradient)
