"""Which dtypes a tensor may have."""

from __future__ import annotations

from typing import Any

import numpy as np

from tapetensor.errors import DTypeError

FLOATING = (np.dtype(np.float32), np.dtype(np.float64))


def native(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return a dtype with the order of bytes of this machine, itself if it has that."""
    return dtype if dtype.isnative else dtype.newbyteorder("=")


def as_dtype(op: str, dtype: Any) -> np.dtype[Any]:
    """Return the numpy dtype for `dtype`.

    Raises:
        DTypeError: if it is not float32, float64, an integer or bool.
    """
    try:
        resolved: np.dtype[Any] = np.dtype(dtype)
    except TypeError:
        raise DTypeError(f"{op}: {dtype!r} is not a dtype; write np.float32, say") from None
    if (
        dtype is None
        or not resolved.isnative
        or not (resolved in FLOATING or resolved.kind in "iub")
    ):
        # A checker does not see it, which has one type for both.
        turned = "" if resolved.isnative else ", whose bytes lie the other way round"
        raise DTypeError(
            f"{op}: a tensor cannot have dtype {dtype}{turned}; "
            "use float32 or float64 for values, an integer dtype or bool for indices and masks "
            "(array.astype(np.float32), say)"
        )
    return resolved


def as_floating_dtype(op: str, name: str, dtype: Any) -> np.dtype[Any]:
    """Return the numpy dtype for `dtype`, of what is named.

    Raises:
        DTypeError: if it is not float32 or float64.
    """
    resolved = as_dtype(op, dtype)
    if resolved not in FLOATING:
        raise DTypeError(f"{op}: {name} are float32 or float64, not {resolved}")
    return resolved
