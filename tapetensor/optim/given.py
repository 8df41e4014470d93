"""The gradients that a step is given: whether they fit, and who else sees what they change."""

from __future__ import annotations

import math
from collections.abc import Sequence
from sys import getrefcount
from types import SimpleNamespace
from typing import Any, Literal, TypeAlias

import numpy as np

from tapetensor.arrays.array import Array, is_numpys
from tapetensor.arrays.libraries import library_of
from tapetensor.arrays.stand_ins import CapturedArray
from tapetensor.errors import NumericalInstabilityError
from tapetensor.tape.row_sparse import RowSparse, values_of
from tapetensor.tensor.base import wrap
from tapetensor.tensor.tensor import Tensor

# What an update is for: the rows of a table that were read, the whole of it, or either.
Takes: TypeAlias = Literal["rows", "whole", "either"]

# Why most parameters cannot be updated that cannot.
NO_GRADIENT = "no gradient"
_WHOLE = (
    "its gradient is that of the whole table, and not of rows; the table of an "
    "nn.Embedding(..., sparse=True) has one of rows, where it is read by that layer alone and "
    "outside of tt.compile; optim.Adam takes any other"
)

# All names of one parameter.
Names = tuple[str, ...]


def misfit(
    gradient: Any, parameter: Any, shape: tuple[int, ...], dtype: np.dtype[Any], takes: Takes
) -> str:
    """Return why a gradient does not fit a parameter; empty if it does."""
    if gradient is None:
        return NO_GRADIENT
    if gradient.shape != shape:
        return f"a gradient of shape {gradient.shape} for a parameter of shape {shape}"
    if gradient.dtype != dtype:
        return f"a gradient of dtype {gradient.dtype} for a parameter of dtype {dtype}"
    if takes == "rows" and not isinstance(gradient, RowSparse):
        return _WHOLE
    values = values_of(gradient)
    if isinstance(parameter, CapturedArray) or (is_numpys(values) and is_numpys(parameter)):
        return ""
    theirs, ours = library_of(values), library_of(parameter)
    return "" if theirs == ours else f"a gradient of {theirs} for a parameter of {ours}"


def refuse_not_finite(gradient: Array, op: str, names: Names) -> None:
    """Raise NumericalInstabilityError if a gradient holds a NaN or an infinity."""
    # The sum of squares takes half the time; one that overflows says nothing.
    if type(gradient) is np.ndarray and math.isfinite(np.vdot(gradient, gradient)):
        return
    finite = np.isfinite(gradient)
    if not finite.all():
        name, count = " = ".join(names), int(finite.size - finite.sum())
        raise NumericalInstabilityError(
            f"{op}: nothing was updated, for the gradient of {name} is not finite: {count} of "
            f"{finite.size} elements are NaN or infinite; loss.backward(check_finite=True) names "
            "the op that makes them"
        )


def places_of(gradients: Sequence[Any]) -> tuple[int, ...] | None:
    """Return which of the gradients there are; None for all."""
    places = tuple([place for place, one in enumerate(gradients) if one is not None])
    return None if len(places) == len(gradients) else places


def is_shared(flat: Array, tensor: Tensor[Any, Any, Any]) -> bool:
    """Tell whether a tape, a view or a handle holds on to the values that a parameter shows."""
    return (getrefcount(flat), getrefcount(tensor._array)) != _UNSHARED


def _references_of_unshared() -> tuple[int, int]:
    """Return the reference counts of what nobody else holds, as `is_shared` sees them."""
    probe = SimpleNamespace(flat=np.empty(1))
    probe.views = [probe.flat.reshape(1, 1)]
    tensor: Tensor[Any, Any, Any] = wrap(Tensor, probe.views[0], 0, None)
    found: list[tuple[int, int]] = []

    def note(flat: Array, tensor: Tensor[Any, Any, Any]) -> None:
        found.append((getrefcount(flat), getrefcount(tensor._array)))

    note(probe.flat, tensor)
    return found[0]


_UNSHARED = _references_of_unshared()
