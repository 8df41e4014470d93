"""Codes of class labels."""

from __future__ import annotations

from typing import Any, overload

import numpy as np

from tapetensor.arguments import as_size
from tapetensor.tape import NoneTape
from tapetensor.tensor.base import check_plain
from tapetensor.tensor.creation import arange
from tapetensor.tensor.indexing import I
from tapetensor.tensor.operands import check_labels
from tapetensor.tensor.tensor import Tensor
from tapetensor.typing import D, Ds, N


@overload
def one_hot(
    labels: Tensor[tuple[*Ds], NoneTape, I], classes: N
) -> Tensor[tuple[*Ds, N], NoneTape, np.float32]: ...
@overload
def one_hot(
    labels: Tensor[tuple[*Ds], NoneTape, I], classes: N, dtype: type[D]
) -> Tensor[tuple[*Ds, N], NoneTape, D]: ...
def one_hot(
    labels: Tensor[Any, NoneTape, Any], classes: int, dtype: type[np.generic] = np.float32
) -> Tensor[Any, NoneTape, Any]:
    """Return 1 at the label and 0 at the other classes, along a new last axis.

    Shape: ``(*Ds) -> (*Ds, N)`` for ``classes: N``.

    Args:
        labels: plain integers from 0 to ``classes - 1``.
        classes: how many there are, >= 1.
        dtype: float32 unless given.

    Raises:
        DTypeError: if `labels` are not integers, or a tensor cannot have that dtype.
        AxisError: if a label is not a class.
        ArgumentTypeError: if an argument is of the wrong kind.
        ArgumentValueError: if there is no class.
        UntracedTensorError: if `labels` own a tape.

    >>> import tapetensor as tt
    >>> one_hot(tt.arange(2), 3)
    Tensor([[1., 0., 0.],
            [0., 1., 0.]], shape=(2, 3), dtype=float32, NoneTape)
    """
    check_plain("one_hot", "labels", labels, "trace what comes out instead")
    number = as_size("one_hot", "classes", classes, low=1)
    check_labels("one_hot", labels, number)
    # int64 holds every class, which a narrow dtype of the labels may not.
    numbers: Tensor[Any, NoneTape, np.int64] = arange(number)
    return (labels.astype(np.int64).expand_dims(-1) == numbers).astype(dtype)
