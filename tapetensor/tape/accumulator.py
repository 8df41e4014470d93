"""Gradients by name, summed over micro-batches."""

from __future__ import annotations

from typing import Any, final

import numpy as np
from typing_extensions import override

from tapetensor.arguments import check_kind
from tapetensor.arrays.array import Array
from tapetensor.arrays.libraries import check_matching
from tapetensor.arrays.stand_ins import run_check
from tapetensor.errors import DTypeError, NumericalInstabilityError
from tapetensor.tape.gradients import Tensorlike, array_of, clipping


@final
class GradientAccumulator:
    """Sums of gradients by name, for an update after several micro-batches.

    It has one array per name, whatever the number of micro-batches.

    >>> import numpy as np
    >>> import tapetensor as tt
    >>> sums = tt.GradientAccumulator()
    >>> for micro_batch in range(2):
    ...     sums.accumulate("weight", np.array([3.0, 4.0 * micro_batch]))
    >>> sums.normalize()
    >>> sums.apply_clip(1.0)
    3.605551275463989
    >>> sums.get("weight")
    array([0.83205029, 0.5547002 ])
    >>> sums.zero_grad()

    To hand the result to an optimizer, insert it by parameter::

        grads = tt.Gradients()
        for name, parameter in model.parameters().items():
            grads.insert(parameter, sums.get(name))
    """

    __slots__ = ("_arrays", "_counts")

    def __init__(self) -> None:
        self._arrays: dict[str, Array] = {}
        self._counts: dict[str, int] = {}

    @override
    def __repr__(self) -> str:
        """Show the names, and how many gradients each has taken."""
        counts = ", ".join([f"{name}: {count}" for name, count in self._counts.items()])
        return f"GradientAccumulator({counts})"

    @property
    def names(self) -> tuple[str, ...]:
        """The names that have a gradient, in the order of their first one."""
        return tuple(self._arrays)

    def accumulate(self, name: str, gradient: Array | Tensorlike[Any]) -> None:
        """Add a gradient, a plain tensor or an array, to the sum under `name`.

        Raises:
            ArgumentTypeError: if `name` is not a string, or `gradient` neither tensor nor array.
            UntracedTensorError: if it is a tensor that owns a tape.
            NumericalInstabilityError: if it, or the sum with it, holds a NaN or an infinity.
            ShapeError: if its shape is not that of the gradients before.
            DTypeError: if its dtype is not that of the gradients before, or not floating.
        """
        op = "GradientAccumulator.accumulate"
        check_kind(op, "name", name, str, "a string")
        array = array_of(op, gradient)
        if array.dtype.kind != "f":
            raise DTypeError(f"{op}: {name!r}: dtype {array.dtype} is no dtype of a gradient")
        existing = self._arrays.get(name)
        if existing is not None:
            check_matching(op, f"the gradient of {name!r}", existing, "the one to be added", array)
        total: Any = array.copy() if existing is None else existing + array
        run_check(_check_total, total, op, name)
        self._arrays[name] = total
        self._counts[name] = self._counts.get(name, 0) + 1

    def get(self, name: str) -> Array | None:
        """Return a copy of the gradient under `name`, or None if there is none."""
        array = self._arrays.get(name)
        return None if array is None else array.copy()

    def normalize(self) -> None:
        """Divide every sum by the number of its summands: the mean over the micro-batches.

        A mean counts as one gradient, so a second call changes nothing.
        """
        for name, array in self._arrays.items():
            count = self._counts[name]
            if count > 1:
                self._arrays[name] = array / count
                self._counts[name] = 1

    def zero_grad(self) -> None:
        """Set all gradients to zeros and the counts to 0; names, shapes and dtypes stay."""
        self._arrays = {name: np.zeros_like(array) for name, array in self._arrays.items()}
        self._counts = dict.fromkeys(self._counts, 0)

    def apply_clip(self, max_norm: float) -> float:
        """Scale all gradients by ``min(1, max_norm / norm)`` and return the norm before that.

        The norm is the Euclidean one of all gradients taken together.

        Args:
            max_norm: > 0.

        Raises:
            ArgumentTypeError: if `max_norm` is not a number.
            ArgumentValueError: if it is not positive.
            NumericalInstabilityError: if the norm is not finite: sums have overflowed.
        """
        norm, factor = clipping("GradientAccumulator.apply_clip", self._arrays.values(), max_norm)
        if factor is not None:
            self._arrays = {name: array * factor for name, array in self._arrays.items()}
        return norm


def _check_total(total: Array, op: str, name: str) -> None:
    finite = np.isfinite(total)
    if not np.all(finite):
        raise NumericalInstabilityError(
            f"{op}: with this gradient {name!r} is not finite: {int(np.sum(~finite))} of "
            f"{total.size} elements are NaN or infinite; it stays as it was"
        )
