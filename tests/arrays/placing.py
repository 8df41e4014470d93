"""Tensors over the arrays of the foreign library, and back."""

from __future__ import annotations

from typing import Any

import numpy as np

import tapetensor as tt
from tests.arrays import foreign
from tests.arrays.foreign import ForeignArray

Array = np.ndarray[Any, np.dtype[Any]]


def abroad(array: Array) -> Any:
    """Return a tensor over a foreign array."""
    return tt.from_array(foreign.asarray(array))


def moved(tensor: Any) -> Any:
    """Return a plain tensor over a foreign array, under an id of its own."""
    return abroad(tensor.numpy())


def home(value: Any) -> Array:
    """Return the elements of what must lie in the foreign library."""
    array = value.array if isinstance(value, tt.Tensor) else value
    assert isinstance(array, ForeignArray)
    return array.get()
