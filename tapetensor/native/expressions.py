"""Which Python expression of numbers a ufunc stands for; numba compiles it.

A step that the compiler captures whole, such as ``_logistic_that_overflows(x, out)``, is traced
once by itself, and what it calls is its formula: so native code has no second one.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

from tapetensor.compiler.plan.storage import made_of
from tapetensor.compiler.trace.node import DType, Kind, Node
from tapetensor.compiler.trace.operations import cast_to, select
from tapetensor.compiler.trace.program import Program
from tapetensor.compiler.trace.tracer import ArrayTracer
from tapetensor.errors import TraceError

# What generated code calls the types of numbers.
TYPES: dict[DType, str] = {
    np.dtype(kind): name
    for kind, name in (
        (np.bool_, "b1"), (np.int8, "i1"), (np.int16, "i2"), (np.int32, "i4"), (np.int64, "i8"),
        (np.uint8, "u1"), (np.float32, "f4"), (np.float64, "f8"),
    )
}  # fmt: skip

_FLOATS = "f"
_NUMBERS = "fi"

# For each ufunc, the kinds of dtypes that it is written for, and the expression. A choice of
# numpy's that a NaN decides is written so that it does here.
_EXPRESSIONS: dict[Any, tuple[str, str]] = {
    np.add: (_NUMBERS, "{0} + {1}"),
    np.subtract: (_NUMBERS, "{0} - {1}"),
    np.multiply: (_NUMBERS, "{0} * {1}"),
    np.divide: (_FLOATS, "{0} / {1}"),
    np.negative: (_NUMBERS, "-{0}"),
    np.positive: (_NUMBERS, "{0}"),
    np.absolute: (_NUMBERS, "abs({0})"),
    np.square: (_NUMBERS, "{0} * {0}"),
    np.reciprocal: (_FLOATS, "{type}(1) / {0}"),
    np.sqrt: (_FLOATS, "np.sqrt({0})"),
    np.maximum: (_NUMBERS, "choose(({0} >= {1}) | ({0} != {0}), {0}, {1})"),
    np.minimum: (_NUMBERS, "choose(({0} <= {1}) | ({0} != {0}), {0}, {1})"),
    np.sign: (
        _FLOATS,
        "choose({0} != {0}, {0}, {type}({0} > {type}(0)) - {type}({0} < {type}(0)))",
    ),
    np.copysign: (_FLOATS, "math.copysign({0}, {1})"),
    np.isnan: (_FLOATS, "{0} != {0}"),
    np.isfinite: (_FLOATS, "abs({0}) < {type}(math.inf)"),
    np.equal: (_NUMBERS, "{0} == {1}"),
    np.not_equal: (_NUMBERS, "{0} != {1}"),
    np.greater: (_NUMBERS, "{0} > {1}"),
    np.greater_equal: (_NUMBERS, "{0} >= {1}"),
    np.less: (_NUMBERS, "{0} < {1}"),
    np.less_equal: (_NUMBERS, "{0} <= {1}"),
    np.logical_and: ("b", "{0} & {1}"),
    np.logical_or: ("b", "{0} | {1}"),
    np.logical_not: ("b", "not {0}"),
    np.exp: (_FLOATS, "{exp}({0})"),
    np.log: (_FLOATS, "{log}({0})"),
    np.log1p: (_FLOATS, "{log1p}({0})"),
    np.tanh: (_FLOATS, "{tanh}({0})"),
}
# LLVM takes it that an int64 never overflows; numpy's wraps around, as a uint64 does.
_OVERFLOWING = frozenset({np.add, np.subtract, np.multiply, np.square})
# These are polynomials in float32, and the library's functions in float64.
_TRANSCENDENTAL = ("exp", "log", "log1p", "tanh")

# Reductions: what is taken into the result, and their dtypes. A product of floats in another order
# than numpy's may be infinite on its way, where numpy's is none.
REDUCTIONS: dict[Any, str] = {
    np.add: _NUMBERS,
    np.multiply: "i",
    np.maximum: _FLOATS,
    np.minimum: _FLOATS,
    np.logical_and: "b",
    np.logical_or: "b",
    np.vecdot: _FLOATS,
}


def kind_of(dtype: DType) -> str:
    """Return "f", "i" or "b" for a dtype that native code knows; empty for another."""
    return {"f": "f", "i": "i", "u": "i", "b": "b"}[dtype.kind] if dtype in TYPES else ""


def cast(source: str, old: DType, new: DType) -> str:
    """Return the expression of a number as one of another dtype."""
    if old == new:
        return source
    return f"({source} != 0)" if new == np.bool_ else f"{TYPES[new]}({source})"


def literal(value: Any, dtype: DType) -> str:
    """Return the expression of a number that is known."""
    number = value.item() if isinstance(value, np.ndarray | np.generic) else value
    if dtype.kind == "f":
        special = {math.inf: "math.inf", -math.inf: "-math.inf"}
        text = "math.nan" if math.isnan(number) else special.get(number, repr(float(number)))
    else:
        text = repr(number)
    return f"{TYPES[dtype]}({text})"


def of_ufunc(ufunc: Any, operands: list[tuple[str, DType]]) -> tuple[str, DType] | None:
    """Return the expression of a ufunc and its dtype; None where native code has none."""
    known = _EXPRESSIONS.get(ufunc)
    if known is None or any(dtype not in TYPES for _, dtype in operands):
        return None
    kinds, template = known
    *loop, result = ufunc.resolve_dtypes((*[dtype for _, dtype in operands], None))
    if result not in TYPES or any(one not in TYPES or kind_of(one) not in kinds for one in loop):
        return None
    sources = [
        cast(source, dtype, wanted) for (source, dtype), wanted in zip(operands, loop, strict=True)
    ]
    if ufunc in _OVERFLOWING and result == np.int64:
        sources = [f"u8({source})" for source in sources]
    name = TYPES[loop[0]]
    library = "" if loop[0] == np.float32 else "math."
    functions = {one: f"{library}{one}" for one in _TRANSCENDENTAL}
    source = template.format(*sources, type=name, **functions)
    return (source if result == np.bool_ else f"{TYPES[result]}({source})"), result


def is_known(node: Node) -> bool:
    """Tell whether native code can compute a step of a group."""
    if any(one.dtype not in TYPES or one.size == 0 for one in (node, *node.parents())):
        return False
    if node.kind is Kind.VIEW:
        # Only axes of size 1 may come or go.
        (seen,) = node.args
        return node.function.name == "reshape" and _stripped(node.shape) == _stripped(seen.shape)
    if node.kind is Kind.REDUCE:
        kinds = REDUCTIONS.get(node.function, "")
        return kind_of(node.dtype) in tuple(kinds)
    if node.kind is not Kind.ELEMENTWISE or not all(isinstance(one, Node) for one in node.args):
        return False
    if node.function is select:
        return True
    if node.function is cast_to(node.dtype):
        # What a float that is no integer becomes, or one that is too large, the processor decides.
        (source,) = node.args
        return node.dtype.kind in "fb" or source.dtype.kind in "iub"
    dtypes = [one.dtype for one in node.args]
    if isinstance(node.function, np.ufunc):
        found = of_ufunc(node.function, [("x", dtype) for dtype in dtypes])
        return found is not None and found[1] == node.dtype
    if node.dtype.kind != "f" or any(dtype != node.dtype for dtype in dtypes):
        return False
    parts = formula_of(node.function, len(dtypes), node.dtype)
    return parts is not None and all(is_known(part) for part in parts[len(dtypes) :])


def _stripped(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return a shape without the axes of size 1 at its end."""
    while shape and shape[-1] == 1:
        shape = shape[:-1]
    return shape


@lru_cache(maxsize=256)
def formula_of(function: Callable[..., Any], count: int, dtype: DType) -> tuple[Node, ...] | None:
    """Return what a step of so many arguments does; None where it is not made of ufuncs.

    Nodes of the arguments come first, then those of ufuncs, of which the last is the result.
    """
    program = Program("numba")
    arguments = [program.add(Kind.INPUT, None, (), (1,), dtype) for _ in range(count)]
    try:
        # Who asks while errors raise is not the one who computes.
        with np.errstate(all="ignore"):
            result = function(*[ArrayTracer(program, one) for one in arguments])
    except (TraceError, TypeError):
        return None
    computed = made_of([result.node]) - {*arguments}
    parts = [one for one in program.nodes if one in computed and one.kind is not Kind.CONSTANT]
    are_ufuncs = all(isinstance(one.function, np.ufunc) for one in parts)
    return (*arguments, *parts) if parts and are_ufuncs else None
