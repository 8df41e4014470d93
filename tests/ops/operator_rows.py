"""Rows of the operators, of `maximum` and `minimum`, and of the comparisons."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

import tapetensor as tt
from tests.ops.kinds import ARRAY, HUGE, NAN, NUMBER_OR_TENSOR, TENSOR, refuses
from tests.ops.rows import Op, Refusal, Sample, each, given, named, refused, spaced

# Pairs of shapes that broadcast: equal, a row, both ways at once, 0-d, without elements.
_BROADCASTING = (
    ((3, 4), (3, 4)),
    ((3, 4), (4,)),
    ((4,), (3, 4)),
    ((2, 1, 4), (3, 1)),
    ((3, 4), ()),
    ((), (3,)),
    ((), ()),
    ((0, 3), (3,)),
    ((1,), (0,)),
    ((2, 0, 3), (1, 3)),
)
_MATRIX_SHAPES = (
    ((3, 4), (4, 5)),
    ((2, 3, 4), (4, 5)),
    ((3, 4), (2, 4, 5)),
    ((2, 3, 4), (2, 4, 5)),
    ((2, 1, 3, 4), (5, 4, 2)),
    ((4,), (4,)),
    ((4,), (4, 5)),
    ((3, 4), (4,)),
    ((4,), (2, 4, 5)),
    ((2, 3, 4), (4,)),
    ((3, 0), (0, 5)),
    ((0, 4), (4, 5)),
    ((3, 4), (4, 0)),
    ((2, 0, 4), (4, 5)),
    ((2, 3, 0), (0,)),
    ((1, 1), (1, 1)),
)
_X = spaced(3)
_INTEGERS = np.arange(3)
_NO_PARTNER = (
    *refuses(spaced(2, 3), NUMBER_OR_TENSOR),
    refused(tt.ArgumentTypeError, "from_numpy", _X, [1.0, 2.0, 3.0]),
    refused(tt.ShapeError, r"\(3,\) and \(4,\)", _X, spaced(4)),
    refused(tt.ShapeError, r"\(2, 3\) and \(2, 4\)", spaced(2, 3), spaced(2, 4)),
)
_NO_HUGE = (refused(tt.DTypeError, "does not fit dtype float64", _X, HUGE),)


def _pairs(
    shapes: tuple[tuple[tuple[int, ...], tuple[int, ...]], ...],
    low: float = -2.03,
    high: float = 2.11,
) -> tuple[Sample, ...]:
    # Other seeds and bounds on the right, so that no two elements tie.
    return tuple(
        given(
            spaced(*lhs, low=low, high=high),
            spaced(*rhs, low=low + 0.017, high=high + 0.011, seed=1),
        )
        for lhs, rhs in shapes
    )


def _with_numbers(number: float, low: float = -2.03, high: float = 2.11) -> tuple[Sample, ...]:
    """Samples with a number on either side: Python's, and numpy's, which impose no dtype."""
    x = spaced(3, 4, low=low, high=high)
    numbers = (number, math.ceil(number), np.float64(number), np.float32(number), np.int64(2))
    return (
        *(given(x, one) for one in numbers),
        *(given(one, x) for one in numbers),
        given(spaced(low=low, high=high), number),
        given(number, spaced(low=low, high=high)),
        given(spaced(0, 2), number),
    )


def _arithmetic(
    name: str,
    symbol: str,
    call: Callable[..., Any],
    *,
    low: float = -2.03,
    reflected: str | None = None,
    reference: Callable[..., Any] | None = None,
    takes_integers: bool = True,
    refusals: tuple[Refusal, ...] = _NO_HUGE,
) -> Op:
    return Op(
        name=name,
        covers=(f"__{symbol}__", f"__r{symbol}__"),
        call=call,
        reference=reference or call,
        samples=(*_pairs(_BROADCASTING, low), *_with_numbers(1.5, low)),
        refusals=(
            *_NO_PARTNER,
            refused(
                tt.ArgumentTypeError,
                f"^{reflected or name}: the other operand must be a tensor or a number",
                # A text that is divided is Python's format.
                each(None, *("1",) * (symbol != "mod"), 1j, [1.0], [1.0, 2.0, 3.0], ARRAY),
                spaced(2, 3),
            ),
            *refusals,
        ),
        takes_integers=takes_integers,
    )


def _comparison(name: str, symbol: str, call: Callable[..., Any]) -> Op:
    x = spaced(3, 4)
    return Op(
        name=name,
        covers=(f"__{symbol}__",),
        call=call,
        reference=call,
        samples=(
            *_pairs(_BROADCASTING),
            given(x, x),
            given(x, 0.5),
            given(0.5, x),
            given(x, np.float64(0.5)),
            given(np.float64(0.5), x),
        ),
        refusals=(*_NO_PARTNER, refused(tt.ArgumentValueError, "range of dtype float64", _X, HUGE)),
        takes_integers=True,
        result_dtype=np.bool_,
        is_differentiable=False,
    )


_MASK = np.array([[True, False, True], [False, False, True]])
_ROW = np.array([True, False, False])


def _logic(name: str, symbol: str, call: Callable[..., Any]) -> Op:
    return Op(
        name=name,
        covers=(f"__{symbol}__",),
        call=call,
        reference=call,
        samples=(given(_MASK, ~_MASK[:, ::-1]), given(_MASK, _ROW), given(_MASK[:0], _ROW)),
        refusals=(
            refused(tt.DTypeError, "float", _MASK, _X),
            refused(tt.DTypeError, "float", _X, _ROW),
            refused(
                tt.DTypeError, "expected a bool tensor, got", _MASK, each(None, 1, True, ARRAY)
            ),
            refused(tt.ShapeError, r"\(2, 3\) and \(2,\)", _MASK, _ROW[:2]),
        ),
        result_dtype=np.bool_,
        is_differentiable=False,
    )


def _floor_divide(lhs: Any, rhs: Any) -> Any:
    return np.floor_divide(np.real(lhs), np.real(rhs))


def _remainder(lhs: Any, rhs: Any) -> Any:
    value = np.remainder(np.real(lhs), np.real(rhs))
    if not (np.iscomplexobj(lhs) or np.iscomplexobj(rhs)):
        return value
    return value + 1j * (np.imag(lhs) - np.imag(rhs) * _floor_divide(lhs, rhs))


def _atan2(lhs: Any, rhs: Any) -> Any:
    # The imaginary part of a logarithm is not analytic; that of a quotient of two is.
    angle = np.arctan2(np.real(lhs), np.real(rhs))
    return angle + (np.arctan(lhs / rhs) - np.arctan(np.real(lhs) / np.real(rhs)))


OPERATORS = (
    _arithmetic(
        "floor_divide",
        "floordiv",
        operator.floordiv,
        low=1.1,
        reflected="rfloor_divide",
        reference=_floor_divide,
    ),
    _arithmetic(
        "remainder", "mod", operator.mod, low=1.1, reflected="rremainder", reference=_remainder
    ),
    Op(
        name="remainder",
        covers=("__mod__",),
        call=operator.mod,
        reference=_remainder,
        samples=(
            given(spaced(9), 0.7),
            given(spaced(9), -0.7),
            given(spaced(8), spaced(8, low=1.17, high=1.93)),
            given(spaced(1), 0.7),
            given(spaced(0), 0.7),
        ),
        takes_integers=True,
    ),
    *(
        named(
            name,
            reference,
            samples=(
                *_pairs(_BROADCASTING),
                *(given(spaced(3, 4), one) for one in (0.37, 1)),
                given(spaced(), -0.37),
            ),
            refusals=(*_NO_PARTNER, *_NO_HUGE, refused(tt.DTypeError, "int64", _INTEGERS, 2)),
        )
        for name, reference in (
            ("logaddexp", lambda x, y: np.log(np.exp(x) + np.exp(y))),
            ("atan2", _atan2),
        )
    ),
    _arithmetic("add", "add", operator.add),
    _arithmetic("subtract", "sub", operator.sub, reflected="rsubtract"),
    _arithmetic("multiply", "mul", operator.mul),
    _arithmetic(
        "divide",
        "truediv",
        operator.truediv,
        low=0.31,
        reflected="rdivide",
        takes_integers=False,
        refusals=(refused(tt.DTypeError, "dtype int64", _INTEGERS, 2),),
    ),
    _arithmetic(
        "power",
        "pow",
        operator.pow,
        low=0.31,
        reflected="rpower",
        takes_integers=False,
        refusals=(
            refused(tt.ArgumentValueError, "^rpower.* > 0", each(-2.0, 0, 0.0, NAN), _X),
            refused(tt.DTypeError, "dtype int64", _INTEGERS, each(2, -1)),
        ),
    ),
    Op(
        name="power",
        covers=("__pow__",),
        call=operator.pow,
        reference=operator.pow,
        # Exponents for which a negative base is smooth too.
        samples=tuple(
            given(spaced(4), exponent) for exponent in (0, 1, 2, 3, 4, 5, -1, 2.0, -2.0, -3.0)
        ),
    ),
    Op(
        name="negative",
        covers=("__neg__",),
        call=operator.neg,
        reference=operator.neg,
        samples=tuple(given(spaced(*shape)) for shape in ((3, 4), (), (0,))),
        refusals=(refused(tt.DTypeError, "not defined for dtype bool", _MASK),),
        takes_integers=True,
    ),
    *(
        named(
            name,
            getattr(np, name),
            samples=(
                *_pairs(_BROADCASTING),
                *(given(spaced(3, 4), one) for one in (0.37, 1, np.float64(0.37))),
                given(spaced(), 0.37),
            ),
            refusals=(
                *_NO_PARTNER,
                *_NO_HUGE,
                refused(tt.ArgumentTypeError, "the left operand", each(None, 1.0, ARRAY), _X),
            ),
            takes_integers=True,
        )
        for name in ("maximum", "minimum")
    ),
    Op(
        name="matmul",
        covers=("__matmul__",),
        call=operator.matmul,
        reference=operator.matmul,
        samples=_pairs(_MATRIX_SHAPES),
        refusals=(
            *refuses(spaced(2, 3), TENSOR),
            refused(tt.DTypeError, "dtypes differ", spaced(2, 3), tt.ones((4, 3, 2))),
            refused(tt.ArgumentTypeError, "the right operand", _X, 2.0),
            refused(tt.ShapeError, r"\(3,\) @ \(2, 3\), 3 != 2", _X, spaced(2, 3)),
            refused(tt.ShapeError, r"\(3,\) @ \(4,\), 3 != 4", _X, spaced(4)),
            refused(
                tt.ShapeError, r"\(2, 3\) @ \(2, 3\), 3 != 2; transpose", spaced(2, 3), spaced(2, 3)
            ),
            refused(tt.ShapeError, "0-d", _X, spaced()),
            refused(tt.ShapeError, "0-d", spaced(), _X),
            refused(tt.ShapeError, r"\(2, 1, 3\) @ \(3, 4, 2\)", spaced(2, 1, 3), spaced(3, 4, 2)),
            refused(
                tt.ShapeError,
                r"leading axes of \(2, 3, 4\) @ \(5, 4, 2\)",
                spaced(2, 3, 4),
                spaced(5, 4, 2),
            ),
        ),
        takes_integers=True,
    ),
    _comparison("equal", "eq", operator.eq),
    _comparison("not_equal", "ne", operator.ne),
    _comparison("less", "lt", operator.lt),
    _comparison("less_equal", "le", operator.le),
    _comparison("greater", "gt", operator.gt),
    _comparison("greater_equal", "ge", operator.ge),
    _logic("and", "and", operator.and_),
    _logic("or", "or", operator.or_),
    _logic("xor", "xor", operator.xor),
    Op(
        name="invert",
        covers=("__invert__",),
        call=operator.invert,
        reference=operator.invert,
        samples=(given(_MASK), given(np.array(True)), given(_MASK[:0])),
        refusals=tuple(
            refused(tt.DTypeError, f"bool tensor, got {x.dtype}", x) for x in (_X, _INTEGERS)
        ),
        result_dtype=np.bool_,
        is_differentiable=False,
    ),
)
