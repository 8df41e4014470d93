"""The gradients of a loss of any shape, by a function rather than a method."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from tapetensor.tape import OwnedTape
from tapetensor.tape.gradients import Gradients, Tensorlike
from tapetensor.tape.ids import next_id
from tapetensor.tensor.base import FloatingBase, check_tensor, check_usable, rewrap
from tapetensor.tensor.ownership import HasParameters, Ownership
from tapetensor.typing import F, S


def compute_gradients(
    loss: FloatingBase[S, OwnedTape, F],
    *,
    wrt: HasParameters | Tensorlike[Any] | Iterable[Tensorlike[Any]] | None = None,
) -> Gradients:
    """Run the recorded ops backwards and return the gradients of the sum of the loss's elements.

    For a scalar the same as ``loss.backward()``; another shape is taken with a cotangent of ones.

    Args:
        loss: of any shape.
        wrt: what to differentiate with respect to, as for `backward`.

    Raises:
        ArgumentTypeError: if `loss` is not a tensor.
        UntracedTensorError: if it owns no tape.
        TapeUsedError: if an earlier backward pass has used up the recorded ops.
        TapeClosedError: if the context that its tape belongs to was left, or the tape cleared.
        DTypeError: if it is not floating.

    >>> import tapetensor as tt
    >>> x = tt.from_numpy([1.0, 3.0], shape=(2,))
    >>> tt.compute_gradients(x.trace().square())[x]
    Tensor([2., 6.], shape=(2,), dtype=float32, NoneTape)
    """
    check_tensor("compute_gradients", "the loss", loss)
    assert isinstance(loss, Ownership)
    check_usable("compute_gradients", loss)
    ones = rewrap(loss, np.ones_like(loss._array), next_id(), None)
    return loss.backward(ones, wrt=wrt)
