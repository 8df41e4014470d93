"""The inputs of a compiled function: its guards, its arrays and its state.

The arguments and what the function closes over are walked once, when a call is captured. The walk
puts tracers and generators into the place of real ones, and writes down, as Python source, how
the next call is recognized as one of the same kind and where its arrays are found.
"""

from __future__ import annotations

import copy
import math
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any

import numpy as np

from tapetensor.arrays.libraries import library_of
from tapetensor.arrays.stand_ins import Recorded
from tapetensor.compiler.trace.changes import Watch, attributes, global_randomness, parts
from tapetensor.compiler.trace.closures import FUNCTIONS, Closures
from tapetensor.compiler.trace.generator import GeneratorTracer
from tapetensor.compiler.trace.guards import MISS, GuardWriter, spelling
from tapetensor.compiler.trace.node import Kind, Node
from tapetensor.compiler.trace.number import NumberTracer
from tapetensor.compiler.trace.program import Program
from tapetensor.compiler.trace.refusals import NotTracedError, trace_error
from tapetensor.compiler.trace.results import RESULT_NAMES, ResultWriter
from tapetensor.compiler.trace.structure import (
    fields_of,
    holds_arrays,
    is_dataclass_instance,
    is_plain,
    is_users_object,
    items_of,
)
from tapetensor.compiler.trace.tapes import Tapes
from tapetensor.compiler.trace.tracer import ArrayTracer
from tapetensor.errors import ArgumentTypeError
from tapetensor.nn.module import Module
from tapetensor.optim.optimizer import Optimizer
from tapetensor.tape import OwnedTape
from tapetensor.tape.gradients import Gradients
from tapetensor.tape.origins import Incomplete, Origins, lacking, overlap
from tapetensor.tensor.apply import give_tape, take_tapes
from tapetensor.tensor.base import TensorBase

# A container of more than so many plain values is compared as a whole.
_MANY = 16
_FLOAT = np.dtype(np.float64)
_CONTAINERS = (tuple, list, deque, dict, set, frozenset)
# The next call may bring another object of these types.
_REPLACEABLE = (np.random.Generator, Gradients, *_CONTAINERS)
# The source of every plan may use these names.
_NAMES = {
    "MISS": MISS,
    "ndarray": np.ndarray,
    "arrays": (np.ndarray, np.generic),
    "float64": np.float64,
    "copysign": math.copysign,
    "spelling": spelling,
    "OwnedTape": OwnedTape,
    "give_tape": give_tape,
    "take_tapes": take_tapes,
    **RESULT_NAMES,
}


