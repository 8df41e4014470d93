"""What a function reaches beside its arguments, so that it can be run as it was run before."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from tapetensor.arrays.array import Array
from tapetensor.checkpointing.places import Place
from tapetensor.checkpointing.reach import Reach
from tapetensor.errors import ArgumentValueError


class Surroundings:
    """What can be found from a function: tensors, attributes, containers, globals, generators.

    As they are now: `as_before` brings them back for a while. No array of a tensor is copied, for
    one that somebody holds is not written to; other arrays of numpy's are, if they are small.

    Args:
        f: the function, a method or a module.
        others: generators and tensors to hold beside those that are found.
    """

    __slots__ = ("_held", "_large", "_places", "_tensors")

    def __init__(self, f: Callable[..., Any], *others: object) -> None:
        found = Reach([f, *others])
        self._places, self._large, self._tensors = found.places, found.large, found.tensors
        self._held = _read(found.places)

    @property
    def arrays(self) -> list[Array]:
        """The arrays of all tensors that were found, as they are now."""
        return [tensor._array for tensor in self._tensors]

    @contextmanager
    def as_before(self) -> Iterator[None]:
        """Bring back what there was; at the end, what there is now.

        Raises:
            ArgumentValueError: if what runs meanwhile writes to a large array.
        """
        now, sums = _read(self._places), [one.read() for one in self._large]
        try:
            _write(self._held)
            yield
        finally:
            _write(now)
        if sums != [one.read() for one in self._large]:
            raise ArgumentValueError(
                "checkpoint: f writes to a numpy array of more than a MiB, and has done so once "
                "more in the backward pass; make a new array, or run f without checkpoint"
            )


def _read(places: list[Place]) -> list[tuple[Place, Any]]:
    return [(place, place.read()) for place in places]


def _write(held: list[tuple[Place, Any]]) -> None:
    """Write to every place, also if one of them, an object of a user's class, refuses."""
    failures = []
    for place, value in held:
        try:
            place.write(value)
        except Exception as error:
            failures.append(error)
    if failures:
        raise failures[0]
