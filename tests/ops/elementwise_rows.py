"""Rows of the functions of one tensor that act on every element by itself, and of rounding."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import tapetensor as tt
from tapetensor.arrays.array import Array
from tests.ops.kinds import HUGE, INF, NAN, NOT_FINITE, NUMBER, SMALL, TENSOR, refuses
from tests.ops.rows import Op, Sample, each, given, named, refused, spaced

_REAL_ERF = np.vectorize(math.erf, otypes=[np.float64])


def _over_shapes(low: float = -2.03, high: float = 2.11, /, **options: Any) -> tuple[Sample, ...]:
    """Samples of every kind of shape: a matrix, 0-d, one element, and two without any."""
    shapes = ((3, 4), (), (1,), (0,), (2, 0, 3))
    return tuple(given(spaced(*shape, low=low, high=high), **options) for shape in shapes)


def sigmoid(x: Array) -> Array:
    return 1.0 / (1.0 + np.exp(-x))


def _erf(x: Array) -> Array:
    # math.erf takes real numbers; the step off the real line is the derivative.
    value: Array = _REAL_ERF(np.real(x))
    if not np.iscomplexobj(x):
        return value
    slope = 2.0 / math.sqrt(math.pi) * np.exp(-np.square(np.real(x)))
    stepped: Array = value + 1j * np.imag(x) * slope
    return stepped


def _normal_cdf(x: Array) -> Array:
    return 0.5 * (1.0 + _erf(x / math.sqrt(2.0)))


def _gelu_tanh(x: Array, approximate: str) -> Array:
    assert approximate == "tanh"
    return 0.5 * x * (1.0 + np.tanh(math.sqrt(2.0 / math.pi) * (x + 0.044715 * x**3)))


def _clip(x: Array, low: float | None = None, high: float | None = None) -> Array:
    return np.clip(x, low, high)


def _leaky(x: Array, slope: Any) -> Array:
    return np.where(np.real(x) > 0, x, x * slope)


def _dropped(x: Array, p: float, seed: int) -> Array:
    return x * (np.random.default_rng(seed).random(x.shape, np.float32) >= p) / (1.0 - p or 1.0)


def _drop(x: Any, p: Any, seed: int) -> Any:
    """Drop from a plain operand, too, which the op leaves as it is."""
    rng = np.random.default_rng(seed)
    if x.owns_tape:
        return x.dropout(p, rng=rng)
    return x.trace().dropout(p, rng=rng).detach()


_X = spaced(3)
_MASK = np.array([True, False])
_NO_MASK = (refused(tt.DTypeError, "not defined for dtype bool", _MASK),)

ELEMENTWISE = (
    named("exp", np.exp, samples=_over_shapes()),
    named("log", np.log, samples=_over_shapes(0.3, 4.0)),
    named("sqrt", np.sqrt, samples=_over_shapes(0.3, 4.0)),
    named("square", np.square, samples=_over_shapes(), refusals=_NO_MASK, takes_integers=True),
    named(
        "abs",
        lambda x: np.where(np.real(x) >= 0, x, -x),
        samples=_over_shapes(),
        takes_integers=True,
    ),
    Op(
        name="abs",
        covers=("__abs__",),
        call=abs,
        reference=lambda x: np.where(np.real(x) >= 0, x, -x),
        samples=(given(_X),),
        takes_integers=True,
    ),
    named("sin", np.sin, samples=_over_shapes()),
    named("cos", np.cos, samples=_over_shapes()),
    named("tanh", np.tanh, samples=_over_shapes()),
    named("sigmoid", sigmoid, samples=_over_shapes()),
    named(
        "relu",
        lambda x: np.maximum(x, 0),
        samples=_over_shapes(),
        refusals=_NO_MASK,
        takes_integers=True,
    ),
    named("silu", lambda x: x * sigmoid(x), samples=_over_shapes()),
    named(
        "gelu",
        lambda x: x * _normal_cdf(x),
        # Out to where each of the three ranges of the error function is used.
        samples=(*_over_shapes(), *_over_shapes(-9.3, 9.1)),
        refusals=(
            refused(
                tt.ArgumentValueError,
                '"none" or "tanh", got',
                _X,
                approximate=each(None, "fast", "exact", 1, True),
            ),
        ),
    ),
    Op(
        name="gelu_tanh",
        covers=("gelu",),
        call=tt.Tensor.gelu,
        reference=_gelu_tanh,
        samples=_over_shapes(approximate="tanh"),
    ),
    named("softplus", lambda x: np.log1p(np.exp(x)), samples=_over_shapes()),
    named(
        "clip",
        _clip,
        samples=(
            *_over_shapes(low=-0.71, high=1.13),
            given(spaced(5), low=-0.71),
            given(spaced(5), high=1),
            given(spaced(5), low=-1, high=1),
            # A numpy scalar imposes no dtype.
            given(spaced(5), low=np.float64(-0.71), high=np.float64(1.13)),
            given(spaced(5), low=-math.inf, high=math.inf),
        ),
        refusals=(
            refused(tt.ArgumentValueError, "low=None and high=None", _X),
            refused(tt.ArgumentValueError, "low=nan", _X, low=NAN),
            refused(tt.DTypeError, "does not fit dtype float64", _X, low=HUGE),
            refused(
                tt.ArgumentTypeError,
                "low must be a number, got",
                _X,
                low=each("1", 1j, [1.0], np.ones(3)),
            ),
            refused(tt.ArgumentValueError, "high=(nan|None)", _X, high=each(NAN, None)),
            refused(tt.ArgumentTypeError, "high must be a number", _X, high="1"),
            refused(tt.ArgumentValueError, "low=1.0", _X, low=1.0, high=each(0.5, -INF)),
            refused(tt.DTypeError, "not defined for dtype int64", np.arange(3), low=0.5),
        ),
        takes_integers=True,
    ),
    named(
        "leaky_relu",
        lambda x, negative_slope=0.01: _leaky(x, negative_slope),
        samples=(
            *_over_shapes(),
            given(spaced(5), negative_slope=-0.5),
            given(spaced(5), negative_slope=0),
        ),
        refusals=(*refuses(_X, negative_slope=SMALL),),
    ),
    named(
        "prelu",
        _leaky,
        samples=(
            given(spaced(3, 4), spaced(3, 4, seed=1)),
            given(spaced(3, 4), spaced(seed=1)),
            given(spaced(2, 3, 4), spaced(4, seed=1)),
            given(spaced(2, 3, 4), spaced(3, 1, seed=1)),
            given(spaced(), spaced(seed=1)),
            given(spaced(0, 3), spaced(3, seed=1)),
        ),
        refusals=(
            *refuses(spaced(2, 3), TENSOR),
            refused(tt.ShapeError, r"\(4,\) do not broadcast", _X, spaced(4)),
            refused(tt.ShapeError, r"\(2, 3\) do not broadcast", _X, spaced(2, 3)),
        ),
    ),
    named(
        "elu",
        lambda x, alpha=1.0: np.where(np.real(x) > 0, x, alpha * (np.exp(x) - 1.0)),
        samples=(*_over_shapes(), given(spaced(5), alpha=0.3)),
        refusals=(*refuses(_X, alpha=SMALL),),
    ),
    named(
        "nans_to",
        lambda x, number: np.where(np.isnan(x), number, x),
        samples=(*_over_shapes(number=7.0), given(_X, number=7)),
        refusals=(
            *refuses(_X, number=NUMBER),
            refused(tt.DTypeError, "does not fit dtype float64", _X, number=HUGE),
        ),
    ),
    Op(
        name="dropout",
        covers=("dropout",),
        call=_drop,
        reference=_dropped,
        samples=(
            *_over_shapes(p=0.4, seed=3),
            given(spaced(5), p=0.0, seed=0),
            given(spaced(5), p=1, seed=0),
        ),
        refusals=(
            *refuses(_X, p=NUMBER, seed=0),
            refused(
                tt.ArgumentValueError,
                r"p must be in \[0, 1\], got",
                _X,
                p=each(*NOT_FINITE, -0.1, 1.1, 1.5),
                seed=0,
            ),
        ),
    ),
    named(
        "reciprocal",
        lambda x: 1.0 / x,
        samples=(*_over_shapes(0.3, 4.0), *_over_shapes(-4.0, -0.3)),
    ),
)


def _smooth(name: str, reference: Any, low: float = -2.03, high: float = 2.11) -> Op:
    return named(name, reference, _over_shapes(low, high))


_INTEGERS = np.arange(3)
_NO_INTEGERS = (refused(tt.DTypeError, "not defined for dtype int64", _INTEGERS),)

TRANSCENDENTAL = (
    _smooth("tan", np.tan, -1.3, 1.4),
    _smooth("asin", np.arcsin, -0.83, 0.91),
    _smooth("acos", np.arccos, -0.83, 0.91),
    _smooth("atan", np.arctan),
    _smooth("sinh", np.sinh),
    _smooth("cosh", np.cosh),
    _smooth("asinh", np.arcsinh),
    _smooth("acosh", np.arccosh, 1.2, 4.1),
    _smooth("atanh", np.arctanh, -0.83, 0.91),
    _smooth("expm1", np.expm1),
    _smooth("log1p", np.log1p, -0.7, 3.1),
    _smooth("log2", np.log2, 0.3, 4.1),
    _smooth("log10", np.log10, 0.3, 4.1),
    _smooth("rsqrt", lambda x: 1.0 / np.sqrt(x), 0.3, 4.1),
    # Out to where each of the three ranges of the error function is used.
    _smooth("erf", _erf, -6.3, 6.1),
)
STEPS = tuple(
    named(
        name,
        lambda x, function=function: function(np.real(x)),
        _over_shapes(),
        refusals=_NO_MASK if name == "sign" else _NO_INTEGERS,
        takes_integers=name == "sign",
    )
    for name, function in (
        ("floor", np.floor),
        ("ceil", np.ceil),
        ("round", np.rint),
        ("trunc", np.trunc),
        ("sign", np.sign),
    )
)
PREDICATES = tuple(
    named(
        name,
        getattr(np, name),
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
