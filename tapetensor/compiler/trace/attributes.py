"""A walk through the attributes of objects."""

from __future__ import annotations

import types
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

from tapetensor.checkpointing import places
from tapetensor.compiler.trace.changes import Held
from tapetensor.compiler.trace.guards import named
from tapetensor.compiler.trace.inputs import Inputs
from tapetensor.compiler.trace.opaque import never_the_same
from tapetensor.compiler.trace.program import Program
from tapetensor.compiler.trace.reading import Reading, can_tell
from tapetensor.compiler.trace.refusals import trace_error
from tapetensor.tensor.base import TensorBase

# What `functools.singledispatch` has found before it does not look for again: that is no state.
_FOUND_BY_CLASS = "_clear_cache"


class _Attribute(NamedTuple):
    """An attribute that is there.

    Attributes:
        name: its name.
        source: its source.
        where: what the user calls the object.
        watched: the attributes of the object, in its dict or in its slots.
        put: sets it.
        lasts: whether the next call has the same dict of attributes.
    """

    name: str
    source: str
    where: str
    watched: Held
    put: Callable[[Any], None]
    lasts: bool


class Attributes(Inputs):
    """Walks attributes.

    Args:
        program: where the tracers put what they capture.
        function: what is captured.
    """

    def __init__(self, program: Program, function: Any) -> None:
        super().__init__(program, function)
        # Which of them the function reads.
        self.reading = Reading()
        # What no replay can repeat, by the attribute that it is: code that names that is refused.
        self.unrepeatable: dict[str, str] = {}

    def walk_attributes(self, value: Any, local: str, where: str, *, lasts: bool) -> None:
        """Walk the attributes of an object, in its dict and in its slots.

        Args:
            value: the object.
            local: its source.
            where: what the user calls it.
            lasts: whether the next call has the same object.
        """
        slots, fields = places.slots_of(value), places.attributes_of(value)
        found: list[_Attribute] = []
        are_left = can_tell(value)
        if slots:
            # Before anything is replaced: what comes next may be refused.
            watched = self.hold(f"{where}.", places.Slots(value), dict)
            for name, slot in slots.items():
                if name not in watched.expected:
                    self.guard(f"is_set({self.bind(slot)}, {local})")
                    continue
                source, put = f"{self.bind(slot.__get__)}({local})", partial(slot.__set__, value)
                found.append(_Attribute(name, source, where, watched, put, False))
        if fields is not None:
            watched = self.hold(
                f"{where}.", places.Attributes(value), _values_of, _is_or_are_tensors
            )
            source = f"{local}.__dict__"
            held = self.bind(fields) if lasts else self.local(source)
            moved = f" or {source} is not {held}" if lasts else ""
            self.guard((f"len({held}) != {len(fields)}" if fields else held) + moved)
            unread = [
                name for name in fields if are_left and self.reading.leaves(value, fields[name])
            ]
            if unread:
                # Without one of them the name may be that of an attribute of the class.
                self.guard(f"not {self.bind(frozenset(unread))} <= {held}.keys()")
            self.states.append((held, fields, watched.expected))
            for name in watched.expected:
                if name != _FOUND_BY_CLASS or not isinstance(value, types.FunctionType):
                    source, put = f"{held}[{name!r}]", partial(fields.__setitem__, name)
                    found.append(_Attribute(name, source, where, watched, put, lasts))
        for one in found:
            if are_left and self.reading.leaves(value, one.watched.expected[one.name]):
                walk = partial(self.walk_read, one, self.is_around)
                self.reading.leave(value, one.name, walk)
            else:
                self._walk_attribute(one)

    def walk_read(self, attribute: Any, is_around: bool, *, is_named: bool) -> None:
        """Walk an attribute that the function reads.

        Args:
            attribute: the attribute.
            is_around: whether its object counts as being around the function.
            is_named: whether it is looked up by its name.
        """
        was_around, self.is_around = self.is_around, is_around
        self._walk_attribute(attribute, is_named=is_named)
        self.is_around = was_around

    def _walk_attribute(self, attribute: _Attribute, *, is_named: bool = False) -> None:
        """Walk an attribute; what nobody can repeat may stand there as long as no code names it."""
        name, source, where, watched, put, lasts = attribute
        value, called = watched.expected[name], f"{where}.{name}"
        is_new = isinstance(value, TensorBase) and id(value) not in self.seen
        is_kept = lasts and is_new and value.tape is None
        # Who sets one tensor of a model sets others, too, so that they vary together.
        if is_kept and tensors_of(called) not in self.varying:
            self.where = named(called)
            field = self.local(source)
            self.fields[field] = value
            self.walk_tensor(value, field, called)
            return
        told = never_the_same(value)
        if not told:
            watched.expected[name] = self.walk(value, source, called, is_put=True)
            put(watched.expected[name])
        elif is_named:
            raise trace_error(f"{called} {told}")
        else:
            self.guard(f"{source} is not {self.bind(value)}")
            self.unrepeatable[name] = f"{called} {told}"


def tensors_of(where: str) -> str:
    """Return what the tensors are called that the object where some is found leads to."""
    return named(f"a tensor of {where.partition('.')[0]}")


def _values_of(held: tuple[Any, dict[str, Any]]) -> dict[str, Any]:
    """Return what a dict of attributes held."""
    return {**held[1]}


def _is_or_are_tensors(one: Any, other: Any) -> bool:
    """Tell whether two attributes are one, or tensors, of which a plan stores the new one."""
    return one is other or (isinstance(one, TensorBase) and isinstance(other, TensorBase))
