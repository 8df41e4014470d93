"""Rows that do not lie end to end, as what windows read of an array does not."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
from numpy.lib.stride_tricks import as_strided

from tapetensor.arrays.array import Array
from tapetensor.compiler.emit.code import Code
from tapetensor.compiler.plan.groups import Group
from tapetensor.compiler.trace.node import Node
from tapetensor.native.layout import Form, Layout


def rows_apart(
    group: Group, layout: Layout, code: Code, over: Mapping[Node, Node]
) -> dict[Node, tuple[Array, Array]]:
    """Return where the rows of operands begin that are not in C order, as `_starts_of_rows` does.

    LLVM vectorizes no loop over an array that may lie in any way, as those do that are left out.

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
            found = _starts_of_rows(array, len(layout.lead))
            if found is not None:
                apart[parent] = found
    return apart


def _has_rows(group: Group, layout: Layout, node: Node) -> bool:
    """Tell whether all steps of a group that read an operand read a row of it for one of theirs."""
    readers = [step for step in group.nodes if node in step.parents()]
    seen = [layout.see(node, step) for step in readers]
    return all(one is not None and one.form is Form.WIDE and one.row == "i" for one in seen)


def _starts_of_rows(array: Array, leading: int) -> tuple[Array, Array] | None:
    """Return all that lies between an array's first and last element, and where rows begin in it.

    Args:
        array: the array.
        leading: the number of its axes that count rows.

    Returns:
        None where the elements of a row do not lie end to end, or rows lie backwards.
    """
    size = array.itemsize
    inner = array[(0,) * leading]
    if not inner.flags.c_contiguous or any(one < 0 or one % size for one in array.strides):
        return None
    starts: Array = np.zeros((), np.int64)
    for count, stride in zip(array.shape[:leading], array.strides, strict=False):
        starts = starts[..., None] + np.arange(count) * (stride // size)
    starts = starts.reshape(-1)
    extent = int(starts.max()) + math.prod(array.shape[leading:])
    return as_strided(array, (extent,), (size,)), starts