class Binding(GuardWriter):
    """The inputs of one plan, found by walking the first call.

    Args:
        program: where the tracers put what they capture.
        function: what is captured.
    """

    def __init__(self, program: Program, function: Any) -> None:
        super().__init__(dict(_NAMES))
        self.program = program
        # The source expression of each input node.
        self.expressions: dict[Node, str] = {}
        # The local variables that hold random generators.
        self.generators: list[str] = []
        self.closures = Closures(self)
        self.tapes = Tapes(self, function if hasattr(function, "__name__") else type(function))
        # Each tensor by its id, with its local variable, its node and its tape in the capture.
        self._tensors: dict[int, tuple[Any, str, Node, OwnedTape | None]] = {}
        self._direct: list[str] = []
        # The origins of those that were computed.
        self._computed: list[tuple[Origins, str]] = []
        self._fields: dict[str, tuple[Any, str]] = {}
        self._states: list[tuple[str, dict[str, Any], dict[str, Any], str]] = []
        self._optimizers: list[tuple[Optimizer, str]] = []
        self._stores: list[tuple[Gradients, str, dict[int, Any], tuple[Incomplete, ...]]] = []
        # What stands for all that the gradients of a store lack at a call, by its address.
        self._lacks: dict[int, str] = {}
        self._watches: list[Watch] = []
        self._randomness = global_randomness()
        self._frozen: list[Any] = []
        # What `restore` does, the last of it first.
        self.undo: list[Callable[[], None]] = []
        # Each object that was walked by its id, with the source that leads to it.
        self._seen: dict[int, tuple[Any, str]] = {}
        # A numpy array that a function reads from around it is a constant, as its numbers are; a
        # tensor is not, for optimizers and modules change tensors.
        self._in_closure = False

    def restore(self) -> None:
        """Put back all that the walk replaced, and all that the function changed."""
        while self.undo:
            self.undo.pop()()
        # An array can be made writable again only after the array that it is a view of.
        for array in sorted(self._frozen, key=lambda one: one.base is not None):
            array.flags.writeable = True

    def walk_function(self, function: Any) -> None:
        """Walk what a function reads from around itself: closure cells, globals, its `self`."""
        self._in_closure = True
        self.closures.walk_function(function, self.bind(function))
        self._in_closure = False

    def walk_methods(self) -> None:
        """Walk what the methods of all objects that were found read from around themselves."""
        self._in_closure = True
        self.closures.walk_methods()
        for optimizer, held in self._optimizers:
            for position, group in enumerate(optimizer.groups):
                for place, tensor in enumerate(group.tensors):
                    if id(tensor) not in self._tensors:
                        expression = f"{held}['groups'][{position}].tensors[{place}]"
                        self._walk_tensor(tensor, expression, "a parameter")
        self._in_closure = False

    def walk(self, value: Any, expression: str, where: str) -> Any:
        """Return `value` with tracers in place of arrays; write down how to recognize it."""
        if isinstance(value, TensorBase):
            return self._walk_tensor(value, expression, where)
        if isinstance(value, np.ndarray):
            return self._walk_array(value, expression, where)
        if is_plain(value):
            self.guard_plain(value, expression)
            return value
        if isinstance(value, _REPLACEABLE) or is_dataclass_instance(value):
            local = self.local(expression)
            if id(value) in self._seen:
                tracer, known = self._seen[id(value)]
                self.guard(f"{local} is not {known}")
                return tracer
            self._seen[id(value)] = value, local
            if isinstance(value, np.random.Generator):
                return self._walk_generator(value, local, where)
            self.guard(f"{local}.__class__ is not {self.bind(value.__class__)}")
            if isinstance(value, Gradients):
                return self._walk_gradients(value, local, where)
            if isinstance(value, _CONTAINERS):
                return self._walk_container(value, local, where)
            # The next call may bring another instance of the dataclass.
            self.closures.add_class(value.__class__)
            self._walk_attributes(value, fields_of(value), local, where)
            return value
        self.guard(f"{expression} is not {self.bind(value)}")
        if id(value) in self._seen:
            return value
        if isinstance(value, Optimizer):
            self._walk_optimizer(value, where)
        elif isinstance(value, FUNCTIONS) or hasattr(value, "__wrapped__"):
            self.closures.walk_function(value, expression)
        elif isinstance(value, Module) or is_users_object(value):
            self._walk_object(value, where)
        elif isinstance(value, Iterator):
            raise trace_error(
                f"{where} is an iterator, which a replay would not advance; "
                "call next() outside, and pass what it gives"
            )
        elif holds_arrays(value):
            raise trace_error(
                f"{where} is a {type(value).__name__}, which is not looked through; "
                "use a list, a dict or a dataclass"
            )
        return value

    def _walk_container(self, value: Any, local: str, where: str) -> Any:
        """Walk what is in a container, which keeps its identity if it can be written to."""
        is_set = isinstance(value, set | frozenset)
        if is_set or (len(value) > _MANY and all(map(is_plain, items_of(value)))):
            if holds_arrays(value):
                raise trace_error(f"{where} is a set, in which arrays have no place; use a list")
            if isinstance(value, dict):
                self.guard_keys(value, local)
            held = f"{local}.values()" if isinstance(value, dict) else local
            self.guard(f"spelling({held}) != {self.bind(spelling(items_of(value)))}")
            self._watch(where, value, value)
            return value
        if isinstance(value, dict):
            self.guard_keys(value, local)
            keys = {key: f"[{self.bind(key)}]" for key in value}
        else:
            self.guard(f"len({local}) != {len(value)}")
            keys = {position: f"[{position}]" for position in range(len(value))}
        items = {
            key: self.walk(value[key], local + part, f"{where}[{key!r}]")
            for key, part in keys.items()
        }
        if isinstance(value, tuple):
            if all(one is other for one, other in zip(items.values(), value, strict=True)):
                return value
            return tuple.__new__(value.__class__, items.values())
        before = copy.copy(value)
        for key, item in items.items():
            value[key] = item
        self._watch(where, value, before)
        return value

    def _watch(self, where: str, value: Any, before: Any) -> None:
        """Watch a container for changes, and have `restore` put back what it held before."""
        if isinstance(value, tuple | frozenset):
            return
        self.undo.append(partial(_refill, value, copy.copy(before)))
        self._watches.append(Watch(where, partial(parts, value), parts(value)))

    def _walk_array(self, array: Any, expression: str, where: str) -> Any:
        if array.__class__ not in (np.ndarray, np.memmap):
            raise ArgumentTypeError(
                f"compile: {where} is a {type(array).__name__}, which has rules of its own; "
                "pass np.asarray(...) of it"
            )
        if not self._in_closure:
            local = self.local(expression)
            tracer = self.input(array, local, where)
            tracer.fixed_as = where
            return tracer
        self.guard(f"{expression} is not {self.bind(array)}")
        self._seen[id(array)] = array, expression
        if array.flags.writeable:
            # From now on numpy refuses to change it, and its error names the line.
            array.flags.writeable = False
            self._frozen.append(array)
        return array

    def _walk_tensor(self, tensor: Any, expression: str, where: str) -> Any:
        known = self._tensors.get(id(tensor))
        if known is not None:
            self.guard(f"{expression} is not {known[1]}")
            return tensor
        local = self.local(expression)
        tape = tensor.tape
        if tape is not None and not isinstance(tape, OwnedTape):
            # The tensor is spent: every use of it is an error, the same as in eager mode.
            self.guard("True")
            return tensor
        if expression not in self._fields:
            self.guard(f"{local}.__class__ is not {self.bind(tensor.__class__)}")
            self._direct.append(local)
            if tape is None:
                was_computed = tensor.origins is not None
                self.guard(f"{local}.tape is not None")
                self.guard(f"({local}.origins is not None) is not {was_computed}")
                if was_computed:
                    self._computed.append((tensor.origins, f"{local}.origins"))
        data = tensor.array
        if isinstance(data, Recorded):
            raise NotTracedError
        library = library_of(data)
        if library != "numpy":
            raise ArgumentTypeError(
                f"compile: {where} is over an array of {library}, and a plan runs on numpy's; "
                "call the function without compile, or move everything with to(numpy)"
            )
        tracer = self.input(data, self.local(f"{local}.array"), where)
        tracer.fixed_as = where

        def undo() -> None:
            tensor.array, tensor.tape = data, tape

        self.undo.append(undo)
        tensor.array = tracer
        if tape is not None:
            tensor.tape = self.tapes.bring(tape, tensor, local)
        self._tensors[id(tensor)] = tensor, local, tracer.node, tensor.tape
        return tensor

    def _walk_generator(self, rng: np.random.Generator, local: str, where: str) -> Any:
        self.guard(f"not isinstance({local}, {self.bind(np.random.Generator)})")
        node = self.program.add(Kind.INPUT, None, (), (), np.dtype(object), label=where)
        self.expressions[node] = local
        self.generators.append(local)
        drops = getattr(rng, "drops", True)
        self.guard(f"getattr({local}, 'drops', True) is not {drops}")
        tracer = GeneratorTracer(self.program, node, drops=drops)
        self._seen[id(rng)] = self._seen[id(tracer)] = tracer, local
        return tracer

    def _walk_gradients(self, store: Gradients, local: str, where: str) -> Gradients:
        arrays = store.arrays
        keys = self.bind(tuple(arrays))
        self.guard(f"tuple({local}.arrays) != {keys} or {local}.is_leaky != {store.is_leaky}")
        self.guard(f"{local}.leafs != {self.bind(store.leafs)}")
        tracer: dict[int, Any] = {
            key: self.input(array, self.local(f"{local}.arrays[{key}]"), f"{where}[{key}]")
            for key, array in arrays.items()
        }
        store.arrays = tracer
        before = store.incomplete
        all_of_it = Incomplete("", "", None, set())
        self._lacks |= {id(one): "" for one in before}
        self._lacks[id(all_of_it)] = f"*{local}.incomplete, "
        store.incomplete = (*before, all_of_it)
        self._stores.append((store, local, dict(store.arrays), store.incomplete))

        def undo() -> None:
            store.arrays, store.incomplete = arrays, before

        self.undo.append(undo)
        return store

    def _walk_attributes(
        self, value: Any, names: Iterable[str], expression: str, where: str
    ) -> None:
        for name in names:
            item = getattr(value, name)
            replaced = self.walk(item, f"{expression}.{name}", f"{where}.{name}")
            object.__setattr__(value, name, replaced)
            self.undo.append(partial(object.__setattr__, value, name, item))
        self._watches.append(Watch(where, partial(attributes, value), attributes(value)))

    def _walk_object(self, value: Any, where: str) -> None:
        """Walk an object that the next call has to bring again."""
        name = self.bind(value)
        self._seen[id(value)] = value, name
        self.closures.add_class(value.__class__)
        fields = getattr(value, "__dict__", None)
        if not isinstance(fields, dict):
            self._walk_attributes(value, fields_of(value), name, where)
            return
        held = self.bind(fields, "d")
        before = dict(fields)
        self.guard(f"len({held}) != {len(fields)}")
        for name, item in before.items():
            expression = f"{held}[{name!r}]"
            if isinstance(item, TensorBase):
                if id(item) not in self._tensors and item.tape is None:
                    local = self.local(expression)
                    self._fields[local] = item, held
                    self._walk_tensor(item, local, f"{where}.{name}")
                else:
                    self._walk_tensor(item, expression, f"{where}.{name}")
                continue
            fields[name] = self.walk(item, expression, f"{where}.{name}")
        self._states.append((held, fields, dict(fields), where))
        self.undo.append(partial(_refill, fields, before))

    def _walk_optimizer(self, optimizer: Optimizer, where: str) -> None:
        """Let a plan read the learning rate at each call; the function itself cannot set it."""
        self._seen[id(optimizer)] = optimizer, self.bind(optimizer)
        fields = vars(optimizer)
        held = self.bind(fields, "d")
        rate = self.program.add(Kind.INPUT, None, (), (), _FLOAT, label=f"{where}.lr")
        self.expressions[rate] = f"float64({held}['_lr'])"
        tracer = NumberTracer(ArrayTracer(self.program, rate))
        self.undo.append(partial(fields.__setitem__, "_lr", fields["_lr"]))
        fields["_lr"] = tracer
        self._optimizers.append((optimizer, held))
        self._watches.append(Watch(where, lambda: {".lr": fields["_lr"]}, {".lr": tracer}))

    def input(self, array: Any, local: str, label: str) -> ArrayTracer:
        """Return the tracer for an array that the source has in a local variable."""
        dtype = self.bind(array.dtype)
        compare = "is not" if array.dtype.isbuiltin == 1 else "!="
        # Only the class tells another library's array. A scalar may stand for a 0-d array.
        is_scalar = f"not isinstance({local}, arrays)"
        cls = "ndarray" if array.__class__ is np.ndarray else self.bind(array.__class__)
        self.guard(f"{local}.__class__ is not {cls}" if array.shape else is_scalar)
        self.guard(
            f"{local}.shape != {array.shape} or {local}.dtype {compare} {dtype} "
            f"or {local}.strides != {array.strides}"
        )
        node = self.program.add(
            Kind.INPUT, None, (), array.shape, array.dtype, detail=array.strides, label=label
        )
        self.expressions[node] = local
        return ArrayTracer(self.program, node)

    def replace_item(self, holder: dict[str, Any], name: str, value: Any) -> None:
        """Put what was walked into a namespace, watch it, and put it back at the end."""
        self.undo.append(partial(holder.__setitem__, name, holder[name]))
        holder[name] = value
        self._watches.append(Watch(name, lambda: {"": holder.get(name)}, {"": value}))

    def replace_attribute(self, holder: Any, name: str, value: Any, where: str) -> None:
        """Put what was walked into an attribute, watch it, and put it back at the end."""
        before = getattr(holder, name)

        def undo() -> None:
            if getattr(holder, name, None) is not before:
                setattr(holder, name, before)

        self.undo.append(undo)
        if value is not before:
            setattr(holder, name, value)
        self._watches.append(Watch(where, lambda: {"": getattr(holder, name, None)}, {"": value}))

    def change(self) -> str | None:
        """Return the name of something that the function has changed around itself, if any."""
        for watch in self._watches:
            name = watch.change()
            if name is not None:
                return name
        for _, fields, after, where in self._states:
            for name in {**after, **fields}:
                value, before = fields.get(name), after.get(name)
                are_tensors = isinstance(value, TensorBase) and isinstance(before, TensorBase)
                if value is not before and not are_tensors:
                    return f"{where}.{name}"
        for name, state in global_randomness().items():
            if state != self._randomness[name]:
                return f"the state of {name}"
        return None

    def _guard_origins(self, came_in: list[tuple[Any, str]], replaced: set[int]) -> None:
        """Write guards: what came of tensors that come in, or lacks a part, does so again."""
        lasting = self._fields.keys()
        is_fixed = [local in lasting and id(tensor) not in replaced for tensor, local in came_in]
        pairs = list(zip(came_in, is_fixed, strict=True))
        fixed = frozenset([tensor.id for (tensor, _), lasts in pairs if lasts])
        others = [one for one, lasts in pairs if not lasts]
        told = f"{self.bind(fixed)}, ({''.join([f'{local}._id, ' for _, local in others])})"
        ids = tuple([tensor.id for tensor, _ in others])
        for origins, source in (*self._computed, *self.tapes.lent):
            known = self.bind(overlap(origins, fixed, ids))
            # Mostly they are the very same, as those of the batches of one epoch are.
            differ = f"{source} is not {self.bind(origins)}"
            self.guard(f"{differ} and overlap({source}, {told}) != {known}")
        for _, store, _, lacked in self._stores:
            known = self.bind(lacking(lacked, fixed, ids))
            self.guard(f"lacking({store}.incomplete, {told}) != {known}")

    def finish(self, result: Any) -> ResultWriter:
        """Write the results, and the lines that store state.

        This comes after the function has run, and before `restore`.
        """
        came_in = [(tensor, local) for tensor, local, _, _ in self._tensors.values()]
        known = {key: local for key, (_, local, _, _) in self._tensors.items()}
        known |= {key: source for key, (_, source) in self._seen.items()}
        writer = ResultWriter(self.bind, known, came_in, self.tapes, self._lacks)
        replaced: set[int] = set()
        for held, fields, after, _ in self._states:
            for name, before in after.items():
                if fields[name] is not before:
                    replaced.add(id(before))
                    writer.store(f"{held}[{name!r}]", fields[name])
        for local, (tensor, _) in self._fields.items():
            cls = self.bind(tensor.__class__)
            if id(tensor) in replaced:
                self.guard_local(local, f"{local}.__class__ is not {cls}")
            else:
                self.guard_local(local, f"{local} is not {self.bind(tensor)}")
        for tensor, local, node, brought in self._tensors.values():
            data = tensor.array
            is_kept = isinstance(data, ArrayTracer) and (
                data.node is node or _is_updated(data.node)
            )
            if not is_kept:
                writer.store(f"{local}.array", data)
            if isinstance(brought, OwnedTape) and tensor.tape is not brought:
                writer.take(local, tensor.tape)
            elif tensor.tape is not brought:
                writer.store(f"{local}.tape", tensor.tape)
        for store, local, before_arrays, lacked in self._stores:
            if store.incomplete is not lacked:
                writer.store_incomplete(f"{local}.incomplete", store)
            same = store.arrays.keys() == before_arrays.keys() and all(
                store.arrays[key] is before_arrays[key] for key in before_arrays
            )
            if not same:
                writer.store_entries(f"{local}.arrays", store)
        self._guard_origins(came_in, replaced)
        if len(self._direct) > 1:
            distinct = ", ".join([f"id({local})" for local in self._direct])
            self.guard(f"len({{{distinct}}}) != {len(self._direct)}")
        writer.finish(result)
        self.guard_against_errors()
        return writer


def _refill(container: Any, items: Any) -> None:
    container.clear()
    (container.update if isinstance(container, dict | set) else container.extend)(items)


def _is_updated(node: Node) -> bool:
    return node.kind is Kind.PART and node.args[0].kind is Kind.UPDATE
