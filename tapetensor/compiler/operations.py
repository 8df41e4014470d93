"""What a plan calls beside numpy's own functions."""

from __future__ import annotations

from typing import Any

import numpy as np

from tapetensor.compiler.program import DType


class Keywords(dict[str, Any]):
    """The keyword arguments of a recorded call, the last of its arguments."""


def cast_to(dtype: DType) -> Any:
    """Return the function ``cast(x, out)`` to a dtype, one object to a dtype: equal casts merge."""
    known = _CASTS.get(dtype)
    if known is None:

        def cast(x: Any, out: Any = None) -> Any:
            if out is None:
                return x.astype(dtype)
            np.copyto(out, x, casting="unsafe")
            return out

        known = _CASTS[dtype] = cast
    return known


_CASTS: dict[DType, Any] = {}


def select(mask: Any, lhs: Any, rhs: Any, out: Any = None) -> Any:
    """``np.where`` that can write to `out`."""
    if out is None:
        return np.where(mask, lhs, rhs)
    np.copyto(out, rhs)
    np.copyto(out, lhs, where=mask)
    return out


def read_index(array: Any, index: Any) -> Any:
    """``array[index]``."""
    return array[index]


def write_index(array: Any, index: Any, value: Any) -> None:
    """``array[index] = value``."""
    array[index] = value
