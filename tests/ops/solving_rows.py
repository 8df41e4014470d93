"""Rows of what is done with square matrices: inverses, determinants, equations, factors."""

from __future__ import annotations

from typing import Any

import numpy as np

import tapetensor as tt
from tapetensor.arrays.array import Array
from tests.ops.kinds import TENSOR, refuses
from tests.ops.rows import Op, Refusal, Sample, given, named, refused, spaced


def _square(*shape: int, seed: int = 0) -> Array:
    """Return matrices that are far from singular."""
    return spaced(*shape, seed=seed) + 3.0 * np.eye(shape[-1])


def _cholesky(x: Array) -> Array:
    """Return the factor entry by entry, which stays analytic where numpy's takes conjugates."""
    x = 0.5 * (np.swapaxes(x, -1, -2) + x)
    y = np.zeros_like(x)
    for row in range(x.shape[-1]):
        for column in range(row + 1):
            rest = x[..., row, column] - np.sum(
                y[..., row, :column] * y[..., column, :column], axis=-1
            )
            is_diagonal = row == column
            y[..., row, column] = np.sqrt(rest) if is_diagonal else rest / y[..., column, column]
    return y


def _full_rank(*shape: int) -> Array:
    """Return matrices whose singular values are far apart, and far from 0."""
    rows, columns = shape[-2:]
    matrices: Array = 0.2 * spaced(*shape, seed=3)
    return matrices + np.eye(rows, columns) * np.arange(2.0, 2.0 + columns)


def _eigh(x: Array) -> Any:
    return np.linalg.eigh(0.5 * (np.swapaxes(x, -1, -2) + x))


def _svd(x: Array) -> Any:
    return np.linalg.svd(x, full_matrices=False)


_SAMPLES = tuple(
    given(_square(*shape)) for shape in ((3, 3), (2, 4, 4), (1, 1), (0, 0), (0, 2, 2), (2, 1, 2, 2))
)
_NOT_SQUARE = (
    refused(tt.ShapeError, r"square matrices \(\*Ds, N, N\), the shape is \(2, 3\)", spaced(2, 3)),
    refused(tt.ShapeError, r"square matrices .* \(3,\)", spaced(3)),
    refused(tt.ShapeError, r"square matrices .* \(\)", spaced()),
)
_NO_MATRICES = (
    refused(tt.ShapeError, r"needs matrices \(\*Ds, M, N\), the shape is \(3,\)", spaced(3)),
    refused(tt.ShapeError, r"needs matrices .* \(\)", spaced()),
)
_SQUARES = tuple(_full_rank(*shape) for shape in ((3, 3), (2, 2, 2), (1, 1), (0, 2, 2)))
_SIDES = ((3, 3), (2, 4, 2), (2, 4), (1, 1), (0, 2, 2), (0, 3))
_TALL = tuple(_full_rank(*shape) for shape in _SIDES)
_SINGULAR = refused(tt.ArgumentValueError, r"no answer for \(2, 2\) \(Sing", np.ones((2, 2)))

SOLVING = (
    named("inv", np.linalg.inv, samples=_SAMPLES, refusals=(*_NOT_SQUARE, _SINGULAR)),
    named("det", np.linalg.det, samples=_SAMPLES, refusals=_NOT_SQUARE),
    named(
        "cholesky",
        _cholesky,
        samples=_SAMPLES,
        refusals=(
            *_NOT_SQUARE,
            refused(tt.ArgumentValueError, "no answer .* not positive definite", -np.eye(2)),
        ),
    ),
    named(
        "solve",
        np.linalg.solve,
        samples=(
            given(_square(3, 3), spaced(3, seed=1)),
            given(_square(3, 3), spaced(3, 2, seed=1)),
            given(_square(2, 3, 3), spaced(2, 3, 4, seed=1)),
            given(_square(2, 3, 3), spaced(3, 4, seed=1)),
            given(_square(1, 1), spaced(1, seed=1)),
            given(_square(0, 0), spaced(0, 2)),
            given(_square(0, 2, 2), spaced(0, 2, 1)),
        ),
        refusals=(
            *refuses(_square(3, 3), TENSOR),
            refused(tt.ShapeError, r"square matrices .* \(2, 3\)", spaced(2, 3), spaced(2)),
            refused(tt.ShapeError, r"N = 3, not \(2,\)", _square(3, 3), spaced(2)),
            refused(tt.ShapeError, r"N = 3, not \(2, 3\)", _square(3, 3), spaced(2, 3)),
            refused(tt.ShapeError, r"N = 3, not \(3,\)", _square(2, 3, 3), spaced(3)),
            refused(tt.ShapeError, r"N = 3, not \(\)", _square(3, 3), spaced()),
            refused(tt.ShapeError, "leading axes", _square(2, 3, 3), spaced(4, 3, 1)),
            refused(tt.DTypeError, "dtypes differ", _square(3, 3), tt.ones((3,))),
            refused(tt.ArgumentValueError, "Singular", np.ones((2, 2)), spaced(2)),
        ),
    ),
    named(
        "pinv",
        np.linalg.pinv,
        samples=tuple(map(given, _TALL)),
        refusals=_NO_MATRICES,
        has_complex_step=False,
    ),
    *(
        Op(
            name=name,
            covers=(name,),
            call=lambda x, part, name=name: getattr(x, name)()[part],
            reference=lambda x, part, reference=reference: reference(x)[part],
            samples=tuple(given(x, part=part) for x in matrices for part in parts),
            refusals=tuple(
                Refusal(Sample(one.sample.operands, {"part": 0}), one.error, one.message)
                for one in refusals
            ),
            has_complex_step=False,
        )
        for name, reference, parts, matrices, refusals in (
            ("slogdet", np.linalg.slogdet, (1,), _SQUARES, _NOT_SQUARE),
            ("eigh", _eigh, (0, 1), _SQUARES, _NOT_SQUARE),
            ("qr", np.linalg.qr, (0, 1), _TALL, _NO_MATRICES),
            ("svd", _svd, (0, 1, 2), _TALL, _NO_MATRICES),
        )
    ),
)
