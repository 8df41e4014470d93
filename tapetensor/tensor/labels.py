"""Integer tensors that name classes, checked."""

from __future__ import annotations

from typing import Any

import numpy as np

from tapetensor.arrays.array import Array
from tapetensor.arrays.stand_ins import run_check
from tapetensor.errors import AxisError
from tapetensor.tensor.base import TensorBase, check_integers

# By dtype of the labels: the unsigned one of that size, and how many numbers both can hold.
_UNSIGNED = {
    np.dtype(f"i{size}"): (np.dtype(f"u{size}"), 1 << (8 * size - 1)) for size in (1, 2, 4, 8)
}
# That many wrong labels are named in a message.
_NAMED = 5


def check_labels(
    op: str,
    labels: TensorBase[Any, Any, Any],
    classes: int,
    cure: str = "",
    names: tuple[str, str] = ("labels", "classes"),
    ignored: int | None = None,
) -> None:
    """Refuse labels that are not integers from 0 to ``classes - 1``.

    Args:
        op: the name of the op for the message.
        labels: the tensor.
        classes: how many there are.
        cure: what to write in place of other numbers.
        names: what the message calls the two.
        ignored: a label that need be no class.

    Raises:
        DTypeError: if they are not integers.
        AxisError: if one is not a class; the message names the first few.
    """
    check_integers(op, names[0], labels, cure)
    checked = (
        labels._array if ignored is None else np.where(labels._array == ignored, 0, labels._array)
    )
    run_check(_refuse_beyond, checked, op, classes, names)


def _refuse_beyond(values: Array, op: str, classes: int, names: tuple[str, str]) -> None:
    if values.size == 0 or _are_below(values, classes):
        return
    if not 0 <= values.min() <= values.max() < classes:
        wrong = np.unique(values[(values < 0) | (values >= classes)]).tolist()
        named = ", ".join(map(str, wrong[:_NAMED])) + (", ..." if len(wrong) > _NAMED else "")
        raise AxisError(
            f"{op}: {names[0]} of {classes} {names[1]} go from 0 to {classes - 1}, found {named}"
        )


def _are_below(values: Array, classes: int) -> bool:
    """Tell by one search that all are classes: read as unsigned, what is below 0 is large.

    False is no answer; it may be a dtype that has no such reading, or an array that is not numpy's.
    """
    if type(values) is not np.ndarray:
        return False
    unsigned, held = _UNSIGNED.get(values.dtype, (None, 0))
    if unsigned is None:
        return False
    read = values.view(unsigned)
    # On short arrays numpy finds the place of the largest in a third of the time of its value.
    return bool(read.item(read.argmax()) < min(classes, held))
