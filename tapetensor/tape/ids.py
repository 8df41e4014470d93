"""Identities: one process-wide counter for tensors, which also stamps the time of an op."""

from __future__ import annotations

from itertools import count
from typing import Self, final

# `count().__next__` is atomic under the GIL, so ids are unique across threads.
next_id = count(1).__next__


@final
class TensorId(int):
    """The identity of a tensor, by which `Gradients` files what flowed to it.

    A number like any other in the memory of the library, so that ops pay nothing for it; for
    checkers, and for those who ask ``x.id``, a type of its own.

    >>> import tapetensor as tt
    >>> x = tt.ones((2,))
    >>> x.trace().id == x.id, isinstance(x.id, tt.TensorId)
    (True, True)
    """

    __slots__ = ()

    @classmethod
    def new(cls) -> Self:
        """Return an id that no tensor has, nor ever will: for a value kept beside the tensors'.

        >>> import tapetensor as tt
        >>> tt.TensorId.new() == tt.TensorId.new()
        False
        """
        return cls(next_id())
