"""numpy's functions of elements in the ops of ONNX."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from tapetensor.compiler.trace.node import DType
from tapetensor.onnx.graph import Graph

# Takes the operands in the dtype that numpy's loop works in, and returns the result.
Rule: TypeAlias = Callable[..., str]

BOOL = np.dtype(np.bool_)


def _op(name: str, on_bools: str = "") -> Rule:
    def rule(graph: Graph, dtype: DType, *operands: str) -> str:
        return graph.add(on_bools if on_bools and dtype == BOOL else name, *operands)

    return rule


def _times(name: str, factor: float) -> Rule:
    def rule(graph: Graph, dtype: DType, x: str) -> str:
        return graph.add("Mul", graph.add(name, x), graph.constant(factor, dtype))

    return rule


def _compared(name: str) -> Rule:
    def rule(graph: Graph, dtype: DType, *operands: str) -> str:
        if dtype == BOOL:
            operands = tuple([graph.cast(one, BOOL, np.dtype(np.int32)) for one in operands])
        return graph.add(name, *operands)

    return rule


def _not_equal(graph: Graph, dtype: DType, lhs: str, rhs: str) -> str:
    return graph.add("Not", graph.add("Equal", lhs, rhs))


def _is_negative(graph: Graph, dtype: DType, x: str) -> str:
    """Tell where the sign is set; the reciprocal of -0 tells it from 0."""
    zero = graph.constant(0, dtype)
    below = graph.add("Less", x, zero)
    if dtype.kind != "f":
        return below
    return graph.add("Or", below, graph.add("Less", graph.add("Reciprocal", x), zero))


def _copysign(graph: Graph, dtype: DType, size: str, sign: str) -> str:
    size = graph.add("Abs", size)
    negative = _is_negative(graph, dtype, sign)
    return graph.add("Where", negative, graph.add("Neg", size), size)


def _logical(name: str) -> Rule:
    def rule(graph: Graph, dtype: DType, *operands: str) -> str:
        return graph.add(name, *[graph.cast(one, dtype, BOOL) for one in operands])

    return rule


def _of_floats(name: str) -> Rule:
    """Return the rule of a question that integers answer with no."""

    def rule(graph: Graph, dtype: DType, x: str) -> str:
        return graph.add(name, x) if dtype.kind == "f" else _not_equal(graph, dtype, x, x)

    return rule


def _isfinite(graph: Graph, dtype: DType, x: str) -> str:
    either = [_of_floats(one)(graph, dtype, x) for one in ("IsInf", "IsNaN")]
    return graph.add("Not", graph.add("Or", *either))


def _trunc(graph: Graph, dtype: DType, x: str) -> str:
    if dtype.kind != "f":
        return x
    below = graph.add("Less", x, graph.constant(0, dtype))
    return graph.add("Where", below, graph.add("Ceil", x), graph.add("Floor", x))


def _whole(name: str) -> Rule:
    """Return the rule of a rounding, which leaves integers as they are."""

    def rule(graph: Graph, dtype: DType, x: str) -> str:
        return graph.add(name, x) if dtype.kind == "f" else x

    return rule


def _log1p(graph: Graph, dtype: DType, x: str) -> str:
    """Kahan's way: what is lost in ``1 + x`` is divided out."""
    one = graph.constant(1, dtype)
    above = graph.add("Add", x, one)
    lost = graph.add("Div", x, graph.add("Sub", above, one))
    near = graph.add("Mul", graph.add("Log", above), lost)
    # Where 1 + x is 1, or x is the larger part, or infinite.
    far = graph.add("Where", graph.add("Greater", x, one), graph.add("Log", above), near)
    return graph.add("Where", graph.add("Equal", above, one), x, far)


def _expm1(graph: Graph, dtype: DType, x: str) -> str:
    """Kahan's way, where the result is near to x."""
    one = graph.constant(1, dtype)
    power = graph.add("Exp", x)
    less = graph.add("Sub", power, one)
    near = graph.add("Mul", less, graph.add("Div", x, graph.add("Log", power)))
    far = graph.add("Greater", graph.add("Abs", x), one)
    both = graph.add("Where", far, less, near)
    return graph.add("Where", graph.add("Equal", power, one), x, both)


def _logaddexp(graph: Graph, dtype: DType, lhs: str, rhs: str) -> str:
    apart = graph.add("Neg", graph.add("Abs", graph.add("Sub", lhs, rhs)))
    more = _log1p(graph, dtype, graph.add("Exp", apart))
    high = graph.add("Max", lhs, rhs)
    # Two infinities have no difference.
    same = graph.add("Add", lhs, graph.constant(math.log(2), dtype))
    return graph.add("Where", graph.add("Equal", lhs, rhs), same, graph.add("Add", high, more))


