"""Random masks."""

from __future__ import annotations

from typing import Any

import numpy as np

from tapetensor.arrays.array import Array


def scaled_mask(
    shape: tuple[int, ...], p: float, dtype: np.dtype[Any], rng: np.random.Generator
) -> Array:
    """Return 0 with probability `p` and ``1 / (1 - p)`` otherwise; all 0 for ``p = 1``."""
    kept = rng.random(shape, dtype=np.float32) >= p
    mask: Array = kept * dtype.type(1.0 / (1.0 - p) if p < 1.0 else 0.0)
    return mask
