"""The results of a captured function, written as the source that makes them again."""

from __future__ import annotations

import sys
from collections.abc import Container
from typing import Any

import numpy as np

from tapetensor.arrays.array import Array
from tapetensor.compiler.trace.inputs import Inputs
from tapetensor.compiler.trace.kinds import is_dataclass_instance, is_plain, is_value
from tapetensor.compiler.trace.node import Kind, Node
from tapetensor.compiler.trace.number import NumberTracer
from tapetensor.compiler.trace.refusals import trace_error
from tapetensor.compiler.trace.tracer import ArrayTracer
from tapetensor.compiler.trace.view import is_in_order
from tapetensor.surroundings.places import Slots, attributes_of
from tapetensor.tape import OwnedTape
from tapetensor.tape.gaps import Gap
from tapetensor.tape.gradients import Gradients
from tapetensor.tape.history import (
    OWN,
    BackwardPass,
    Step,
    detached_step,
    gap_step,
    ids_before,
    is_detached,
    size_of,
    together,
)
from tapetensor.tape.ids import next_id
from tapetensor.tensor.base import TensorBase, wrap

# How the source of an array ends that is made where it is returned.
_AS_ANOTHER = "[...]"
_STRIDED = ("index", "broadcast_to")


class ResultWriter:
    """Writes results as source.

    Args:
        inputs: the inputs.

    Attributes:
        tapes: writes the code for tapes.
        ids: the source of each id that came in, and of those of results.
        locals: the variable of each tensor that came in, by its id.
        leaving: the nodes that the results are made of.
        tape_lines: the lines that make the tapes of results.
        returned: the source of the returned value.
        stored: the sources of assigned values, by the sources of their targets.
    """

    def __init__(self, inputs: Inputs) -> None:
        self.bind = inputs.bind
        self.tapes = inputs.tapes
        came_in = [(tensor, local) for tensor, local, _, _ in inputs.tensors]
        self.locals = {tensor.id: local for tensor, local in came_in}
        self.ids = {unique_id: f"{local}._id" for unique_id, local in self.locals.items()}
        # Those that are the same in every call, and lead to nothing.
        self.fixed: dict[str, Any] = {}
        self.leaving: list[Node] = []
        self.tape_lines: list[str] = []
        self.returned = "None"
        self.stored: dict[str, str] = {}
        # The source of each tensor, container and object that came in, and of what is written.
        self._known = {key: source for key, (_, source) in inputs.seen.items()}
        self._known |= {id(fields): source for source, fields, _ in inputs.states}
        # The source of what a store lacks that came in, by the address of what stands for it.
        self._lacks = inputs.lacks
        self._new_ids: dict[int, str] = {}
        # The lines run in this order: tensors, containers of them, state.
        self._tensors: list[str] = []
        self._containers: list[str] = []
        # The array of the function that leaves in the memory that a node has made.
        self._roots: dict[Node, ArrayTracer] = {}
        # The array of the function that each node leaves as.
        self._written: dict[Node, ArrayTracer] = {}
        # The variables of objects that are being written, and of those that lead to themselves.
        self._begun: set[str] = set()
        self._circular: set[str] = set()
        # What was written is kept alive, for it is known by its address.
        self._kept: list[Any] = []

    def keep(self, array: ArrayTracer) -> None:
        """Note an array that a tensor holds on to, beside which copies have memory of their own."""
        root = array.root()
        self._roots[root.node] = root

    def lines(self, arrays: list[str]) -> list[str]:
        """Return all lines, given the source of the arrays that leave."""
        # New ids keep their order: that of a result is larger than those of what it is made of.
        ids = [f"{name} = next_id()" for _, name in sorted(self._new_ids.items())]
        made = [*self._tensors, *self.tape_lines, *self._containers]
        stores = [f"{target} = {one.format(*arrays)}" for target, one in self.stored.items()]
        returned = f"return {self.returned.format(*arrays)}"
        return [*ids, *[line.format(*arrays) for line in made], *stores, returned]

    def write(self, value: Any) -> str:
        """Return the source of a result."""
        known = self._known.get(id(value))
        if known is not None:
            self._circular |= {known} & self._begun
            return known
        if isinstance(value, TensorBase):
            return self._tensor(value)
        if isinstance(value, ArrayTracer) and value.is_scalar:
            return f"{self.node(value.node)}[()]"
        if isinstance(value, ArrayTracer):
            source = self.array(value)
            is_made_here = source.endswith(_AS_ANOTHER)
            if value.shape == ():
                # What runs as a whole may give a scalar.
                is_made_here, source = True, f"asarray({source})"
            if value.is_read_only:
                is_made_here, source = True, f"fixed(asarray({source}).view())"
            return self._known_as(value, source) if is_made_here else source
        if isinstance(value, np.ndarray):
            if value.dtype.hasobject:
                raise trace_error("a result is an array of Python objects; return a list of them")
            return self._known_as(value, self.array(value))
        if isinstance(value, NumberTracer):
            return f"number({self.node(value.array.node)})"
        if isinstance(value, OwnedTape):
            raise trace_error(
                "a result is a tape apart from its tensor; return the tensor that has it"
            )
        if is_plain(value) or is_value(value):
            return self.bind(value)
        if isinstance(value, tuple) and (type(value) is tuple or hasattr(value, "_fields")):
            source = f"({self._items(value)})"
            if type(value) is not tuple:
                source = f"new_tuple({self.bind(type(value))}, {source})"
            # What is in it may have led to it.
            return self._known.get(id(value)) or self._known_as(value, source)
        return self._object(value)

    def _known_as(self, value: Any, source: str) -> str:
        """Give a value a name, for the function may return the very same one again."""
        local = self._named(value)
        self._containers.append(f"{local} = {source}")
        return local

    def _named(self, value: Any) -> str:
        """Return a new variable for a value, as which it is known from now on."""
        local = self._known[id(value)] = f"r{len(self._kept)}"
        self._kept.append(value)
        return local

    def _object(self, value: Any) -> str:
        """Return the variable of a mutable object, which is another one at every call."""
        local, cls = self._named(value), type(value)
        if isinstance(value, Gradients):
            leafs = self.bind(value.leafs)
            told = f"{leafs}, {value.is_leaky}, {self.gaps(value.gaps)}, {self.passes(value)}"
            # Tapes may carry gradients, which therefore come before them.
            self._tensors.append(f"{local} = gradients_of({self.entries(value)}, {told})")
            return local
        is_dataclass = is_dataclass_instance(value)
        if cls not in (list, dict) and not is_dataclass:
            raise trace_error(
                f"a result is a {cls.__name__}, which a replay does not make again; return "
                "tensors, arrays, numbers, texts and gradients, in tuples, lists, dicts and "
                "dataclasses"
            )
        self._begun.add(local)
        if cls is dict:
            source = self._pairs(value)
        else:
            source = f"[{self._items(value)}]" if cls is list else ""
        fields = self._pairs(attributes_of(value) or {}) if is_dataclass else ""
        slots = self._pairs(Slots(value).read()) if is_dataclass else ""
        self._begun.remove(local)
        if local in self._circular:
            raise trace_error("a result holds itself, which a replay does not make again")
        if is_dataclass:
            source = f"filled({self.bind(cls)}, {fields}, {slots})"
        self._containers.append(f"{local} = {source}")
        return local

    def _pairs(self, held: dict[Any, Any]) -> str:
        """Return the source of a dict."""
        pairs = [f"{self.bind(key)}: {self.write(one)}" for key, one in held.items()]
        return f"{{{{{', '.join(pairs)}}}}}"

    def _items(self, values: Any) -> str:
        return "".join([f"{self.write(item)}, " for item in values])

    def array(self, value: Any) -> str:
        """Return the source of an array; of a scalar, which a tensor holds, that of one as well."""
        if not isinstance(value, ArrayTracer):
            if isinstance(value, np.generic):
                return self.bind(value)
            copied = f"{self.bind(value)}.copy('K')"
            return copied if value.flags.writeable else f"fixed({copied})"
        if value.is_scalar and (value.node.kind is Kind.INPUT or not is_in_order(value.node)):
            # What shows memory of another array is to see no writes into that.
            value = value.as_scalar(False)
        if not value.is_scalar:
            value.ordered()
            self._part(value.root())
        node = value.node
        # Another view of the same elements is another object.
        is_input = node.kind is Kind.INPUT
        first = value.root() if is_input else self._written.setdefault(node, value)
        is_another = not value.is_scalar and first is not value
        return self.node(node) + (_AS_ANOTHER if is_another else "")

    def _part(self, root: ArrayTracer) -> None:
        """Give an array memory of its own, if it is another array of the function's that has it.

        Equal values are one node, which the caller is not to see.
        """
        owner = root.node
        is_strided = False
        while owner.kind in (Kind.VIEW, Kind.WRITE):
            # What is repeated, or a part, has strides that no array of its own has.
            is_strided |= owner.kind is Kind.VIEW and owner.function.name in _STRIDED
            owner = owner.args[0]
        # Of a constant, a copy leaves, which its views are to share.
        is_anothers = owner.kind is Kind.CONSTANT or (owner.kind is Kind.INPUT and not root.came_in)
        if is_anothers or is_strided or self._roots.setdefault(owner, root) is not root:
            root.move()
            self._part(root)

    def node(self, node: Node) -> str:
        """Return the source of the array of a node."""
        self.leaving.append(node)
        return f"{{{len(self.leaving) - 1}}}"

    def id_of(self, unique_id: int) -> str:
        """Return the source of an id."""
        known = self.ids.get(unique_id)
        if known is None:
            known = self.ids[unique_id] = self._new_ids[unique_id] = f"i{len(self._new_ids)}"
        return known

    def past(self, ids: Container[int]) -> str:
        """Return the source of the past of a value: that of the tensors that came in."""
        known = [local for one, local in sorted(self.locals.items()) if one in ids]
        return "".join([f"{one}._id, {one}.history, " for one in known])

    def stop(self, step: Step) -> str:
        """Return the source of a step inside that gradients stop at; empty if it hides nothing.

        It is the step of a plain value, or one that a backward pass inside has used up.
        """
        if self.tapes.is_outside(step):
            return self.tapes.histories[id(step)][1]
        past = ids_before(step)
        if step[5]:
            return self.stop_of(step[0], step[1], past)
        source = self.past(past)
        made = f"{self.id_of(step[0])}, {self.bind(step[1])}, ({source})"
        return f"used_up({made})" if source else ""

    def stop_of(self, unique_id: int, kernel: Any, ids: Container[int]) -> str:
        """Return the source of the step of a plain value that came of some ids, or nothing."""
        known = [local for one, local in sorted(self.locals.items()) if one in ids]
        fixed = tuple(
            one
            for local in known
            if local in self.fixed
            for one in (self.fixed[local].id, self.fixed[local].history)
        )
        others = [f"{one}._id, {one}.history, " for one in known if one not in self.fixed]
        if not known:
            return ""
        made = f"{self.id_of(unique_id)}, {self.bind(kernel)}"
        past = f"{self.bind(fixed)}, {size_of(fixed)}, ({''.join(others)})"
        return f"stop_at({made}, {past})"

    def gaps(self, gaps: tuple[Gap, ...]) -> str:
        """Return the source of the missing parts of gradients."""
        parts = []
        for one in gaps:
            if id(one) in self._lacks:
                parts.append(self._lacks[id(one)])
            elif past := self.past({*filter(one.concerns, self.locals)}):
                parts.append(f"{self.bind(one)}.of_others(({past})), ")
        return f"({''.join(parts)})"

    def passes(self, store: Gradients) -> str:
        """Return the source of the backward passes that gradients are of."""
        parts = []
        for one in store.origins:
            if id(one) in self._lacks:
                parts.append(self._lacks[id(one)])
            else:
                past = self.past(ids_before([sys.maxsize, None, None, (one,), None, 1]))
                parts.append(f"pass_of(({past})), ")
        return f"({''.join(parts)})"

    def entries(self, store: Gradients) -> str:
        """Return the source of the dict of a store of gradients."""
        items = ", ".join(
            [f"{self.id_of(key)}: {self.array(array)}" for key, array in store.arrays.items()]
        )
        return f"{{{{{items}}}}}"

    def _tensor(self, tensor: Any) -> str:
        local = self._named(tensor)
        cls = self.bind(tensor.__class__)
        array, unique_id = self.array(tensor._array), self.id_of(tensor.id)
        self._tensors.append(f"{local} = wrap({cls}, {array}, {unique_id}, None)")
        if tensor.tape is not None:
            self._containers.append(f"{local}.tape = {self.tapes.local(tensor.tape)}")
        history = tensor.history
        if history is OWN:
            self._tensors.append(f"{local}.history = OWN")
        elif is_detached(history):
            self._tensors.append(f"{local}.history = detached_step({unique_id})")
        elif history is not None and history[2] is not None and not self.tapes.is_outside(history):
            self.tapes.results.append((tensor, local))
        elif history is not None and (source := self.stop(history)):
            self._tensors.append(f"{local}.history = {source}")
        return local


