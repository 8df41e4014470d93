"""Sums of columns as reductions, so that they are part of the group that computes the columns."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tapetensor.arrays.array import Array
from tapetensor.compiler.trace.node import Kind, Node, View
from tapetensor.native.expressions import is_known


def with_column_sums(schedule: list[Node]) -> list[Node]:
    """Return the schedule with sums of columns behind what computes the columns.

    On numpy they are products with ones, the bias gradients of affine layers, say. Where a native
    loop computes what is summed, the sum costs next to nothing there.
    """
    index = max([node.index for node in schedule], default=0)
    sums: dict[Node, list[Node]] = {}
    for node in schedule:
        if not _is_sum_of_columns(node):
            continue
        matrix = node.args[1]
        if matrix.kind is not Kind.ELEMENTWISE or not is_known(matrix):
            continue
        index += 1
        total = replace(
            node, kind=Kind.REDUCE, function=np.add, args=(matrix,), shape=(1, *node.shape),
            detail=((0,), False), index=index,
        )  # fmt: skip
        node.kind = Kind.VIEW
        node.do_instead(View("reshape", node.shape), (total,))
        sums.setdefault(matrix, []).append(total)
    return [one for node in schedule for one in (node, *sums.get(node, []))]


def _is_sum_of_columns(node: Node) -> bool:
    """Tell whether a step is the product of ones and a matrix."""
    if node.kind is not Kind.MATMUL:
        return False
    lhs, rhs = node.args
    if lhs.kind is not Kind.CONSTANT or len(lhs.shape) != 1 or len(rhs.shape) != 2:
        return False
    values: Array = lhs.detail
    return rhs.dtype == node.dtype and rhs.shape[0] > 1 and bool((values == 1).all())
