"""Rows that do not lie end to end, as what windows read of an array does not."""

from __future__ import annotations

from collections.abc import Mapping

from tapetensor.arrays.array import Array
from tapetensor.compiler.emit.code import Code
from tapetensor.compiler.plan.groups import Group
from tapetensor.compiler.trace.node import Node
from tapetensor.native.layout import Form, Layout
from tapetensor.native.loading import without_gaps


def rows_apart(
    group: Group, layout: Layout, code: Code, over: Mapping[Node, Node]
) -> dict[Node, tuple[Array, Array]]:
    """Return operands that are not in C order `without_gaps`, and where their rows begin.

    Left out are those of which the elements of a row do not lie end to end, or rows lie backwards:
    LLVM vectorizes no loop over an array that may lie in any way.

    Args:
        group: the steps.
        layout: how a loop sees their operands.
        code: what knows where operands lie.
        over: operands that are written over, by the step that does so; they are left out.
    """
    apart: dict[Node, tuple[Array, Array]] = {}
    for step in group.nodes:
        for parent in step.parents():
            is_inside = parent in group or parent in over.values()
            array = None if is_inside else code.operand(parent).array
            if array is None or array.flags.c_contiguous or not _has_rows(group, layout, parent):
                continue
            leading = len(layout.lead)
            are_whole = array[(0,) * leading].flags.c_contiguous
            if are_whole and all(one >= 0 and one % array.itemsize == 0 for one in array.strides):
                apart[parent] = without_gaps(array, leading)
    return apart


def _has_rows(group: Group, layout: Layout, node: Node) -> bool:
    """Tell whether all steps of a group that read an operand read a row of it for one of theirs."""
    readers = [step for step in group.nodes if node in step.parents()]
    seen = [layout.see(node, step) for step in readers]
    return all(one is not None and one.form is Form.WIDE and one.row == "i" for one in seen)
