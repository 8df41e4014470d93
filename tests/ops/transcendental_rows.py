"""Rows of angles, hyperbolic functions, logarithms, the error function, and of rounding."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

import tapetensor as tt
from tapetensor.arrays.array import Array
from tests.ops.rows import Op, given, refused, spaced

_REAL_ERF = np.vectorize(math.erf, otypes=[np.float64])


def _erf(x: Array) -> Array:
    # math.erf takes real numbers; the step off the real line is the derivative.
    value: Array = _REAL_ERF(np.real(x))
    if not np.iscomplexobj(x):
        return value
    slope = 2.0 / math.sqrt(math.pi) * np.exp(-np.square(np.real(x)))
    stepped: Array = value + 1j * np.imag(x) * slope
    return stepped


def _over_shapes(low: float, high: float) -> tuple[Any, ...]:
    shapes = ((3, 4), (), (0,), (2, 0, 3))
    return tuple(given(spaced(*shape, low=low, high=high)) for shape in shapes)


def _row(
    name: str, reference: Callable[..., Any], low: float = -2.03, high: float = 2.11, **more: Any
) -> Op:
    method = getattr(tt.Tensor, name)
    samples = _over_shapes(low, high)
    return Op(name=name, covers=(name,), call=method, reference=reference, samples=samples, **more)


def _stepping(name: str, function: Callable[..., Any], **more: Any) -> Op:
    return _row(name, lambda x: function(np.real(x)), **more)


_INTEGERS = np.arange(3)
_NO_INTEGERS = (refused(tt.DTypeError, "not defined for dtype int64", _INTEGERS),)

TRANSCENDENTAL = (
    _row("tan", np.tan, -1.3, 1.4),
    _row("asin", np.arcsin, -0.83, 0.91),
    _row("acos", np.arccos, -0.83, 0.91),
    _row("atan", np.arctan),
    _row("sinh", np.sinh),
    _row("cosh", np.cosh),
    _row("asinh", np.arcsinh),
    _row("acosh", np.arccosh, 1.2, 4.1),
    _row("atanh", np.arctanh, -0.83, 0.91),
    _row("expm1", np.expm1),
    _row("log1p", np.log1p, -0.7, 3.1),
    _row("log2", np.log2, 0.3, 4.1),
    _row("log10", np.log10, 0.3, 4.1),
    _row("rsqrt", lambda x: 1.0 / np.sqrt(x), 0.3, 4.1),
    # Out to where each of the three ranges of the error function is used.
    _row("erf", _erf, -6.3, 6.1),
)
STEPS = (
    _stepping("floor", np.floor, refusals=_NO_INTEGERS),
    _stepping("ceil", np.ceil, refusals=_NO_INTEGERS),
    _stepping("round", np.rint, refusals=_NO_INTEGERS),
    _stepping("trunc", np.trunc, refusals=_NO_INTEGERS),
    _stepping(
        "sign",
        np.sign,
        takes_integers=True,
        refusals=(refused(tt.DTypeError, "not defined for dtype bool", np.array([True])),),
    ),
)
PREDICATES = tuple(
    Op(
        name=name,
        covers=(name,),
        call=getattr(tt.Tensor, name),
        reference=getattr(np, name),
        samples=(
            given(np.array([[math.nan, 1.0], [-math.inf, math.inf]])),
            given(np.array(math.nan)),
            given(np.zeros((0, 2))),
        ),
        result_dtype=np.bool_,
        is_differentiable=False,
        refusals=_NO_INTEGERS,
    )
    for name in ("isnan", "isinf", "isfinite")
)
