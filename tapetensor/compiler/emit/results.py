"""What leaves a compiled function, as source that makes it again: results, state, and tapes.

In the history of a caller the function is one step: it names the tensors that came in, and its
pullbacks are a plan of their own, on what the forward pass keeps for them.
"""

from __future__ import annotations

import sys
from collections.abc import Container
from typing import Any, NamedTuple

import numpy as np

from tapetensor.compiler.emit.backward import BackwardPlan, node_of
from tapetensor.compiler.plan.schedule import repeatable
from tapetensor.compiler.trace.guards import tensors_of
from tapetensor.compiler.trace.inputs import Inputs
from tapetensor.compiler.trace.kinds import is_dataclass_instance, is_plain
from tapetensor.compiler.trace.node import Kind, Node
from tapetensor.compiler.trace.number import NumberTracer
from tapetensor.compiler.trace.program import Program
from tapetensor.compiler.trace.refusals import trace_error
from tapetensor.compiler.trace.tracer import ArrayTracer
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
    gathered,
    ids_before,
    is_detached,
    next_id,
    size_of,
    together,
)
from tapetensor.tape.replay import replay
from tapetensor.tensor.base import TensorBase, wrap


class ResultWriter:
    """Writes results as source.

    Attributes:
        tapes: writes the code for tapes.
        ids: the source of each id that came in, and of those of results.
        locals: the variable of each tensor that came in, by its id.
        outputs: the nodes that the results are made of.
        owned: which of them somebody may write into.
        stored: by the source of what is assigned to, that of what it gets.
    """

    def __init__(self, inputs: Inputs) -> None:
        self.bind = inputs.bind
        self.tapes = inputs.tapes
        came_in = [(tensor, local) for tensor, local, _, _ in inputs.tensors]
        self.locals = {tensor.id: local for tensor, local in came_in}
        self.ids = {unique_id: f"{local}._id" for unique_id, local in self.locals.items()}
        # Those that are the same in every call, and lead to nothing.
        self.fixed: dict[str, Any] = {}
        self.outputs: list[Node] = []
        self.owned: set[int] = set()
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
        # The variables of objects that are being written.
        self._begun: set[str] = set()
        # What was written is kept alive, for it is known by its address.
        self._kept: list[Any] = []

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
        if known in self._begun:
            raise trace_error("a result holds itself, which a replay does not make again")
        if known is not None:
            return known
        if isinstance(value, TensorBase):
            return self._tensor(value)
        if isinstance(value, ArrayTracer) and value.is_scalar:
            return f"{self.node(value.node)}[()]"
        if isinstance(value, ArrayTracer | np.ndarray):
            source = self.array(value, is_own=True)
            # What runs as a whole may give a scalar.
            return self._known_as(value, source if value.shape else f"asarray({source})")
        if isinstance(value, NumberTracer):
            return f"number({self.node(value.array.node)})"
        if isinstance(value, OwnedTape):
            raise trace_error(
                "a result is a tape apart from its tensor; return the tensor that has it"
            )
        if is_plain(value):
            return self.bind(value)
        if isinstance(value, tuple) and (type(value) is tuple or hasattr(value, "_fields")):
            source = f"({self._items(value)})"
            if type(value) is not tuple:
                source = f"new_tuple({self.bind(type(value))}, {source})"
            return self._known_as(value, source)
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
            rest = f"{leafs}, {value.is_leaky}, {self.gaps(value.gaps)}, {self.passes(value)}"
            # Tapes may carry gradients, which therefore come before them.
            self._tensors.append(f"{local} = gradients_of({self.entries(value)}, {rest})")
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

    def array(self, value: Any, *, is_own: bool = False) -> str:
        """Return the source of an array; one that others may write into has memory of its own."""
        if isinstance(value, ArrayTracer):
            return self.node(value.node, is_own=is_own)
        if isinstance(value, np.generic):
            return self.bind(value)
        if value.dtype.hasobject:
            raise trace_error("a result is an array of Python objects; return a list of them")
        return f"{self.bind(value)}.copy()"

    def node(self, node: Node, *, is_own: bool = False) -> str:
        """Return the source of the array of a node."""
        if is_own:
            self.owned.add(len(self.outputs))
        self.outputs.append(node)
        return f"{{{len(self.outputs) - 1}}}"

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
        own = {key: self.array(one, is_own=True) for key, one in store.arrays.items()}
        items = ", ".join([f"{self.id_of(key)}: {source}" for key, source in own.items()])
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

    The fixed ones, which are so long together, are the same in every call.
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
    """Return the tape of a result of such operands, which carries these gradients besides."""
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


def number(value: Any) -> float:
    """Return an array or a numpy scalar of one element as a Python number."""
    found: float = value.item() if hasattr(value, "item") else value
    return found


# The source may use these names.
_USED = (
    common_tape, detached_step, filled, np.asarray, number, pass_of, stop_at, together, used_up,
    wrap,
)  # fmt: skip
RESULT_NAMES: dict[str, Any] = {
    **{one.__name__: one for one in _USED},
    "next_id": next_id,
    "gradients_of": Gradients.of,
    "OWN": OWN,
    "new_tuple": tuple.__new__,
}


