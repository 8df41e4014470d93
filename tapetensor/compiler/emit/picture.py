"""The graph of a plan: its steps as ops."""

from __future__ import annotations

from collections.abc import Sequence

from tapetensor.compiler.emit.code import Step
from tapetensor.compiler.trace.node import Kind, Node
from tapetensor.pictures import Graph, Op

_UNMEASURED = "Times are shown after plan.profile(...), which measures them."
_MEMORY = {
    "planned": "planned",
    "optimizer": "the optimizer's",
    "fresh": "fresh, or as the function returns it",
    "view": "a view of another's",
}


def graph_of_plan(title: str, steps: Sequence[Step], seconds: Sequence[float] | None) -> Graph:
    """Return the graph of a plan.

    Args:
        title: the title of the picture.
        steps: the steps of the plan, in order.
        seconds: how long each step took; None if that was not measured.
    """
    owner = {node: step.node for step in steps for node in step.group}
    # Steps that work on one node, or on those of one group, are drawn as one box.
    boxes: dict[Node, list[int]] = {}
    for position, step in enumerate(steps):
        boxes.setdefault(owner.get(step.node, step.node), []).append(position)
    owner.update(zip(boxes, boxes, strict=True))
    # A step that returns nothing, or several arrays, has no shape of its own.
    formless = {node.args[0] for node in owner if node.kind is Kind.PART}
    formless |= {node for node in owner if node.kind in (Kind.UPDATE, Kind.EFFECT)}
    ops: dict[Node, Op] = {}
    for node, positions in boxes.items():
        own = [steps[position] for position in positions]
        nodes = [one for step in own for one in step.group] or [node]
        operands: dict[Node, None] = {}
        for one in nodes:
            for parent in one.parents():
                operands.update(dict.fromkeys(_origins(parent, owner)))
        operands.pop(node, None)
        for operand in operands:
            if operand.kind is Kind.INPUT and operand not in ops:
                ops[operand] = Op(
                    operand.index, operand.label or "input", shape=operand.shape,
                    dtype=operand.dtype, is_input=True,
                )  # fmt: skip
        ops[node] = Op(
            node.index,
            next((step.title for step in own if step.group), own[0].node.name),
            tuple([operand.index for operand in operands]),
            None if node in formless else node.shape,
            None if node in formless else node.dtype,
            None if seconds is None else sum([seconds[position] for position in positions]),
            node.place,
            tuple(_facts(own, nodes)),
        )
    return Graph(title, list(ops.values()), note=_UNMEASURED if seconds is None else "")


def _origins(node: Node, owner: dict[Node, Node]) -> list[Node]:
    """Return the boxes in which the memory of a value was computed, constants left out."""
    found = []
    waiting = [node]
    while waiting:
        one = waiting.pop()
        if one in owner:
            found.append(owner[one])
        elif one.kind is Kind.INPUT:
            found.append(one)
        else:
            # A view of planned memory is no step, nor is a copy that takes over what it copies.
            waiting.extend(one.parents())
    return found


def _facts(steps: list[Step], nodes: list[Node]) -> list[tuple[str, str]]:
    facts = [("memory", _MEMORY[steps[0].memory])]
    if len(nodes) > 1:
        facts.append(("group", "\n".join([repr(node) for node in nodes])))
    facts += [
        ("constant", str(parent.detail))
        for node in nodes
        for parent in node.parents()
        if parent.kind is Kind.CONSTANT and parent.shape == ()
    ]
    facts.append(("code", "\n".join([step.line for step in steps])))
    return facts
