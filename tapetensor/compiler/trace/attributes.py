"""A walk through the attributes of objects."""

from __future__ import annotations

import types
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

from tapetensor.compiler.trace.changes import Held
from tapetensor.compiler.trace.inputs import Inputs
from tapetensor.compiler.trace.opaque import never_the_same
from tapetensor.compiler.trace.program import Program
from tapetensor.compiler.trace.reading import Reading, can_tell
from tapetensor.compiler.trace.refusals import trace_error
from tapetensor.compiler.trace.structure import (
    dict_of,
    fill_slots,
    in_dict,
    in_slots,
    refill_fields,
    slots_of,
)
from tapetensor.tensor.base import TensorBase

# What `functools.singledispatch` has found before it does not look for again: that is no state.
_FOUND_BY_CLASS = "_clear_cache"


class _Fields(NamedTuple):
    """The attributes of an object that are in its dict.

    Attributes:
        where: what the user calls the object.
        held: the source of the dict.
        watched: what was in it.
        now: the dict.
        after: what was in it, with tracers in place of arrays.
        lasts: whether the next call has the same object.
        is_around: whether it counts as being around the function.
    """

    where: str
    held: str
    watched: Held
    now: dict[str, Any]
    after: dict[str, Any]
    lasts: bool
    is_around: bool


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
        slots, fields = slots_of(value), dict_of(value)
        if slots:
            # Before anything is replaced: what comes next may be refused.
            read, write = partial(in_slots, value), partial(fill_slots, value)
            watched = self.hold(f"{where}.", read, write, dict)
            for name, slot in slots.items():
                if name not in watched.before:
                    self.guard(f"is_set({self.bind(slot)}, {local})")
                    continue
                item, source = watched.before[name], f"{self.bind(slot.__get__)}({local})"
                slot.__set__(value, self._walk_attribute(name, item, source, where))
            watched.settle()
        if fields is not None:
            read, write = partial(in_dict, value), partial(refill_fields, value, fields)
            watched = self.hold(f"{where}.", read, write, dict, _is_or_are_tensors)
            source = f"{local}.__dict__"
            held = self.bind(fields, "d") if lasts else self.local(source)
            moved = f" or {source} is not {held}" if lasts else ""
            self.guard(f"len({held}) != {len(fields)}{moved}")
            is_told = can_tell(value)
            after = {**watched.before}
            self.states.append((held, fields, after))
            own = _Fields(where, held, watched, fields, after, lasts, self.is_around)
            for name, item in watched.before.items():
                if name == _FOUND_BY_CLASS and isinstance(value, types.FunctionType):
                    continue
                walk = partial(self._walk_field, own, name)
                if is_told and self.reading.leaves(value, item):
                    self.reading.leave(value, name, held, partial(self.walk_read, walk))
                else:
                    walk()

    def _walk_field(self, own: _Fields, name: str, *, is_named: bool = False) -> None:
        """Walk an attribute in a dict; if a function names it, it is read."""
        was_around, self.is_around = self.is_around, own.is_around
        item, expression = own.watched.before[name], f"{own.held}[{name!r}]"
        is_new = isinstance(item, TensorBase) and id(item) not in self.tensors
        if own.lasts and is_new and item.tape is None:
            field = self.local(expression)
            self.fields[field] = item
            self.walk_tensor(item, field, f"{own.where}.{name}")
        else:
            walked = self._walk_attribute(name, item, expression, own.where, is_named=is_named)
            own.now[name] = own.after[name] = own.watched.expected[name] = walked
        self.is_around = was_around

    def walk_read(self, walk: Callable[..., None], *, is_named: bool) -> None:
        """Walk an attribute that the function reads; see `Binding`."""
        walk(is_named=is_named)

    def _walk_attribute(
        self, name: str, value: Any, expression: str, where: str, *, is_named: bool = False
    ) -> Any:
        """Walk an attribute; what nobody can repeat may stand there as long as no code names it."""
        told = never_the_same(value)
        if not told:
            return self.walk(value, expression, f"{where}.{name}")
        if is_named:
            raise trace_error(f"{where}.{name} {told}")
        self.guard(f"{expression} is not {self.bind(value)}")
        self.unrepeatable[name] = f"{where}.{name} {told}"
        return value


def _is_or_are_tensors(one: Any, other: Any) -> bool:
    """Tell whether two attributes are one, or tensors, of which a plan stores the new one."""
    return one is other or (isinstance(one, TensorBase) and isinstance(other, TensorBase))
