"""The executor of groups on numba: one loop of numbers for each group, kept in a cache."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from typing_extensions import override

from tapetensor.arrays.array import Array
from tapetensor.compiler.emit.blocks import BlockLoops, emit_calls
from tapetensor.compiler.emit.code import Code
from tapetensor.compiler.plan.groups import Group
from tapetensor.compiler.trace.node import Kind, Node, View, laid_out
from tapetensor.kernels.numerics import threads
from tapetensor.native import cache
from tapetensor.native.expressions import formula_of, is_known
from tapetensor.native.kernels import native_kernel, native_update
from tapetensor.native.layout import Form, Layout, layout_of
from tapetensor.native.loading import SMALLEST_FOR_THREADS, seen, without_gaps
from tapetensor.native.loops import Loop, Parameter
from tapetensor.native.scalars import numba
from tapetensor.optim.group import Update

# A share of the rows has about so many elements, where several threads may work on them.
_SHARE = 1 << 16
# One number is added to another so often at most before the sum is added to others.
_LONGEST_SUM = 1 << 9
# The same where the elements lie end to end, and are added in many lanes.
_LONGEST_FLAT_SUM = 1 << 13
# So many pairs of arrays, of which one is written to, LLVM compares before it uses vector
# instructions: they may overlap for all that it knows. With more of them it uses none.
_MOST_COMPARISONS = 128


class NativeLoops(BlockLoops):
    """Runs groups with loops that numba compiles; others with numpy, block by block."""

    @override
    def takes(self, node: Node) -> bool:
        """Tell whether there is an expression for a step.

        Memory that begins as a constant may have any shape, which would keep others out of its
        group.
        """
        is_start = all(one.kind is Kind.CONSTANT for one in node.parents())
        return super().takes(node) and is_known(node) and not is_start

    @override
    def is_worth_it(self, group: Group) -> bool:
        """Tell whether a loop does more than one ufunc, or blocks save trips to memory."""
        steps = [node for node in group.nodes if node.kind is not Kind.VIEW]
        is_one = len(steps) == 1 and isinstance(steps[0].function, np.ufunc)
        is_loop = not is_one and layout_of(group) is not None and gains(group)
        return is_loop or super().is_worth_it(group)

    @override
    def prepared(self, schedule: list[Node]) -> list[Node]:
        """Return the schedule with sums of columns in the groups that compute the columns."""
        return with_column_sums(schedule)

    @override
    def kernel(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return what runs a step that is captured whole."""
        return native_update(function) if isinstance(function, Update) else native_kernel(function)

    @override
    def build(self, group: Group, code: Code) -> None:
        """Write what runs a group."""
        layout = layout_of(group) if gains(group) else None
        if layout is None or not self._is_built(group, layout, code):
            super().build(group, code)

    def _is_built(self, group: Group, layout: Layout, code: Code) -> bool:
        """Write the call of a loop; False if an array cannot be seen as the loop sees it."""
        over = _written_over(group, code)
        by_row = layout_of(group, is_apart=True)
        apart = rows_apart(group, by_row, code, over) if by_row is not None else {}
        if by_row is not None and apart:
            layout = by_row
        loop = Loop(group, layout, over, apart)
        source = loop.source()
        if loop.comparisons() > _MOST_COMPARISONS:
            return False
        step = self._rows_of_share(layout, loop)
        shares = -(-layout.rows // step)
        starts = [apart[one.node][1] for one in loop.arrays() if one.seen.is_apart]
        arguments = [_bound(one, code) for one in starts]
        for parameter in loop.arrays():
            if parameter.seen.is_apart:
                arguments.append(_bound(apart[parameter.node][0], code))
                continue
            argument = _argument(parameter, code)
            if argument is None:
                return False
            arguments.append(argument)
        combined: list[tuple[Node, str]] = []
        for node, total in loop.totals.items():
            out = code.operand(node)
            shape = (shares, *total.seen.shape[1:])
            if shares == 1:
                arguments.append((code.seen_as(out, shape), seen(node.dtype, len(shape))))
                continue
            name, _ = argument = _bound(np.empty(shape, node.dtype), code)
            arguments.append(argument)
            reduce = code.bind(node.function.reduce)
            target = code.seen_as(out, shape[1:])
            combined.append((node, f"{reduce}({name}, 0, None, {target})"))
        types = [numba().typeof(0)] * 4
        run = code.bind(cache.load(source, (*types, *[one[1] for one in arguments])))
        sources = ", ".join([str(step), str(layout.rows), *[one[0] for one in arguments]])
        workers = threads.count() if self._is_for_threads(layout, loop) else 1
        calls = [
            (run, f"{first}, {last}, {sources}") for first, last in threads.shares(shares, workers)
        ]
        emit_calls(group, calls, code, are_together=len(calls) > 1, name="native group")
        for node, line in combined:
            code.emit(node, line, title="take together")
        return True

    def _is_for_threads(self, layout: Layout, loop: Loop) -> bool:
        elements = layout.rows * loop.longest_row()
        return not self.has_products and elements >= SMALLEST_FOR_THREADS

    def _rows_of_share(self, layout: Layout, loop: Loop) -> int:
        """Return over how many rows totals are taken at once.

        It depends on shapes, never on the number of threads, nor do results.
        """
        width = loop.longest_row()
        is_flat = len(layout.lead) == layout.rank
        step = layout.rows
        if self._is_for_threads(layout, loop):
            step = max(16, _SHARE // width)
        if loop.totals:
            step = min(step, _LONGEST_FLAT_SUM if is_flat else _LONGEST_SUM)
        return min(step, layout.rows)


def _written_over(group: Group, code: Code) -> dict[Node, Node]:
    """Return the steps that are written over an operand from outside, each with that operand."""
    arrays = code.memory.arrays
    return {
        node: operand
        for node in group.nodes
        if node in group.kept and node in arrays and node.kind is Kind.ELEMENTWISE
        for operand in node.args
        if operand not in group and arrays.get(operand) is arrays[node]
    }


def _argument(parameter: Parameter, code: Code) -> tuple[str, Any] | None:
    """Return the source of an array as a loop sees it, and its type; None if no view is so."""
    node, shape = parameter.node, parameter.seen.shape
    operand = code.operand(node)
    if operand.array is not None:
        array = operand.array
        if parameter.seen.form is Form.SCALAR:
            array = array[(0,) * array.ndim + (...,)]
        view = array.reshape(shape)
        if not np.may_share_memory(view, array):
            return None
        return _bound(view, code)
    source = operand.source
    if parameter.seen.form is Form.SCALAR:
        # A number of numpy's may stand for an array of no axes.
        source = f"{code.bind(np.asarray)}({source})"
    elif not laid_out(node).flags.c_contiguous:
        # Otherwise numba compiles the loop again, for arrays that lie in any way, and slower.
        source = f"{code.bind(np.ascontiguousarray)}({source})"
    if node.shape != shape:
        source = f"{source}.reshape({shape})"
    return source, seen(node.dtype, len(shape))


def _bound(array: Array, code: Code) -> tuple[str, Any]:
    """Return the source of an array that is known, and its type."""
    is_seen = array.flags.c_contiguous and array.flags.writeable
    # To tell a type, numba loads more of numpy.
    kind = seen(array.dtype, array.ndim) if is_seen else numba().typeof(array)
    return code.bind(array), kind


# In float64 these are calls of the C library, number by number, which take 3 to 15 times as long
# as numpy. So many other steps have to gain by the loop what one of them loses.
_LOST: dict[Any, int] = {np.exp: 16, np.log: 16, np.tanh: 60, np.log1p: 80}


def gains(group: Group) -> bool:
    """Tell whether the steps of a group gain more by a loop than its functions lose."""
    balance = 0
    for node in group.nodes:
        if node.kind is Kind.VIEW:
            continue
        size = max([one.size for one in (node, *node.parents())])
        for function in _functions(node):
            lost = _LOST.get(function, 0) if node.dtype == np.float64 else 0
            balance += size * (1 - lost)
    return balance >= 0


def _functions(node: Node) -> list[Any]:
    """Return the functions that a step is made of."""
    if node.kind is Kind.ELEMENTWISE and not isinstance(node.function, np.ufunc):
        parts = formula_of(node.function, len(node.args), node.dtype)
        if parts is not None:
            return [part.function for part in parts[len(node.args) :]]
    return [node.function]


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