def stop_at(
    unique_id: int, kernel: Any, fixed: tuple[Any, ...], size: int, past: tuple[Any, ...]
) -> Step:
    """Return the step of a plain value that came of these ids, with the history of each.

    Args:
        unique_id: the id of the value.
        kernel: the kernel that made it.
        fixed: the ids that are the same in every call.
        size: how long that is.
        past: the rest.
    """
    # As `size_of` has it, sooner: most plans have such results.
    size += len(past) + sum([one[5] for one in past[1::2] if one])
    return gap_step(unique_id, kernel, past + fixed, size)


def used_up(unique_id: int, kernel: Any, past: tuple[Any, ...]) -> Step:
    """Return a step that a backward pass inside has used up."""
    return [unique_id, kernel, None, past, pass_of(past), 0]


def pass_of(past: tuple[Any, ...]) -> BackwardPass:
    """Return a backward pass that ran inside."""
    done = BackwardPass()
    done.origins = [*past]
    done.size = size_of(past)
    return done


def common_tape(tapes: tuple[OwnedTape, ...], carried: tuple[Gradients, ...]) -> OwnedTape:
    """Return the tape of a result.

    Args:
        tapes: those of the operands that go into it.
        carried: the gradients that it carries beside theirs.
    """
    tape, *others = (*tapes, *map(OwnedTape, carried)) or (OwnedTape.active(),)
    for one in others:
        tape = tape.common(one)
    return tape


def filled(cls: type, fields: Any, slots: Any) -> Any:
    """Return an object that holds these attributes now; none of its own code runs."""
    made: Any = object.__new__(cls)
    own = attributes_of(made)
    if own is not None:
        own.update(fields)
    Slots(made).write(slots)
    return made


def fixed(array: Array) -> Array:
    """Return an array that is read-only."""
    array.flags.writeable = False
    return array


def number(value: Any) -> float:
    """Return an array or a numpy scalar of one element as a Python number."""
    found: float = value.item() if hasattr(value, "item") else value
    return found


# The source may use these names.
RESULT_NAMES: dict[str, Any] = {
    "wrap": wrap,
    "next_id": next_id,
    "gradients_of": Gradients.of,
    "OWN": OWN,
    "stop_at": stop_at,
    "used_up": used_up,
    "detached_step": detached_step,
    "pass_of": pass_of,
    "common_tape": common_tape,
    "together": together,
    "asarray": np.asarray,
    "new_tuple": tuple.__new__,
    "filled": filled,
    "fixed": fixed,
    "number": number,
}
