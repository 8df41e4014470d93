"""numpy's rules for lazy operands: views, dtypes, shapes."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from tapetensor.compiler.node import DType, Node, Shape
from tapetensor.compiler.number import LazyNumber
from tapetensor.kernels.numerics.sums import PRODUCT_DTYPES


def is_basic(index: Any) -> bool:
    """Tell whether numpy answers an index with a view."""
    parts = index if isinstance(index, tuple) else (index,)
    return all(
        one is None or one is ... or isinstance(one, slice | int | np.integer) for one in parts
    )


def resolve(ufunc: np.ufunc, inputs: tuple[Any, ...]) -> tuple[DType, ...]:
    """Return the dtypes that a ufunc works in, its result's last."""
    return _resolved(ufunc, *[_kind(one) for one in inputs])


@cache
def _resolved(ufunc: np.ufunc, *kinds: Any) -> tuple[DType, ...]:
    return ufunc.resolve_dtypes((*kinds, None))


def _kind(value: Any) -> Any:
    if isinstance(value, LazyNumber) and value.kind is bool:
        return int
    return value.kind if isinstance(value, LazyNumber) else getattr(value, "dtype", value.__class__)


def are_rows(lhs: Node, rhs: Node) -> bool:
    """Tell whether two arrays are rows that the BLAS multiplies pair by pair."""
    is_alike = lhs.shape == rhs.shape and lhs.dtype == rhs.dtype
    return is_alike and lhs.shape != () and lhs.dtype in PRODUCT_DTYPES


def product_shape(lhs: Shape, rhs: Shape) -> Shape:
    """Return the shape of a matrix product.

    Raises:
        ValueError: if the inner dims differ.
    """
    inner = rhs[-2] if len(rhs) > 1 else rhs[0]
    if lhs[-1] != inner:
        raise ValueError(f"inner dims {lhs[-1]} and {inner} differ")
    leading = np.broadcast_shapes(lhs[:-2], rhs[:-2])
    return (*leading, *lhs[-2:-1], *(rhs[-1:] if len(rhs) > 1 else ()))
