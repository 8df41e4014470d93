"""What leaves a compiled function: its results, the state that it stores, and tapes.

To the tape of a caller the function is one op: its record names the tensors that came in, and its
pullbacks are a plan of their own, on what the forward pass keeps for them.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tapetensor.compiler.emit.backward import BackwardPlan, node_of
from tapetensor.compiler.emit.results import RESULT_NAMES, ResultWriter
from tapetensor.compiler.trace.inputs import Inputs
from tapetensor.compiler.trace.node import Kind, Node
from tapetensor.compiler.trace.program import Program
from tapetensor.compiler.trace.tracer import ArrayTracer
from tapetensor.compiler.trace.ufuncs import computed_like
from tapetensor.compiler.trace.walk import tensors_of
from tapetensor.tape import OwnedTape
from tapetensor.tape.gaps import seen_from_outside
from tapetensor.tape.origins import ids_since
from tapetensor.tape.recorder import Recorder


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
        else:
            inputs.guard(f"{local} is not {inputs.bind(tensor)}")
    inputs.guards.where = ""
    updated, kept = _updated(inputs.program), set[str]()
    for tensor, local, node, _ in inputs.tensors:
        data = tensor.array
        if isinstance(data, ArrayTracer) and data.node is updated.get(id(tensor), node):
            kept.add(local)
            writer.keep(data)
    for tensor, local, _, brought in inputs.tensors:
        if local not in kept:
            writer.stored[f"{local}.array"] = writer.write(tensor.array)
        if isinstance(brought, OwnedTape) and tensor.tape is not brought:
            writer.take(local, tensor.tape)
        elif tensor.tape is not brought:
            writer.stored[f"{local}.tape"] = writer.write(tensor.tape)
    for store, local, before_arrays, lacked in inputs.stores:
        if store.incomplete is not lacked:
            writer.stored[f"{local}.incomplete"] = writer.incomplete(store.incomplete)
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
        id(node.args[0].function.group.tensors[node.detail]): node
        for node in program.nodes
        if node.kind is Kind.PART and node.args[0].kind is Kind.UPDATE
    }


def _tape_lines(writer: ResultWriter) -> list[str]:
    """Return the lines that make the tapes that leave, once all results are written."""
    tapes, lines = writer.tapes, list[str]()
    program = tapes.program
    forward = len(program.nodes)
    for tape in tapes.leaving:
        tape.recorded()
    records = _records(writer)
    del program.nodes[forward:]
    users: dict[str, int] = {}
    for tape in tapes.leaving:
        sources, carried = [], []
        for key, store in tape.stores.items():
            if key not in tapes.markers:
                carried.append(writer.write(store))
                continue
            local = tapes.markers[key][1]
            # A tape that goes into several results is whole in each of them.
            is_first = users.setdefault(local, id(tape)) == id(tape)
            sources.append(f"{local}_tape" + ("" if is_first else ".fork()"))
        taken, kept = [f"({''.join([f'{one}, ' for one in many])})" for many in (sources, carried)]
        lines.append(f"s{tapes.local(tape)} = {taken}, {kept}")
    op = writer.bind(tapes.op)
    for tape in tapes.leaving:
        filed, gaps = [], []
        joined = {tapes.markers[key][2] for key in tape.stores if key in tapes.markers}
        for unique_id, gap in seen_from_outside(tape.gaps, tape.records, {}).items():
            ids = ids_since(0, gap.origins or ())
            origins = writer.origins(tape.gaps[unique_id].origins, ids)
            if origins and unique_id not in joined:
                known = writer.bind(gap)
                gaps.append(f"({writer.id_of(unique_id)}, {known}, {origins}), ")
        for owner, unique_id, cotangent, gradients in records:
            if owner is not tape:
                continue
            reached = list(gradients.values())
            plan = BackwardPlan(cotangent, reached, forward, program.backend)
            kept = "".join([f"{writer.node(node)}, " for node in plan.residuals])
            parents = "".join([f"{writer.id_of(one)}, " for one in gradients])
            make = writer.bind(plan.pullbacks)
            filed.append(f"({writer.id_of(unique_id)}, {make}({kept}), ({parents})), ")
        local = tapes.local(tape)
        told = f"({''.join(filed)}), ({''.join(gaps)})"
        lines.append(f"{local} = give_tape({op}, *s{local}, {told})")
    return lines


def _records(writer: ResultWriter) -> list[tuple[OwnedTape, int, Node, dict[int, Node]]]:
    """Run the tapes that leave backwards; return what leads to each result.

    That is the tape, the id of the result, its cotangent, and the gradients of what came in.
    """
    tapes, program = writer.tapes, writer.tapes.program
    waiting: list[tuple[OwnedTape, int, Any]] = [
        (tape, one.id, one.array)
        for one in tapes.results
        for tape in tapes.leaving
        if one.id in tape.records and one.array.dtype.kind == "f"
    ]
    leafs = frozenset(writer.ids).union(*[tape.records for tape in tapes.leaving])
    found: list[tuple[OwnedTape, int, Node, dict[int, Node]]] = []
    done: set[tuple[int, int]] = set()
    while waiting:
        tape, unique_id, value = waiting.pop()
        if (id(tape), unique_id) in done:
            continue
        done.add((id(tape), unique_id))
        node = program.add(Kind.INPUT, None, (), value.shape, value.dtype, label="cotangent")
        cotangent = ArrayTracer(program, node)
        # What is computed of a value lies as that does, and so does its cotangent, as a rule.
        cotangent.lies_as(np.asarray(computed_like((value,), value.shape)))
        started: dict[int, Any] = {unique_id: cotangent}
        arrays = Recorder(tape.records).replay(started, leafs - tape.records.keys())
        gradients = {key: node_of(program, array) for key, array in arrays.items()}
        found.append((tape, unique_id, node, gradients))
        # Another tape that leaves may have recorded how one of these was computed.
        waiting += [
            (other, key, one)
            for key, one in arrays.items()
            for other in tapes.leaving
            if key in other.records
        ]
    return found
