"""A walk through the names of classes and modules that code looks up."""

from __future__ import annotations

import sys
import types
from collections.abc import Collection, Mapping
from functools import partial, partialmethod
from typing import Any

from tapetensor.checkpointing.places import NOTHING, Name
from tapetensor.compiler.trace.callables import functions_in, wrapped_in
from tapetensor.compiler.trace.changes import Accessors, Held
from tapetensor.compiler.trace.codes import SETTINGS, is_of_a_package
from tapetensor.compiler.trace.opaque import DIFFERS, is_cache
from tapetensor.compiler.trace.program import Program
from tapetensor.compiler.trace.reading import is_teller
from tapetensor.compiler.trace.refusals import trace_error
from tapetensor.compiler.trace.structure import is_read_by_python, is_users
from tapetensor.compiler.trace.telling import BY_ID
from tapetensor.compiler.trace.walking import Walker

# What Python itself puts there, and keeps.
_PYTHONS = {
    "__abstractmethods__", "__annotations__", "__annotations_cache__", "__builtins__",
    "__slotnames__", "__warningregistry__", "_abc_impl",
}  # fmt: skip


class Namespaces(Walker):
    """Walks what classes and modules have by the names that code looks up.

    Args:
        program: where the tracers put what they capture.
        function: what is captured.
    """

    def __init__(self, program: Program, function: Any) -> None:
        super().__init__(program, function)
        # What the names of each module and class stand for, by the address of it.
        self.watched: dict[int, Held] = {}
        # A view of the names of each class that the source refers to, by the address of it.
        self._views: dict[int, Mapping[str, Any]] = {}

    def _sought_in(self, owner: Any) -> set[str]:
        """Return the names that code may look up in a class or a module."""
        names = {name for name, one in vars(owner).items() if not is_teller(one)}
        if not is_users(owner):
            return self.attributes & names
        is_handed = isinstance(owner, type) or id(owner) in self.handed
        is_asked = isinstance(owner, type) and is_read_by_python(owner)
        if not (is_asked or (self.makes_names and is_handed)) or is_of_a_package(owner):
            return self.attributes & names
        plain = {one for one in names - _PYTHONS if not one.startswith("__")}
        return plain | (self.attributes & names)

    def names_of(self, owner: Any) -> str:
        """Return the source of the names of a class or of a module's dict."""
        # Every read of those of a class makes another view.
        is_class = isinstance(owner, type)
        return self.bind(self._views.setdefault(id(owner), vars(owner)) if is_class else owner)

    def walk_name(self, owner: Any, name: str, where: str) -> None:
        """Walk what a class or the dict of a module of the user's has by a name."""
        held = vars(owner) if isinstance(owner, type) else owner
        value, expression = held[name], f"{self.names_of(owner)}[{name!r}]"
        replaced = self.walk_value(
            value, expression, f"{where}{name}", is_put=isinstance(held, dict)
        )
        # In a class nothing is replaced.
        if isinstance(held, dict) and replaced is not value:
            held[name] = self.watched[id(held)].expected[name] = replaced
        elif id(value) in BY_ID:
            known = value.__name__
            raise trace_error(f"{where}{name} is {known} under another name; write {known} there")

    def watch_namespace(self, owner: Any, where: str) -> None:
        """Watch all names of a class or of a module's dict; put back what the function changes."""
        if id(owner) in self.watched:
            return
        held: Any = vars(owner) if isinstance(owner, type) else owner

        def read(known: Collection[str] = _PYTHONS) -> dict[str, Any]:
            return {
                name: one for name, one in held.items()
                if name not in known and not isinstance(one, types.ModuleType)
                and not is_teller(one)
            }  # fmt: skip

        def write(originals: dict[str, Any]) -> None:
            others = dict.fromkeys(read(_PYTHONS | originals.keys()), NOTHING)
            for name, one in (others | originals).items():
                if held.get(name, NOTHING) is not one:
                    Name(owner, name).write(one)

        self.watched[id(owner)] = self.hold(where, Accessors(read, write), dict)

    def walk_namespaces(self) -> None:
        """Walk what the code that has run names of modules and classes, and what is found by it."""
        count = -1
        while count != len(self.walked):
            count = len(self.walked)
            for cls in list(self.classes):
                self._walk_namespace(cls, cls.__name__)
            for owner, where in list(self.modules.values()):
                self._walk_namespace(owner, where)
        self.walk_parameters()

    def _walk_namespace(self, owner: Any, where: str) -> None:
        """Walk the attributes of a class or a module that some function names."""
        held = vars(owner)
        space = owner if isinstance(owner, type) else held
        if is_users(owner):
            self.watch_namespace(space, f"{where}.")
        for name in self._sought_in(owner):
            if not self.is_new(space, name):
                continue
            value, expression = held[name], f"{self.names_of(space)}[{name!r}]"
            if isinstance(owner, type) and (
                isinstance(value, types.GetSetDescriptorType | types.MemberDescriptorType)
                or (
                    not is_cache(value)
                    and not isinstance(value, types.MethodType | partial)
                    and next(functions_in(value), None) is not None
                )
            ):
                self.guard_member(owner, name)
                for one in wrapped_in(value):
                    if isinstance(one, types.FunctionType) and vars(one):
                        self.add_function(one, self.bind(one), f"{where}.{name}")
                    if isinstance(one, partial | partialmethod):
                        source = self.bind(one)
                        self.walk(one.args, f"{source}.args", f"an argument of {where}.{name}")
                        self.walk(one.keywords, f"{source}.keywords", f"{where}.{name}")
            elif is_users(owner):
                self.walk_name(space, name, f"{where}.")
            elif name in SETTINGS.get(owner, ()):
                self.unrepeatable[name] = f"{owner.__name__}.{name} {DIFFERS}"
            elif owner is sys and name in ("stderr", "stdout"):
                # What is told there is no part of a result.
                continue
            elif callable(value) and not isinstance(value, types.FunctionType | type):
                self.note_lookup(value)
                self.guard(f"{expression} is not {self.bind(value)}")
            else:
                # Others may put something else there.
                self.walk_value(value, expression, f"{where}.{name}")

    def guard_member(self, owner: type, name: str) -> None:
        """Guard that a class has the very same function, property or the like."""
        if self.is_new(owner, f"{name} of a class"):
            known = self.bind(vars(owner)[name])
            self.guard(f"{self.names_of(owner)}[{name!r}] is not {known}")
