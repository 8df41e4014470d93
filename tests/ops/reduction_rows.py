"""Rows of the reductions, and of the softmax, which normalizes by one."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

import tapetensor as tt
from tapetensor.arrays.array import Array
from tests.ops.kinds import (
    AXES,
    AXIS,
    FLAG,
    INTEGER,
    NOT_FINITE,
    NOT_NEGATIVE,
    NUMBER,
    ONE_OR_ALL_AXES,
    refuses,
)
from tests.ops.rows import Op, Refusal, Sample, each, given, named, refused, spaced

_AXES: tuple[dict[str, Any], ...] = (
    {},
    {"axis": None},
    {"axis": 0},
    {"axis": 1, "keepdims": True},
    {"axis": -1},
    {"axis": -3, "keepdims": True},
    {"axis": (0, 2)},
    {"axis": (-1, 0), "keepdims": True},
    {"axis": ()},
    {"keepdims": True},
)
_X = spaced(2, 3)
_NO_AXES = (
    *refuses(_X, axis=AXES),
    *refuses(_X, keepdims=FLAG),
    refused(tt.AxisError, "0-d", spaced(), axis=0),
)


def _over_axes(**options: Any) -> tuple[Sample, ...]:
    return (
        *(given(spaced(2, 3, 4), **axes, **options) for axes in _AXES),
        given(spaced(), **options),
    )


def _reduction(
    name: str,
    reference: Callable[..., Any],
    *,
    samples: tuple[Sample, ...],
    refusals: tuple[Refusal, ...] = (),
    takes_integers: bool = False,
) -> Op:
    samples, refusals = (*_over_axes(), *samples), (*_NO_AXES, *refusals)
    return named(name, reference, samples, refusals=refusals, takes_integers=takes_integers)


def var(x: Array, axis: Any = None, keepdims: bool = False, correction: float = 0) -> Array:
    # np.var squares the modulus, which is not analytic.
    deviation = x - np.mean(x, axis=axis, keepdims=True)
    count = x.size // max(np.mean(x, axis=axis).size, 1)
    squares: Any = deviation**2
    variance: Array = squares.sum(axis=axis, keepdims=keepdims) / (count - correction)
    return variance


def _argsort(x: Array, axis: int = -1, descending: bool = False) -> Array:
    """Return the order, one row after another by Python's stable sort."""

    def ranked(row: Array) -> Array:
        order = sorted(range(row.size), key=row.tolist().__getitem__, reverse=descending)
        return np.array(order, np.int64)

    return np.apply_along_axis(ranked, axis, x) if x.size else np.zeros(x.shape, np.int64)


def _sort(x: Array, axis: int = -1, descending: bool = False) -> Array:
    order = np.argsort(x.real, axis)
    return np.take_along_axis(x, np.flip(order, axis) if descending else order, axis)


def _quantile(x: Array, q: float, axis: Any = None, keepdims: bool = False) -> Array:
    given_axes = range(x.ndim) if axis is None else np.atleast_1d(axis).tolist()
    axes = tuple(one % x.ndim for one in given_axes)
    kept = [one for one in range(x.ndim) if one not in axes]
    rows = np.transpose(x, (*kept, *axes)).reshape(
        *[x.shape[one] for one in kept], math.prod(x.shape[one] for one in axes)
    )
    ranked = np.sort(rows, axis=-1)
    below = int(q * (rows.shape[-1] - 1))
    share = q * (rows.shape[-1] - 1) - below
    y = ranked[..., below]
    if share:
        y = (1 - share) * y + share * ranked[..., below + 1]
    y = np.where(np.isnan(ranked[..., -1]), np.nan, y).astype(x.dtype)
    return np.expand_dims(y, axes) if keepdims else y


def _logsumexp(x: Array, axis: Any = None, keepdims: bool = False) -> Array:
    exponentials: Any = np.exp(x)
    total: Array = np.log(exponentials.sum(axis=axis, keepdims=keepdims))
    return total


def softmax(x: Array, axis: int = -1) -> Array:
    exponentials: Array = np.exp(x - np.max(x, axis, keepdims=True, initial=-np.inf))
    probabilities: Array = exponentials / np.sum(exponentials, axis=axis, keepdims=True)
    return probabilities


