"""What data must be."""

from __future__ import annotations

from typing import Any

from tapetensor.errors import UntracedTensorError
from tapetensor.tensor.base import check_not_spent, check_tensor, tape_state


def check_plain(op: str, tensor: Any, name: str) -> None:
    """Refuse what is not a plain tensor.

    Raises:
        ArgumentTypeError: if it is no tensor.
        UntracedTensorError: if it owns a tape.
    """
    check_tensor(op, tensor, name)
    if tensor._tape is not None:
        check_not_spent(op, tensor)
        raise UntracedTensorError(
            f"{op}: {name} must be a plain value and owns {tape_state(tensor)}; "
            "trace what comes out instead"
        )
