"""Values that a function reads from around itself: closure cells, globals, class attributes.

They are found from code: that of the function holds the names that it looks up, as does that of the
functions that it names, and of the methods of the objects that come in.
"""

from __future__ import annotations

import dis
import functools
import inspect
import sys
import types
from collections.abc import Iterator
from enum import EnumType
from typing import TYPE_CHECKING, Any

from tapetensor.compiler.trace.structure import is_plain, is_users, is_users_object, may_hold_arrays

if TYPE_CHECKING:
    from tapetensor.compiler.trace.binding import Binding

_GLOBAL_OPS = frozenset({"LOAD_GLOBAL", "LOAD_NAME", "STORE_GLOBAL", "STORE_NAME"})
FUNCTIONS = (types.FunctionType, types.MethodType, functools.partial)


class Closures:
    """Walks what functions close over.

    Args:
        binding: what walks the values.
    """

    def __init__(self, binding: Binding) -> None:
        self._binding = binding
        self._seen: dict[Any, Any] = {}
        # Attributes that the functions found so far name, and the classes that may have them.
        self._attributes: set[str] = {"__call__", "__init__", "forward"}
        self._classes: dict[type, None] = {}
        self._namespaces: dict[int, tuple[Any, str, str]] = {}

    def add_class(self, cls: type) -> None:
        """Note that an object of a class comes in: its methods may run."""
        self._classes.update(dict.fromkeys([one for one in cls.__mro__ if is_users(one)]))

    def walk_function(self, function: Any, expression: str) -> None:
        """Walk what a function closes over, and what it is bound to."""
        binding = self._binding
        inner = inspect.unwrap(function)
        if inner is not function:
            function, expression = inner, binding.bind(inner)
        if id(function) in self._seen:
            return
        self._seen[id(function)] = function
        if isinstance(function, functools.partial):
            self._walk_partial(function, expression)
        elif isinstance(function, types.MethodType):
            binding.walk(function.__self__, f"{expression}.__self__", "self")
            self.walk_function(function.__func__, f"{expression}.__func__")
        elif isinstance(function, types.FunctionType):
            self._walk_code(function)
        elif not isinstance(function, types.BuiltinFunctionType):
            # It is an object of the user's, or a module.
            binding.walk(function, expression, type(function).__name__)

    def walk_methods(self) -> None:
        """Walk the methods and attributes of classes that the functions name, until none is new."""
        count = -1
        while count != len(self._seen):
            count = len(self._seen)
            for cls in list(self._classes):
                self._walk_namespace(cls, self._binding.bind(cls), cls.__name__)
            for owner, expression, where in list(self._namespaces.values()):
                self._walk_namespace(owner, expression, where)

    def _walk_partial(self, function: functools.partial[Any], expression: str) -> None:
        binding = self._binding
        self.walk_function(function.func, f"{expression}.func")
        args = binding.walk(function.args, f"{expression}.args", "argument")
        keywords = {
            name: binding.walk(value, f"{expression}.keywords[{name!r}]", f"argument {name}")
            for name, value in function.keywords.items()
        }
        # The stubs of partial functions lack the methods by which these are pickled.
        opened: Any = function
        before = opened.__reduce__()[2]
        opened.__setstate__((function.func, args, keywords, {}))
        binding.undo.append(lambda: opened.__setstate__(before))

    def _walk_code(self, function: types.FunctionType) -> None:
        binding, code = self._binding, function.__code__
        for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=True):
            if id(cell) in self._seen or not _is_filled(cell):
                continue
            self._seen[id(cell)] = cell
            replaced = self._walk_value(
                cell.cell_contents, f"{binding.bind(cell)}.cell_contents", name
            )
            binding.replace_attribute(cell, "cell_contents", replaced, name)
        self._walk_defaults(function)
        scope = function.__globals__
        names, attributes = _names_in(code)
        for name in names:
            key = (id(scope), name)
            if name not in scope or key in self._seen:
                continue
            self._seen[key] = scope
            replaced = self._walk_value(scope[name], f"{binding.bind(scope)}[{name!r}]", name)
            binding.replace_item(scope, name, replaced)
        self._attributes |= attributes

    def _walk_defaults(self, function: types.FunctionType) -> None:
        """Walk the default values of the arguments; plain values cannot change."""
        binding, name = self._binding, function.__name__
        by_place, by_name = function.__defaults__ or (), function.__kwdefaults__ or {}
        if not all(map(is_plain, by_place)):
            expression = f"{binding.bind(function)}.__defaults__"
            walked = binding.walk(by_place, expression, f"the default of {name}")
            binding.replace_attribute(function, "__defaults__", walked, f"the defaults of {name}")
        if not all(map(is_plain, by_name.values())):
            expression = f"{binding.bind(function)}.__kwdefaults__"
            binding.walk(by_name, expression, f"the default of {name}")

    def _walk_value(self, value: Any, expression: str, where: str) -> Any:
        """Walk a value that a function closes over; return what takes its place."""
        binding = self._binding
        if isinstance(value, types.ModuleType | type):
            if is_users(value) and not issubclass(type(value), EnumType):
                self._namespaces[id(value)] = value, expression, where
        elif isinstance(value, FUNCTIONS) or hasattr(value, "__wrapped__"):
            if isinstance(value, functools.partial) or is_users(value):
                binding.guard(f"{expression} is not {binding.bind(value)}")
                self.walk_function(value, expression)
        elif (
            isinstance(value, Iterator)
            or is_plain(value)
            or may_hold_arrays(value)
            or is_users_object(value)
        ):
            return binding.walk(value, expression, where)
        return value

    def _walk_namespace(self, owner: Any, expression: str, where: str) -> None:
        """Walk the attributes of a class or a module of the user's that some function names."""
        for name in self._attributes & vars(owner).keys():
            key = (id(owner), name)
            if key in self._seen:
                continue
            self._seen[key] = owner
            held = value = vars(owner)[name]
            if isinstance(value, property):
                value = value.fget
            elif isinstance(value, staticmethod | classmethod):
                value = value.__func__
            attribute = f"{expression}.{name}"
            if isinstance(value, types.FunctionType) and isinstance(owner, type):
                namespace, known = self._binding.bind(vars(owner)), self._binding.bind(held)
                self._binding.guard(f"{namespace}[{name!r}] is not {known}")
                self.walk_function(value, attribute)
            elif value is held:
                replaced = self._walk_value(value, attribute, f"{where}.{name}")
                self._binding.replace_attribute(owner, name, replaced, f"{where}.{name}")


def _is_filled(cell: types.CellType) -> bool:
    try:
        _ = cell.cell_contents
    except ValueError:
        return False
    return True


def _names_in(code: types.CodeType) -> tuple[list[str], set[str]]:
    """Return the globals and the attributes that a function, and the functions in it, look up."""
    names = [one.argval for one in dis.get_instructions(code) if one.opname in _GLOBAL_OPS]
    attributes = set(code.co_names).difference(names)
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            inner, inner_attributes = _names_in(constant)
            names += inner
            attributes |= inner_attributes
    return [sys.intern(name) for name in dict.fromkeys(names)], attributes