def write_results(inputs: Inputs, result: Any) -> ResultWriter:
    """Write the results, the lines that store state, and the last guards.

    This comes after the function has run, and before what it replaced is put back.
    """
    inputs.guards.names.update(RESULT_NAMES)
    writer = ResultWriter(inputs)
    replaced: set[int] = set()
    # What an optimizer steps is no parameter of its own where another one has taken its place.
    trained = {id(one) for group in inputs.program.groups for one in group.tensors}
    for held, fields, after in inputs.states:
        for name, before in after.items():
            if fields[name] is not before:
                replaced.add(id(before))
                writer.stored[f"{held}[{name!r}]"] = writer.write(fields[name])
    for tensor, local, node, _ in inputs.tensors:
        if local not in inputs.fields:
            continue
        inputs.guards.where = tensors_of(node.label)
        is_trivial = tensor.history is None or tensor.history is OWN
        if id(tensor) in replaced:
            inputs.guard_tensor(tensor, None, local)
            if is_trivial:
                # Another one was guarded where it was found, and something stands for it here.
                inputs.guard_history(tensor.history, local)
            inputs.guard_look(inputs.arrays[node], inputs.expressions[node])
        elif is_trivial:
            writer.fixed[local] = tensor
        if id(tensor) not in replaced or id(tensor) in trained:
            inputs.guard(f"{local} is not {inputs.bind(tensor)}")
    inputs.guards.where = ""
    updated = _updated(inputs.program)
    for tensor, local, node, _ in inputs.tensors:
        data = tensor._array
        if not isinstance(data, ArrayTracer) or data.node is not updated.get(id(tensor), node):
            writer.stored[f"{local}._array"] = writer.array(data)
    for store, local, before_arrays, lacked in inputs.stores:
        if store.gaps is not lacked:
            writer.stored[f"{local}.gaps"] = writer.gaps(store.gaps)
            writer.stored[f"{local}.origins"] = writer.passes(store)
        same = store.arrays.keys() == before_arrays.keys() and all(
            store.arrays[key] is before_arrays[key] for key in before_arrays
        )
        if not same:
            writer.stored[f"{local}.arrays"] = writer.entries(store)
    inputs.guard_origins(replaced)
    inputs.guard_distinct()
    writer.returned = writer.write(result)
    writer.tape_lines = _tape_lines(writer)
    return writer


def _updated(program: Program) -> dict[int, Node]:
    """Return the last values that optimizers give to parameters, by the addresses of these."""
    return {
        id(node.args[0].function.tensors[node.detail]): node
        for node in program.nodes
        if node.kind is Kind.PART and node.args[0].kind is Kind.UPDATE
    }


def _tape_lines(writer: ResultWriter) -> list[str]:
    """Return the lines that make tapes and histories, once all results are written."""
    program = writer.tapes.program
    forward = len(program.nodes)
    ways = [_way_back(writer, tensor) for tensor, _ in writer.tapes.results]
    del program.nodes[forward:]
    again = repeatable(program.nodes)
    lines = []
    for way, (tensor, local) in zip(ways, writer.tapes.results, strict=True):
        gradients = [*way.gradients.values()]
        plan = BackwardPlan(way.cotangent, gradients, forward, program.backend, again)
        kept = "".join([f"{writer.node(one)}, " for one in plan.residuals])
        ids = "".join([f"{writer.id_of(key)}, " for key in way.gradients])
        before = "".join(
            [f"{way.stops.get(key) or f'{writer.locals[key]}.history'}, " for key in way.gradients]
        )
        pullbacks = f"{writer.bind(plan.pullbacks)}({kept})"
        step = f"{writer.id_of(tensor.id)}, {writer.bind(writer.tapes.op)}, {pullbacks}, ({ids})"
        lines.append(f"{local}.history = [{step}, together(({before})), {tensor.history[5]}]")
    for number, tape in enumerate(writer.tapes.returned):
        sources, carried = "", ""
        for key, store in tape.stores.items():
            marker = writer.tapes.markers.get(key)
            if marker is None:
                carried += f"{writer.write(store)}, "
            else:
                sources += f"{marker[1]}_tape, "
        lines.append(f"t{number} = common_tape(({sources}), ({carried}))")
    return lines


class _WayBack(NamedTuple):
    """How gradients flow from a result to what came in.

    Attributes:
        cotangent: the node of the cotangent of the result.
        gradients: by the ids of what came in, and of what gradients stop at inside.
        stops: the source of the steps of the latter, by id.
    """

    cotangent: Node
    gradients: dict[int, Node]
    stops: dict[int, str]


def _way_back(writer: ResultWriter, result: Any) -> _WayBack:
    """Run the steps that led to a result backwards, up to what came in."""
    program, outside = writer.tapes.program, writer.tapes.is_outside
    steps, _ = gathered(result.history)
    value = result._array
    node = program.add(Kind.INPUT, None, (), value.shape, value.dtype, label="cotangent")
    cotangent = ArrayTracer(program, node)
    stops = {step[0]: writer.stop(step) for step in steps if step[2] is None}
    run = [step[:] for step in steps if step[2] is not None and not outside(step)]
    gaps: list[Gap] = []
    started: dict[int, Any] = {result.id: cotangent}
    arrays = replay(run, started, BackwardPass(), gaps)
    gradients = {
        key: node_of(program, array)
        for key, array in arrays.items()
        if key in writer.locals or stops.get(key)
    }
    for gap in gaps:
        # An operand that is a constant by convention: what it came of is behind a value of its own.
        key = next_id()
        source = writer.stop_of(key, gap.kernel, {*filter(gap.concerns, writer.locals)})
        if source:
            stops[key] = source
            gradients[key] = node
    return _WayBack(node, gradients, stops)
