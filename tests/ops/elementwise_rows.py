"""Rows of the functions of one tensor that act on every element by itself."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import tapetensor as tt
from tapetensor.arrays.array import Array
from tests.ops.kinds import HUGE, INF, NAN, NOT_FINITE, NUMBER, SMALL, TENSOR, refuses
from tests.ops.rows import Op, Sample, each, given, refused, spaced

_REAL_ERF = np.vectorize(math.erf, otypes=[np.float64])


def _over_shapes(low: float = -2.03, high: float = 2.11, /, **options: Any) -> tuple[Sample, ...]:
    """Samples of every kind of shape: a matrix, 0-d, one element, and two without any."""
    shapes = ((3, 4), (), (1,), (0,), (2, 0, 3))
    return tuple(given(spaced(*shape, low=low, high=high), **options) for shape in shapes)


def _sigmoid(x: Array) -> Array:
    return 1.0 / (1.0 + np.exp(-x))


def _normal_cdf(x: Array) -> Array:
    # math.erf takes real numbers; the step off the real line is the derivative, the density.
    cdf: Array = 0.5 * (1.0 + _REAL_ERF(np.real(x) / math.sqrt(2.0)))
    if not np.iscomplexobj(x):
        return cdf
    density = np.exp(-0.5 * np.square(np.real(x))) / math.sqrt(2.0 * math.pi)
    stepped: Array = cdf + 1j * np.imag(x) * density
    return stepped


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
    Op(name="exp", covers=("exp",), call=tt.Tensor.exp, reference=np.exp, samples=_over_shapes()),
    Op(
        name="log",
        covers=("log",),
        call=tt.Tensor.log,
        reference=np.log,
        samples=_over_shapes(0.3, 4.0),
    ),
    Op(
        name="sqrt",
        covers=("sqrt",),
        call=tt.Tensor.sqrt,
        reference=np.sqrt,
        samples=_over_shapes(0.3, 4.0),
    ),
    Op(
        name="square",
        covers=("square",),
        call=tt.Tensor.square,
        reference=np.square,
        samples=_over_shapes(),
        refusals=_NO_MASK,
        takes_integers=True,
    ),
    Op(
        name="abs",
        covers=("abs",),
        call=tt.Tensor.abs,
        reference=lambda x: np.where(np.real(x) >= 0, x, -x),
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
    Op(name="sin", covers=("sin",), call=tt.Tensor.sin, reference=np.sin, samples=_over_shapes()),
    Op(name="cos", covers=("cos",), call=tt.Tensor.cos, reference=np.cos, samples=_over_shapes()),
    Op(
        name="tanh",
        covers=("tanh",),
        call=tt.Tensor.tanh,
        reference=np.tanh,
        samples=_over_shapes(),
    ),
    Op(
        name="sigmoid",
        covers=("sigmoid",),
        call=tt.Tensor.sigmoid,
        reference=_sigmoid,
        samples=_over_shapes(),
    ),
    Op(
        name="relu",
        covers=("relu",),
        call=tt.Tensor.relu,
        reference=lambda x: np.maximum(x, 0),
        samples=_over_shapes(),
        refusals=_NO_MASK,
        takes_integers=True,
    ),
    Op(
        name="silu",
        covers=("silu",),
        call=tt.Tensor.silu,
        reference=lambda x: x * _sigmoid(x),
        samples=_over_shapes(),
    ),
    Op(
        name="gelu",
        covers=("gelu",),
        call=tt.Tensor.gelu,
        reference=lambda x: x * _normal_cdf(x),
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
    Op(
        name="softplus",
        covers=("softplus",),
        call=tt.Tensor.softplus,
        reference=lambda x: np.log1p(np.exp(x)),
        samples=_over_shapes(),
    ),
    Op(
        name="clip",
        covers=("clip",),
        call=tt.Tensor.clip,
        reference=_clip,
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
    Op(
        name="leaky_relu",
        covers=("leaky_relu",),
        call=tt.Tensor.leaky_relu,
        reference=lambda x, negative_slope=0.01: _leaky(x, negative_slope),
        samples=(
            *_over_shapes(),
            given(spaced(5), negative_slope=-0.5),
            given(spaced(5), negative_slope=0),
        ),
        refusals=(*refuses(_X, negative_slope=SMALL),),
    ),
    Op(
        name="prelu",
        covers=("prelu",),
        call=tt.Tensor.prelu,
        reference=_leaky,
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
    Op(
        name="elu",
        covers=("elu",),
        call=tt.Tensor.elu,
        reference=lambda x, alpha=1.0: np.where(np.real(x) > 0, x, alpha * (np.exp(x) - 1.0)),
        samples=(*_over_shapes(), given(spaced(5), alpha=0.3)),
        refusals=(*refuses(_X, alpha=SMALL),),
    ),
    Op(
        name="nans_to",
        covers=("nans_to",),
        call=tt.Tensor.nans_to,
        reference=lambda x, number: np.where(np.isnan(x), number, x),
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
    Op(
        name="reciprocal",
        covers=("reciprocal",),
        call=tt.Tensor.reciprocal,
        reference=lambda x: 1.0 / x,
        samples=(*_over_shapes(0.3, 4.0), *_over_shapes(-4.0, -0.3)),
    ),
)
