"""The outputs of a compiled function: its results, the state that it stores, and tapes.

In the history of a caller the function is one step: it names the tensors that came in, and its
pullbacks are a plan of their own, on what the forward pass keeps for them.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tapetensor.compiler.emit.backward import BackwardPlan, node_of
from tapetensor.compiler.emit.results import RESULT_NAMES, ResultWriter
from tapetensor.compiler.trace.guards import tensors_of
from tapetensor.compiler.trace.inputs import Inputs
from tapetensor.compiler.trace.node import Kind, Node
from tapetensor.compiler.trace.program import Program
from tapetensor.compiler.trace.tracer import ArrayTracer
from tapetensor.compiler.trace.ufuncs import computed_like
from tapetensor.tape.gaps import Gap
from tapetensor.tape.history import OWN, BackwardPass, gathered
from tapetensor.tape.ids import next_id
from tapetensor.tape.replay import replay


def write_results(inputs: Inputs, result: Any) -> ResultWriter:
    """Write the results, the lines that store state, and the last guards.

    This comes after the function has run, and before what it replaced is put back.
    """
    inputs.guards.names.update(RESULT_NAMES)
    writer = ResultWriter(inputs)
    replaced: set[int] = set()
    for held, fields, after in inputs.states:
        for name, before in after.items():
            if fields[name] is not before:
                replaced.add(id(before))
                writer.stored[f"{held}[{name!r}]"] = writer.write(fields[name])
    for tensor, local, node, _ in inputs.tensors:
        if local not in inputs.fields:
            continue
        inputs.guards.where = tensors_of(node.label)
        if id(tensor) in replaced:
            inputs.guard_tensor(tensor, None, local)
            inputs.guard_history(tensor.history, local)
        else:
            inputs.guard(f"{local} is not {inputs.bind(tensor)}")
            if tensor.history is None or tensor.history is OWN:
                writer.fixed[local] = tensor
    inputs.guards.where = ""
    updated, kept = _updated(inputs.program), set[str]()
    for tensor, local, node, _ in inputs.tensors:
        data = tensor._array
        if isinstance(data, ArrayTracer) and data.node is updated.get(id(tensor), node):
            kept.add(local)
            writer.keep(data)
    for tensor, local, _, _ in inputs.tensors:
        if local not in kept:
            writer.stored[f"{local}._array"] = writer.write(tensor._array)
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
    lines = []
    for way, (tensor, local) in zip(ways, writer.tapes.results, strict=True):
        plan = BackwardPlan(way.cotangent, [*way.gradients.values()], forward, program.backend)
        kept = "".join([f"{writer.node(one)}, " for one in plan.residuals])
        ids = "".join([f"{writer.id_of(key)}, " for key in way.gradients])
        before = "".join(
            [f"{way.stops.get(key) or f'{writer.locals[key]}.history'}, " for key in way.gradients]
        )
        pullbacks = f"{writer.bind(plan.pullbacks)}({kept})"
        step = f"{writer.id_of(tensor.id)}, {writer.bind(writer.tapes.op)}, {pullbacks}, ({ids})"
        lines.append(f"{local}.history = [{step}, together(({before})), {tensor.history[5]}]")
    for number, tape in enumerate(writer.tapes.leaving):
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
    """How gradients flow from a result to the inputs.

    Attributes:
        cotangent: the node of the cotangent of the result.
        gradients: the gradients by the ids of inputs, and of values at which gradients stop inside.
        stops: the source of the steps of these values, by id.
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
    # What is computed of a value lies as that does, and so does its cotangent, as a rule.
    cotangent.lies_as(np.asarray(computed_like((value,), value.shape)))
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
