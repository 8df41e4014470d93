"""The source of the fastest numpy call that computes a value into given memory."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tapetensor.compiler.emit.code import Code, Operand
from tapetensor.compiler.trace.node import Kind, Node
from tapetensor.compiler.trace.view import is_in_order, laid_out
from tapetensor.kernels.numerics.along_axes import PRODUCT_DTYPES, ones, starts_of_rows

# A number is repeated to an array of at most so many elements.
_SMALL = 1 << 12
# These functions find the places of the elements that the reductions find.
_SEARCHES: dict[Any, str] = {np.maximum: "argmax", np.minimum: "argmin"}
# What these make of elements is the same before and after they are converted.
_OF_TRUTHS = frozenset({np.logical_and, np.logical_or, np.logical_xor})


def call_into(
    out: Operand, node: Node, operands: list[Operand], code: Code, rows: int | None = None
) -> str:
    """Return the call that computes a node, one line.

    Args:
        out: the array that the result goes to.
        node: what is computed.
        operands: its operands.
        code: gives names to what the source uses.
        rows: how many rows a block of the operands has; None where they are whole.
    """
    sources = [operand.source for operand in operands]
    if node.kind is Kind.REDUCE:
        return _product_or_search(out, node, operands, code, rows) or _reduction(
            out, node, operands, code
        )
    if node.kind is Kind.MATMUL and _is_product_of_matrices(out, node, operands):
        # The method begins half a microsecond sooner than the ufunc.
        lhs, rhs = sources
        return f"{lhs}.dot({rhs}, {out.source})"
    last = out.source
    if node.function in _SEARCHES:
        # numpy deprecates a third positional argument of these two. It compares two arrays with
        # vector instructions, but not an array and a number.
        last = f"out={out.source}"
        if 0 < node.size <= _SMALL and rows is None:
            sources = [
                code.bind(np.full(node.shape, one.detail)) if _is_number(one) else source
                for one, source in zip(node.args, sources, strict=True)
            ]
    return f"{code.bind(node.function)}({', '.join([*sources, last])})"


def _reduction(out: Operand, node: Node, operands: list[Operand], code: Code) -> str:
    axes, _ = node.detail
    reduce, dtype = code.bind(node.function.reduce), "None"
    if node.dtype != node.args[0].dtype and node.function not in _OF_TRUTHS:
        # Elements are converted before they are added, and not their sum.
        dtype = code.bind(node.dtype)
    return f"{reduce}({operands[0].source}, {axes}, {dtype}, {out.source}, True)"


def _product_or_search(
    out: Operand, node: Node, operands: list[Operand], code: Code, count: int | None
) -> str:
    """Return a reduction over the last axes as `tapetensor.kernels` does it; empty if none."""
    first = operands[0]
    if node.function is np.vecdot:
        kept_rows = node.shape[:-1] if count is None else (count, *node.shape[1:-1])
        seen = code.seen_as(out, kept_rows)
        return f"{code.bind(np.vecdot)}({first.source}, {operands[1].source}, {seen})"
    axes, is_by_rows = node.detail
    if not is_by_rows:
        return ""
    (operand,) = node.args
    kept = len(operand.shape) - len(axes)
    shape = operand.shape if count is None else (count, *operand.shape[1:])
    rows, width = math.prod(shape[:kept]), math.prod(shape[kept:])
    array, result = code.seen_as(first, (rows, width)), code.seen_as(out, (rows,))
    if node.function is np.add:
        return f"{array}.dot({code.bind(ones(width, node.dtype))}, {result})"
    places, starts = code.bind(np.empty(rows, np.intp)), code.bind(starts_of_rows(rows, width))
    search = _SEARCHES[node.function]
    return (
        f"{array}.{search}(1, {places}); {code.bind(np.add)}({places}, {starts}, {places}); "
        f"{code.seen_as(first, (rows * width,))}.take({places}, None, {result}, 'clip')"
    )


def _is_number(node: Node) -> bool:
    return node.kind is Kind.CONSTANT and node.shape == ()


def _is_product_of_matrices(out: Operand, node: Node, operands: list[Operand]) -> bool:
    lhs, rhs = node.args
    if (
        node.dtype not in PRODUCT_DTYPES
        or not lhs.dtype == rhs.dtype == node.dtype
        or len(lhs.shape) not in (1, 2)
        or len(rhs.shape) != 2
        # The method multiplies two numbers alone; the ufunc adds 0, so that -0 becomes 0.
        or lhs.size == rhs.size == 1
        or not (out.array is None or out.array.flags.c_contiguous)
    ):
        return False
    arrays = [
        laid_out(one) if operand.array is None else operand.array
        for one, operand in zip(node.args, operands, strict=True)
        if operand.array is not None or not is_in_order(one)
    ]
    # The method copies what has gaps, of which the ufunc may see that it is one array, transposed.
    return all(one.flags.forc for one in arrays)
