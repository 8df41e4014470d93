"""Rows of what is done with square matrices: inverses, determinants, equations, factors."""

from __future__ import annotations

import numpy as np

import tapetensor as tt
from tapetensor.arrays.array import Array
from tests.ops.kinds import TENSOR, refuses
from tests.ops.rows import Op, given, refused, spaced


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


_SAMPLES = tuple(
    given(_square(*shape)) for shape in ((3, 3), (2, 4, 4), (1, 1), (0, 0), (0, 2, 2), (2, 1, 2, 2))
)
_NOT_SQUARE = (
    refused(tt.ShapeError, r"square matrices \(\*Ds, N, N\), the shape is \(2, 3\)", spaced(2, 3)),
    refused(tt.ShapeError, r"square matrices .* \(3,\)", spaced(3)),
    refused(tt.ShapeError, r"square matrices .* \(\)", spaced()),
)
_SINGULAR = refused(tt.ArgumentValueError, r"no answer for \(2, 2\) \(Sing", np.ones((2, 2)))

SOLVING = (
    Op(
        name="inv",
        covers=("inv",),
        call=tt.Tensor.inv,
        reference=np.linalg.inv,
        samples=_SAMPLES,
        refusals=(*_NOT_SQUARE, _SINGULAR),
    ),
    Op(
        name="det",
        covers=("det",),
        call=tt.Tensor.det,
        reference=np.linalg.det,
        samples=_SAMPLES,
        refusals=_NOT_SQUARE,
    ),
    Op(
        name="cholesky",
        covers=("cholesky",),
        call=tt.Tensor.cholesky,
        reference=_cholesky,
        samples=_SAMPLES,
        refusals=(
            *_NOT_SQUARE,
            refused(tt.ArgumentValueError, "no answer .* not positive definite", -np.eye(2)),
        ),
    ),
    Op(
        name="solve",
        covers=("solve",),
        call=lambda a, b: a.solve(b),
        reference=np.linalg.solve,
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
            refused(tt.ShapeError, "do not fit", _square(2, 3, 3), spaced(4, 3, 1)),
            refused(tt.DTypeError, "dtypes differ", _square(3, 3), tt.ones((3,))),
            refused(tt.ArgumentValueError, "Singular", np.ones((2, 2)), spaced(2)),
        ),
    ),
)