_NOTHING_TO_CHOOSE = (
    refused(tt.ShapeError, "element of none", spaced(0)),
    refused(tt.ShapeError, r"\(2, 0\)", spaced(2, 0), axis=each(None, -1)),
    refused(tt.ShapeError, r"\(0, 3\)", spaced(0, 3), axis=0),
)
# Along an axis of size 0 there is nothing to add up; along another there are no sums to make.
_EMPTY = (given(spaced(2, 0), axis=-1), given(spaced(0, 3), axis=1), given(spaced(0)))
_NO_ROWS = (given(spaced(0, 3), axis=1),)
_CORRECTED = tuple(
    given(spaced(2, 3, 4), axis=axis, correction=correction)
    for axis, correction in ((None, 1), (0, 1), (-1, 0.5), ((0, 1), np.float64(1.0)))
)
_BYTES, _SHORT = np.array([[100, 27], [-128, -128]], np.int8), np.array([300, 300], np.int16)
_LARGE, _UNSIGNED = np.array([10**10] * 3), np.array([10**19] * 2, np.uint64)
_NO_CORRECTION = (
    *refuses(_X, correction=NUMBER),
    refused(
        tt.ArgumentValueError,
        ">= 0 and less than the 6 elements that are reduced, got",
        _X,
        correction=each(-1, 6, 7),
    ),
    refused(tt.ArgumentValueError, "must be finite, got", _X, correction=each(*NOT_FINITE)),
    refused(tt.ArgumentValueError, "the 2 elements", _X, axis=0, correction=each(-1, 2)),
    refused(tt.ArgumentValueError, "the 0 elements", spaced(0)),
)
_SOFTMAX_SAMPLES = (
    given(spaced(2, 3, 4)),
    given(spaced(2, 3, 4), axis=0),
    given(spaced(2, 3, 4), axis=-2),
    given(spaced(1)),
    given(spaced(2, 0)),
    given(spaced(0, 3)),
)
_NO_AXIS = (*refuses(_X, axis=AXIS), refused(tt.AxisError, "0-d", spaced()))

_MASK = spaced(2, 3, 4) > 0.3


