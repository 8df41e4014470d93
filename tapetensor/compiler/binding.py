"""What goes into a compiled function and what comes out: guards, inputs, state, results.

The arguments and what the function closes over are walked once, when a call is traced. The walk
replaces arrays and generators by lazy ones, and writes down, as Python source, how the next call is
recognized as one of the same kind and where its arrays are found.
"""

from __future__ import annotations

import dataclasses
import enum
import types
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from tapetensor.arrays import library_of
from tapetensor.compiler.generator import LazyGenerator
from tapetensor.compiler.lazy import LazyArray
from tapetensor.compiler.program import Kind, Node, Program
from tapetensor.compiler.refusals import trace_error
from tapetensor.compiler.results import ResultWriter, gradients_of
from tapetensor.compiler.structure import (
    holds_arrays,
    is_named_tuple,
    is_users_object,
    names_in,
)
from tapetensor.errors import ArgumentTypeError, TraceError
from tapetensor.gradients import Gradients
from tapetensor.ids import next_id
from tapetensor.nn.module import Module
from tapetensor.tape import OwnedTape
from tapetensor.tensor.base import TensorBase, wrap

# What is compared by value; everything else that is not walked is compared by identity.
_PLAIN = (bool, int, float, complex, str, bytes, type(None), np.generic, np.dtype, slice)


