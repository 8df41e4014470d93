"""Masks: random ones, and where the labels are."""

from __future__ import annotations

from typing import Any

import numpy as np

from tapetensor.arrays.array import Array
from tapetensor.arrays.libraries import like


def scaled_mask(
    shape: tuple[int, ...], p: float, dtype: np.dtype[Any], rng: np.random.Generator
) -> Array:
    """Return 0 with probability `p` and ``1 / (1 - p)`` otherwise; all 0 for ``p = 1``."""
    kept = rng.random(shape, dtype=np.float32) >= p
    mask: Array = kept * dtype.type(1.0 / (1.0 - p) if p < 1.0 else 0.0)
    return mask


def where_labels_are(scores: Array, labels: Array) -> Array:
    """Return a mask of scores ``(*Ds, N)``: true at the class that each label ``(*Ds)`` names."""
    classes = like(np.arange(scores.shape[-1]), scores)
    is_label: Array = np.expand_dims(like(labels, scores), -1) == classes
    return is_label
