"""Which line of the user's program ran an op: recorded on request, for it costs time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial

from tapetensor.pictures import Place

_is_on: ContextVar[bool] = ContextVar("tapetensor_source_lines", default=False)
# Whether one tells of itself that it remembers lines.
remembers_lines = _is_on.get


@contextmanager
def source_lines() -> Iterator[None]:
    """Have tapes that begin inside remember which line of the program ran each op.

    `to_html` and `tree` show the lines. Finding a line costs about as much as a small op, so it is
    done on request only; without, ops cost what they cost.

    >>> import tapetensor as tt
    >>> with tt.source_lines():
    ...     loss = tt.ones((2,)).trace().exp().sum()
    >>> print(loss.tree(ascii=True))  # doctest: +ELLIPSIS
    tape of Tensor (), float32: 2 ops, 1 input, 12 B of results, backward time ...s
    #3 sum  () float32  4 B  ...s  /...py:...
    #2 exp  (2,) float32  8 B  ...s  /...py:...
    `- input  (2,) float32
    """
    before = _is_on.set(True)
    try:
        yield
    finally:
        _is_on.reset(before)


def place_of(kernel: Callable[..., object]) -> Place | None:
    """Return the line that ran a recorded op, if it was remembered."""
    return kernel.place if isinstance(kernel, Located) else None


class Located(partial):  # type: ignore[type-arg]  # of whatever a kernel returns
    """A kernel, as a step names it, and the line that ran it."""

    place: Place | None
