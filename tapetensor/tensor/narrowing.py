"""The question for a tape, as a function that narrows types."""

from __future__ import annotations

from typing_extensions import TypeIs

from tapetensor.tape import NoneTape, OwnedTape
from tapetensor.tensor.base import check_tensor
from tapetensor.tensor.tensor import Tensor
from tapetensor.typing import D, S


def owns_tape(
    x: Tensor[S, NoneTape, D] | Tensor[S, OwnedTape, D],
) -> TypeIs[Tensor[S, OwnedTape, D]]:
    """Tell whether a tensor owns a tape, so that checkers know which of two types it has.

    What the property `Tensor.owns_tape` says, which no checker narrows by. In a `forward` with an
    overload for each tape it parts the two: behind ``if tt.owns_tape(x):`` mypy, pyright, pyrefly
    and ty take `x` for the traced tensor, and after it for the plain one.

    Args:
        x: a tensor, plain or traced.

    Raises:
        ArgumentTypeError: if `x` is not a tensor.

    >>> import tapetensor as tt
    >>> x = tt.ones((2,))
    >>> tt.owns_tape(x), tt.owns_tape(x.trace())
    (False, True)
    """
    check_tensor("owns_tape", "x", x)
    return x.owns_tape