MASK_REDUCTIONS = tuple(
    named(
        name,
        getattr(np, name),
        samples=(
            *(given(_MASK, **axes) for axes in _AXES),
            given(np.array(True)),
            given(_MASK[:, :0]),
            given(_MASK[:, :0], axis=1),
        ),
        refusals=(
            *refuses(_MASK[:, 0, :3], axis=AXES),
            *refuses(_MASK[0], keepdims=FLAG),
            refused(tt.DTypeError, "expected a bool tensor, got float64", _X),
        ),
        result_dtype=np.bool_,
        is_differentiable=False,
    )
    for name in ("any", "all")
)
REDUCTIONS = (
    named(
        "norm",
        lambda x, **axes: np.sqrt(np.sum(x * x, **axes)),
        # Not over single elements: a length of 0 is a kink, and so is the sign of one.
        samples=(
            *(given(spaced(2, 3, 4), **axes) for axes in _AXES if axes.get("axis") != ()),
            *_NO_ROWS,
            given(spaced(1)),
        ),
        refusals=_NO_AXES,
    ),
    _reduction(
        "prod",
        np.prod,
        # None, one and two zeros in a row.
        samples=(*_EMPTY, given(spaced(3, 3) * (1 - np.tri(3, k=-1)), axis=-1)),
        refusals=(
            refused(tt.DTypeError, "bool; write x.astype", _X > 0),
            refused(tt.ArgumentValueError, "int16 does not hold 90000; write", _SHORT, axis=0),
            refused(tt.ArgumentValueError, r"int64 .* 1e\+30; .*\(np.float64\)", _LARGE),
        ),
        takes_integers=True,
    ),
    _reduction(
        "sum",
        np.sum,
        samples=_EMPTY,
        refusals=(
            refused(tt.DTypeError, "bool; count with", _X > 0),
            refused(tt.ArgumentValueError, "int8 does not hold -256; write", _BYTES, axis=-1),
            refused(tt.ArgumentValueError, "uint8 does not hold 383", _BYTES.astype(np.uint8)),
            refused(tt.ArgumentValueError, r"uint64 .* 2e\+19; .*\(np.float64\)", _UNSIGNED),
        ),
        takes_integers=True,
    ),
    _reduction("mean", np.mean, samples=_NO_ROWS),
    *(
        _reduction(
            name,
            getattr(np, name),
            samples=_NO_ROWS,
            refusals=_NOTHING_TO_CHOOSE,
            takes_integers=True,
        )
        for name in ("max", "min")
    ),
    _reduction(
        "median",
        lambda x, axis=None, keepdims=False: _quantile(x, 0.5, axis, keepdims),
        samples=_NO_ROWS,
        refusals=_NOTHING_TO_CHOOSE,
    ),
    named(
        "quantile",
        _quantile,
        samples=(
            *(given(spaced(2, 3, 4), 0.3, **axes) for axes in _AXES),
            given(spaced(5), 0.25),
            given(spaced(5), 0),
            given(spaced(2, 3), 1.0, axis=0),
            given(spaced(1), 0.5),
            given(spaced(), 0.5),
            given(spaced(0, 3), 0.7, axis=1),
        ),
        refusals=(
            *refuses(_X, 0.5, axis=AXES),
            *refuses(_X, 0.5, keepdims=FLAG),
            *refuses(_X, NUMBER),
            refused(tt.ArgumentValueError, r"q must be in \[0, 1\]", _X, each(-0.1, 1.1, np.nan)),
            refused(tt.ShapeError, "element of none", spaced(0), 0.5),
        ),
    ),
    _reduction("var", var, samples=(*_CORRECTED, *_NO_ROWS), refusals=_NO_CORRECTION),
    named(
        "std",
        lambda x, eps=0.0, **options: np.sqrt(var(x, **options) + eps),
        # Not over single elements, as for `var`: a spread of 0 is a kink.
        samples=(
            *(given(spaced(2, 3, 4), **axes) for axes in _AXES if axes.get("axis") != ()),
            *_CORRECTED,
            given(spaced(2, 3), axis=-1, eps=0.1),
            given(spaced(3, 1), axis=-1, keepdims=True, eps=0.1),
            given(spaced(1), eps=0.1),
            *_NO_ROWS,
        ),
        refusals=(*_NO_AXES, *_NO_CORRECTION, *refuses(_X, eps=NOT_NEGATIVE)),
    ),
    _reduction("logsumexp", _logsumexp, samples=_NO_ROWS),
    named("softmax", softmax, samples=_SOFTMAX_SAMPLES, refusals=_NO_AXIS),
    named(
        "log_softmax",
        lambda x, axis=-1: np.log(softmax(x, axis)),
        samples=_SOFTMAX_SAMPLES,
        refusals=_NO_AXIS,
    ),
    named(
        "normalize",
        lambda x, axis=-1, eps=1e-5: (
            (x - np.mean(x, axis, keepdims=True)) / np.sqrt(var(x, axis, keepdims=True) + eps)
        ),
        samples=(
            given(spaced(2, 3, 4)),
            given(spaced(2, 3, 4), axis=0, eps=0.1),
            given(spaced(2, 3, 4), axis=-2, eps=0),
            given(spaced(1)),
            given(spaced(0, 3)),
        ),
        refusals=(*_NO_AXIS, *refuses(_X, eps=NOT_NEGATIVE)),
    ),
    named(
        "argsort",
        _argsort,
        samples=(
            given(_X, axis=0),
            given(_X),
            given(_X, axis=-1, descending=True),
            # Equal elements stay in their order.
            given(np.array([1.0, 0.0, 1.0, 0.0]), descending=True),
            given(np.array([[3, 1, 2], [1, 1, 0]], dtype=np.uint8), axis=1, descending=True),
            given(spaced(1)),
            given(spaced(2, 0), axis=1),
        ),
        refusals=(*_NO_AXIS, *refuses(_X, descending=FLAG)),
        takes_integers=True,
        result_dtype=np.int64,
        is_differentiable=False,
    ),
    named(
        "sort",
        _sort,
        samples=(
            given(spaced(2, 3, 4), axis=0),
            given(_X),
            given(spaced(2, 3, 4), axis=-2, descending=True),
            given(spaced(1)),
            given(spaced(2, 0), axis=1),
        ),
        refusals=(*_NO_AXIS, *refuses(_X, descending=FLAG)),
        takes_integers=True,
    ),
    Op(
        name="topk",
        covers=("topk",),
        call=lambda x, k, **options: x.topk(k, **options)[0],
        reference=lambda x, k, axis=-1, largest=True: np.take(
            _sort(x, axis, largest), range(k), axis
        ),
        samples=(
            given(spaced(2, 3, 4), 2),
            given(spaced(2, 3, 4), 1, axis=0, largest=False),
            given(spaced(2, 3, 4), 3, axis=-2),
            given(spaced(4), 2),
            given(spaced(1), 1),
            given(spaced(2, 3), 0),
            given(spaced(2, 0), 0),
        ),
        refusals=(
            *refuses(_X, 1, axis=AXIS),
            *refuses(_X, 1, largest=FLAG),
            *refuses(_X, INTEGER),
            refused(tt.ArgumentValueError, "k must not be negative, got -1", _X, -1),
            refused(tt.ShapeError, r"k=4 is more than axis 1 of shape \(2, 3\)", _X, 4),
            refused(tt.AxisError, "0-d", spaced(), 1),
        ),
        takes_integers=True,
    ),
    *(
        named(
            name,
            getattr(np, name),
            samples=(
                given(spaced(2, 3, 4)),
                given(spaced()),
                given(spaced(2, 3, 4), axis=-1),
                given(spaced(2, 3, 4), axis=0),
                given(spaced(2, 3, 4), axis=-2),
                given(spaced(0, 3), axis=1),
            ),
            refusals=(
                *refuses(_X, axis=ONE_OR_ALL_AXES),
                refused(tt.ShapeError, r"a tensor of shape \(2, 0\) is empty", spaced(2, 0)),
                refused(tt.ShapeError, r"axis 0 .*\(0, 3\) is empty", spaced(0, 3), axis=0),
            ),
            takes_integers=True,
            result_dtype=np.int64,
            is_differentiable=False,
        )
        for name in ("argmax", "argmin")
    ),
)