def _remainder(graph: Graph, dtype: DType, lhs: str, rhs: str) -> str:
    zero = graph.constant(0, dtype)
    if dtype.kind in "iu":
        is_zero = graph.add("Equal", rhs, zero)
        divisor = graph.add("Where", is_zero, graph.constant(1, dtype), rhs)
        found = graph.add("Mod", lhs, divisor)
        return graph.add("Where", is_zero, zero, found)
    rest = graph.add("Mod", lhs, rhs, fmod=1)
    differ = graph.add("Xor", graph.add("Less", rest, zero), graph.add("Less", rhs, zero))
    wrong = graph.add("And", differ, _not_equal(graph, dtype, rest, zero))
    return graph.add("Where", wrong, graph.add("Add", rest, rhs), rest)


def _floor_divide(graph: Graph, dtype: DType, lhs: str, rhs: str) -> str:
    rest = _remainder(graph, dtype, lhs, rhs)
    is_zero = graph.add("Equal", rhs, graph.constant(0, dtype))
    if dtype.kind in "iu":
        divisor = graph.add("Where", is_zero, graph.constant(1, dtype), rhs)
        found = graph.add("Div", graph.add("Sub", lhs, rest), divisor)
        return graph.add("Where", is_zero, graph.constant(0, dtype), found)
    whole = graph.add("Round", graph.add("Div", graph.add("Sub", lhs, rest), rhs))
    return graph.add("Where", is_zero, graph.add("Div", lhs, rhs), whole)


def _normal_cdf(graph: Graph, dtype: DType, x: str) -> str:
    turned = graph.add("Erf", graph.add("Mul", x, graph.constant(math.sqrt(0.5), dtype)))
    twice = graph.add("Add", turned, graph.constant(1, dtype))
    return graph.add("Mul", twice, graph.constant(0.5, dtype))


_HERE = "tapetensor.kernels"
RULES: dict[str, Rule] = {
    "np.add": _op("Add", on_bools="Or"),
    "np.subtract": _op("Sub"),
    "np.multiply": _op("Mul", on_bools="And"),
    "np.divide": _op("Div"),
    "np.negative": _op("Neg"),
    "np.positive": _op("Identity"),
    "np.absolute": _op("Abs", on_bools="Identity"),
    "np.fabs": _op("Abs"),
    "np.sign": _op("Sign"),
    "np.square": lambda graph, _, x: graph.add("Mul", x, x),
    "np.sqrt": _op("Sqrt"),
    "np.reciprocal": _op("Reciprocal"),
    "np.power": _op("Pow"),
    "np.float_power": _op("Pow"),
    "np.exp": _op("Exp"),
    "np.exp2": lambda graph, dtype, x: graph.add("Pow", graph.constant(2, dtype), x),
    "np.expm1": _expm1,
    "np.log": _op("Log"),
    "np.log2": _times("Log", 1 / math.log(2)),
    "np.log10": _times("Log", 1 / math.log(10)),
    "np.log1p": _log1p,
    "np.logaddexp": _logaddexp,
    **{f"np.{one}": _op(one.capitalize()) for one in ("sin", "cos", "tan", "sinh", "cosh", "tanh")},
    **{f"np.arc{one}": _op(f"A{one}") for one in ("sin", "cos", "tan", "sinh", "cosh", "tanh")},
    "np.maximum": _op("Max", on_bools="Or"),
    "np.minimum": _op("Min", on_bools="And"),
    "np.clip": lambda graph, _, x, low, high: graph.add("Min", graph.add("Max", x, low), high),
    "np.floor": _whole("Floor"),
    "np.ceil": _whole("Ceil"),
    "np.rint": _whole("Round"),
    "np.trunc": _trunc,
    "np.remainder": _remainder,
    "np.floor_divide": _floor_divide,
    "np.copysign": _copysign,
    "np.signbit": _is_negative,
    "np.isnan": _of_floats("IsNaN"),
    "np.isinf": _of_floats("IsInf"),
    "np.isfinite": _isfinite,
    "np.equal": _op("Equal"),
    "np.not_equal": _not_equal,
    "np.less": _compared("Less"),
    "np.less_equal": _compared("LessOrEqual"),
    "np.greater": _compared("Greater"),
    "np.greater_equal": _compared("GreaterOrEqual"),
    "np.logical_and": _logical("And"),
    "np.logical_or": _logical("Or"),
    "np.logical_xor": _logical("Xor"),
    "np.logical_not": _logical("Not"),
    "np.bitwise_and": _op("BitwiseAnd", on_bools="And"),
    "np.bitwise_or": _op("BitwiseOr", on_bools="Or"),
    "np.bitwise_xor": _op("BitwiseXor", on_bools="Xor"),
    "np.invert": _op("BitwiseNot", on_bools="Not"),
    f"{_HERE}.numerics.special.normal_cdf_of_single": _normal_cdf,
    f"{_HERE}.elementwise._positive_part": _op("Relu"),
    f"{_HERE}.elementwise._logistic_that_overflows": _op("Sigmoid"),
}
