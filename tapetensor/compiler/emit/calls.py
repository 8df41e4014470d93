"""The source of the fastest numpy call that computes a value into given memory."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from tapetensor.compiler.emit.code import Code, Operand
from tapetensor.compiler.trace.node import AS_PRODUCT, Kind, Node
from tapetensor.kernels.numerics.extremes import starts_of_rows
from tapetensor.kernels.numerics.sums import PRODUCT_DTYPES, is_short, ones

# A number is repeated to an array of at most so many elements.
_SMALL = 1 << 12
# These functions find the places of the elements that the reductions find.
_SEARCHES: dict[Any, str] = {np.maximum: "argmax", np.minimum: "argmin"}


@dataclass
class Call:
    """Writes the call of one node.

    Args:
        code: gives names to what the source uses.
        node: what is computed.
        out: the array that the result goes to.
        operands: its operands.
        rows: how many rows a block of the operands has; None where they are whole.
    """

    code: Code
    node: Node
    out: Operand
    operands: list[Operand]
    rows: int | None = None

    def source(self) -> str:
        """Return the call, one line."""
        node, out = self.node, self.out.source
        operands = [operand.source for operand in self.operands]
        if node.kind is Kind.REDUCE:
            return self._of_rows() or self._reduction()
        if node.kind is Kind.MATMUL and _is_product_of_matrices(node) and self._is_in_order():
            # The method begins half a microsecond sooner than the ufunc.
            lhs, rhs = operands
            return f"{lhs}.dot({rhs}, {out})"
        if node.function in _SEARCHES:
            # numpy deprecates a third positional argument of these two.
            return f"{self.code.bind(node.function)}({self._as_arrays()}, out={out})"
        return f"{self.code.bind(node.function)}({', '.join(operands)}, {out})"

    def _is_in_order(self) -> bool:
        return self.out.array is None or self.out.array.flags.c_contiguous

    def _as_arrays(self) -> str:
        """Return the operands, with a number repeated to an array where that is small.

        numpy compares two arrays with vector instructions, but not an array and a number.
        """
        shape = self.node.shape
        is_small = 0 < self.node.size <= _SMALL and self.rows is None
        return ", ".join(
            [
                self.code.bind(np.full(shape, node.detail))
                if is_small and node.kind is Kind.CONSTANT and node.shape == ()
                else operand.source
                for node, operand in zip(self.node.args, self.operands, strict=True)
            ]
        )

    def _reduction(self) -> str:
        axes, options = self.node.detail
        reduce = self.code.bind(self.node.function.reduce)
        extra = "".join([f", {key}={self.code.bind(value)}" for key, value in options])
        return f"{reduce}({self.operands[0].source}, {axes}, None, {self.out.source}, True{extra})"

    def _of_rows(self) -> str:
        """Return a reduction over the last axes as `tapetensor.kernels` does it; empty if none."""
        node, code = self.node, self.code
        if node.function is np.vecdot:
            kept_rows = node.shape[:-1] if self.rows is None else (self.rows, *node.shape[1:-1])
            lhs, rhs = self.operands
            out = code.seen_as(self.out, kept_rows)
            return f"{code.bind(np.vecdot)}({lhs.source}, {rhs.source}, {out})"
        (operand,) = node.args
        axes, options = node.detail
        kept = len(operand.shape) - len(axes)
        shape = operand.shape if self.rows is None else (self.rows, *operand.shape[1:])
        rows, width = math.prod(shape[:kept]), math.prod(shape[kept:])
        is_last = axes[:1] == (kept,) and not options and node.dtype == operand.dtype
        search = _SEARCHES.get(node.function)
        is_found = is_last and search is not None and is_short(rows * width, width)
        if options != AS_PRODUCT and not is_found:
            return ""
        array = code.seen_as(self.operands[0], (rows, width))
        out = code.seen_as(self.out, (rows,))
        if options == AS_PRODUCT:
            return f"{array}.dot({code.bind(ones(width, node.dtype))}, {out})"
        places = code.bind(np.empty(rows, np.intp))
        starts = code.bind(starts_of_rows(rows, width))
        flat = code.seen_as(self.operands[0], (rows * width,))
        return (
            f"{array}.{search}(1, {places}); {code.bind(np.add)}({places}, {starts}, {places}); "
            f"{flat}.take({places}, None, {out}, 'clip')"
        )


def _is_product_of_matrices(node: Node) -> bool:
    lhs, rhs = node.args
    return (
        node.dtype in PRODUCT_DTYPES
        and lhs.dtype == rhs.dtype == node.dtype
        and len(lhs.shape) in (1, 2)
        and len(rhs.shape) == 2
    )