class Binding:
    """The inputs of one plan, found by walking the first call.

    Args:
        program: where the lazy arrays record.
    """

    def __init__(self, program: Program) -> None:
        self.program = program
        # Objects that the generated source refers to by name.
        self.names: dict[str, Any] = {
            "MISS": MISS,
            "wrap": wrap,
            "next_id": next_id,
            "gradients_of": gradients_of,
            "ndarray": np.ndarray,
        }
        self.guards: list[str] = []
        # The source expression of each input node.
        self.expressions: dict[Node, str] = {}
        # The local variables of random generators.
        self.generators: list[str] = []
        self._tensors: dict[int, tuple[Any, str, Node]] = {}
        self._direct: list[str] = []
        self._fields: dict[str, tuple[Any, str]] = {}
        self._states: list[tuple[str, dict[str, Any], dict[str, Any], str]] = []
        self._stores: list[tuple[Gradients, str, dict[int, Any]]] = []
        self._records: list[tuple[Any, str, Any, str]] = []
        self._undo: list[Callable[[], None]] = []
        self._seen: dict[int, Any] = {}
        # A numpy array that a function reads from around it is a constant, as its numbers are; a
        # tensor is not, for optimizers and modules change tensors.
        self._in_closure = False

    def bind(self, value: Any, prefix: str = "k") -> str:
        """Return a name by which the generated source can refer to `value`."""
        name = f"{prefix}{len(self.names)}"
        self.names[name] = value
        return name

    def restore(self) -> None:
        """Put back all that the walk replaced."""
        while self._undo:
            self._undo.pop()()

    def walk(self, value: Any, expression: str, where: str) -> Any:
        """Return `value` with lazy arrays in place of arrays, and record how to recognize it."""
        if isinstance(value, TensorBase):
            return self._walk_tensor(value, expression, where)
        if isinstance(value, np.ndarray) and not self._in_closure:
            return self._input(value, self._local(expression), where)
        if isinstance(value, np.random.Generator):
            return self._walk_generator(value, expression, where)
        if isinstance(value, Gradients):
            return self._walk_gradients(value, expression, where)
        if value.__class__ in (tuple, list) or is_named_tuple(value):
            local = self._local(expression)
            self._guard(f"{local}.__class__ is not {self.bind(value.__class__)}")
            self._guard(f"len({local}) != {len(value)}")
            items = [
                self.walk(item, f"{local}[{position}]", f"{where}[{position}]")
                for position, item in enumerate(value)
            ]
            return value.__class__(*items) if is_named_tuple(value) else value.__class__(items)
        if value.__class__ is dict:
            local = self._local(expression)
            keys = self.bind(tuple(value))
            self._guard(f"{local}.__class__ is not dict or tuple({local}) != {keys}")
            return {
                key: self.walk(item, f"{local}[{self.bind(key)}]", f"{where}[{key!r}]")
                for key, item in value.items()
            }
        if isinstance(value, _PLAIN) and not isinstance(value, enum.Enum):
            known, kind = self.bind(value), self.bind(value.__class__)
            local = self._local(expression)
            # A NaN is recognized by being no number.
            differs = f"{local} != {known}" if value == value else f"{local} == {local}"
            self._guard(f"{local}.__class__ is not {kind} or {differs}")
            return value
        is_record = dataclasses.is_dataclass(value) and not isinstance(value, type | Module)
        if is_record:
            return self._walk_record(value, expression, where)
        self._guard(f"{expression} is not {self.bind(value)}")
        if isinstance(value, Module) or is_users_object(value):
            self._walk_object(value, where)
        return value

    def walk_function(self, function: Any) -> None:
        """Walk what a function reads from around itself: closure cells, globals, its `self`."""
        self._in_closure = True
        self._walk_function(function)
        self._in_closure = False

    def _walk_function(self, function: Any) -> None:
        if id(function) in self._seen:
            return
        self._seen[id(function)] = function
        if isinstance(function, types.MethodType):
            self.walk(function.__self__, self.bind(function.__self__), "self")
            function = function.__func__
        if not isinstance(function, types.FunctionType):
            return
        code = function.__code__
        for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=True):
            self._walk_captured(cell.cell_contents, f"{self.bind(cell)}.cell_contents", name)
        scope = function.__globals__
        for name in names_in(code):
            if name in scope:
                self._walk_captured(scope[name], f"{self.bind(scope)}[{name!r}]", name)

    def _walk_captured(self, value: Any, expression: str, where: str) -> None:
        if isinstance(value, types.FunctionType | types.MethodType):
            if not value.__module__.startswith("tapetensor."):
                self._guard(f"{expression} is not {self.bind(value)}")
                self._walk_function(value)
        elif isinstance(value, (*_PLAIN, np.ndarray)) or holds_arrays(value):
            self.walk(value, expression, where)

    def _walk_tensor(self, tensor: Any, expression: str, where: str) -> Any:
        known = self._tensors.get(id(tensor))
        if known is not None:
            self._guard(f"{expression} is not {known[1]}")
            return tensor
        if isinstance(tensor._tape, OwnedTape):
            raise trace_error(
                f"{where} owns a tape, which cannot go into a compiled function; "
                "pass the plain tensor and write x.trace() inside"
            )
        local = self._local(expression)
        if tensor._tape is not None:
            # Spent: every use of it is an error, the same as in eager mode.
            self._guard("True")
            return tensor
        if expression not in self._fields:
            cls = self.bind(tensor.__class__)
            self._guard(f"{local}.__class__ is not {cls} or {local}._tape is not None")
            self._direct.append(local)
        data = tensor._data
        library = library_of(data)
        if library not in ("numpy", "tapetensor"):
            raise ArgumentTypeError(
                f"compile: {where} is over an array of {library}, and a plan runs on numpy's; "
                "call the function without compile, or move everything with to(numpy)"
            )
        lazy = self._input(data, self._local(f"{local}._data"), where)
        self._tensors[id(tensor)] = tensor, local, lazy.node
        tensor._data = lazy
        self._undo.append(lambda: setattr(tensor, "_data", data))
        return tensor

    def _walk_generator(self, rng: np.random.Generator, expression: str, where: str) -> Any:
        local = self._local(expression)
        self._guard(f"not isinstance({local}, {self.bind(np.random.Generator)})")
        node = self.program.add(Kind.INPUT, None, (), (), np.dtype(object), label=where)
        self.expressions[node] = local
        self.generators.append(local)
        return LazyGenerator(self.program, node)

    def _walk_gradients(self, store: Gradients, expression: str, where: str) -> Gradients:
        local = self._local(expression)
        arrays = store._arrays
        keys = self.bind(tuple(arrays))
        self._guard(f"{local}.__class__ is not {self.bind(Gradients)}")
        self._guard(f"tuple({local}._arrays) != {keys} or {local}._leaky != {store._leaky}")
        self._guard(f"{local}._leafs != {self.bind(store._leafs)}")
        lazy: dict[int, Any] = {
            key: self._input(array, self._local(f"{local}._arrays[{key}]"), f"{where}[{key}]")
            for key, array in arrays.items()
        }
        store._arrays = lazy
        self._stores.append((store, local, dict(store._arrays)))
        self._undo.append(lambda: setattr(store, "_arrays", arrays))
        return store

    def _walk_record(self, value: Any, expression: str, where: str) -> Any:
        """Walk a dataclass, another instance of which may come with the next call."""
        local = self._local(expression)
        if id(value) in self._seen:
            self._guard(f"{local} is not {self._seen[id(value)]}")
            return value
        self._seen[id(value)] = local
        self._guard(f"{local}.__class__ is not {self.bind(value.__class__)}")
        for name in [field.name for field in dataclasses.fields(value)]:
            item = getattr(value, name)
            replaced = self.walk(item, f"{local}.{name}", f"{where}.{name}")
            object.__setattr__(value, name, replaced)
            self._records.append((value, name, replaced, where))
            self._undo.append(partial(object.__setattr__, value, name, item))
        return value

    def _walk_object(self, value: Any, where: str) -> None:
        if id(value) in self._seen:
            return
        self._seen[id(value)] = value
        fields = getattr(value, "__dict__", None)
        if not isinstance(fields, dict):
            return
        held = self.bind(fields, "d")
        before = dict(fields)
        self._guard(f"len({held}) != {len(fields)}")
        for name, item in before.items():
            expression = f"{held}[{name!r}]"
            if isinstance(item, TensorBase):
                if id(item) not in self._tensors and item._tape is None:
                    local = self._local(expression)
                    self._fields[local] = item, held
                    self._walk_tensor(item, local, f"{where}.{name}")
                else:
                    self._walk_tensor(item, expression, f"{where}.{name}")
                continue
            replaced = self.walk(item, expression, f"{where}.{name}")
            if replaced is not item and holds_arrays(item):
                fields[name] = replaced
        after = dict(fields)
        self._states.append((held, fields, after, where))

        def undo() -> None:
            fields.clear()
            fields.update(before)

        self._undo.append(undo)

    def _input(self, array: Any, local: str, label: str) -> LazyArray:
        dtype = self.bind(array.dtype)
        compare = "is not" if array.dtype.isbuiltin == 1 else "!="
        if array.shape and array.__class__ is np.ndarray:
            # Another library's array looks the same. In place of a 0-d one there may be a scalar.
            self._guard(f"{local}.__class__ is not {self.bind(np.ndarray)}")
        self._guard(
            f"{local}.shape != {array.shape} or {local}.dtype {compare} {dtype} "
            f"or {local}.strides != {array.strides}"
        )
        node = self.program.add(
            Kind.INPUT, None, (), array.shape, array.dtype, detail=array.strides, label=label
        )
        self.expressions[node] = local
        return LazyArray(self.program, node)

    def _guard(self, condition: str) -> None:
        self.guards.append(f"if {condition}: return MISS")

    def _local(self, expression: str) -> str:
        """Return a local variable of the generated source that holds `expression`."""
        if expression.isidentifier():
            return expression
        local = f"l{len(self.guards)}"
        self.guards.append(f"{local} = {expression}")
        return local

    # Results.

    def finish(self, result: Any) -> tuple[list[Node], list[str], str, list[str]]:
        """Return the nodes that leave, the lines that store state, and the result's expression.

        Called after the trace, before `restore`.
        """
        stores: list[str] = []
        ids = {tensor._id: f"{local}._id" for tensor, local, _ in self._tensors.values()}
        known = {key: local for key, (_, local, _) in self._tensors.items()}
        writer = ResultWriter(self.bind, known, ids)
        replaced: set[int] = set()
        for held, fields, after, where in self._states:
            for name in fields.keys() | after.keys():
                value, before = fields.get(name), after.get(name)
                if value is before:
                    continue
                if not (isinstance(value, TensorBase) and isinstance(before, TensorBase)):
                    raise _side_effect(f"{where}.{name}")
                replaced.add(id(before))
                stores.append(f"{held}[{name!r}] = {writer.write(value)}")
        for record, name, before, where in self._records:
            if getattr(record, name, None) is not before:
                raise _side_effect(f"{where}.{name}")
        for local, (tensor, _) in self._fields.items():
            cls = self.bind(tensor.__class__)
            if id(tensor) in replaced:
                self._after_local(local, f"{local}.__class__ is not {cls}")
            else:
                self._after_local(local, f"{local} is not {self.bind(tensor)}")
        for tensor, local, node in self._tensors.values():
            data = tensor._data
            if isinstance(data, LazyArray) and data.node is node:
                continue
            if isinstance(data, LazyArray) and _is_updated(data.node):
                continue
            stores.append(f"{local}._data = {writer.array(data)}")
        for store, local, before_arrays in self._stores:
            same = store._arrays.keys() == before_arrays.keys() and all(
                store._arrays[key] is before_arrays[key] for key in before_arrays
            )
            if not same:
                stores.append(f"{local}._arrays = {writer.entries(store)}")
        if len(self._direct) > 1:
            distinct = ", ".join([f"id({local})" for local in self._direct])
            self._guard(f"len({{{distinct}}}) != {len(self._direct)}")
        returned = writer.write(result)
        return writer.leaving, stores, returned, writer.made

    def _after_local(self, local: str, condition: str) -> None:
        for position, line in enumerate(self.guards):
            if line.startswith(f"{local} = "):
                self.guards.insert(position + 1, f"if {condition}: return MISS")
                return


class _Miss:
    """The answer of a plan to a call that is not its own."""


MISS = _Miss()


def _side_effect(name: str) -> TraceError:
    return trace_error(
        f"{name} is changed, which a replay would not repeat; return the value and store it outside"
    )


def _is_updated(node: Node) -> bool:
    return node.kind is Kind.PART and node.args[0].kind is Kind.UPDATE
