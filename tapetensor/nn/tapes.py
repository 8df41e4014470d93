"""Tapes for layers with several inputs."""

from __future__ import annotations

from typing import Any

from tapetensor.tape import OwnedTape
from tapetensor.tensor import Tensor


def trained_together(*inputs: Tensor[Any, Any, Any]) -> tuple[Any, ...]:
    """Return the inputs of a layer, all with a tape if one has one.

    What a weight does to a plain input is not recorded; without this the weights of one branch
    would get no gradient because the tape came in by another.
    """
    if not any(x.owns_tape for x in inputs):
        return inputs
    return tuple([x if x.owns_tape else x.retaped(OwnedTape) for x in inputs])
