"""Rows of the scans."""

from __future__ import annotations

from typing import Any

import numpy as np

import tapetensor as tt
from tapetensor.arrays.array import Array
from tests.ops.kinds import ARRAY, AXIS, TENSOR, refuses
from tests.ops.rows import each, given, named, refused, spaced

_X = spaced(2, 5, 3)
_A = spaced(2, 5, 3, low=-0.9, high=1.1, seed=1)
_B = spaced(2, 5, 3, seed=2)


def _ssm_scan(x: Any, a: Any, b: Any) -> Array:
    """Return the states one by one, as the formula says."""
    decay = np.broadcast_to(a, x.shape)
    added = b * x
    states: list[Any] = []
    for step in range(x.shape[-2]):
        kept = decay[..., step, :] * states[-1] if states else 0.0
        states.append(kept + added[..., step, :])
    return np.stack(states, axis=-2) if states else np.zeros_like(added)


_BYTES = np.array([100, 100, -100], np.int8)

# What only sums and products are given, and refuse.
_NO_SUM = (
    refused(tt.ArgumentValueError, "int8 does not hold 200", _BYTES, axis=0),
    refused(tt.ArgumentValueError, "int64 does not hold 9.2", np.array([2**63 - 1, 1]), axis=0),
)
_NO_PRODUCT = (refused(tt.ArgumentValueError, "int8 does not hold 10000", _BYTES, axis=0),)
# None, one and two zeros in a row.
_ZEROS = (given(spaced(3, 3) * (1 - np.tri(3, k=-1)), axis=-1),)

SCANS = (
    *[
        named(
            name,
            accumulate,
            samples=(
                given(_X, axis=0),
                given(_X, axis=1),
                given(_X, axis=-1),
                given(spaced(7), axis=0),
                given(spaced(1), axis=-1),
                given(spaced(2, 0), axis=1),
                given(spaced(2, 0), axis=0),
                *samples,
            ),
            refusals=(
                *refuses(_X[:, 0], axis=AXIS),
                refused(tt.AxisError, "0-d", spaced(), axis=0),
                *refusals,
            ),
            takes_integers=name != "cumulative_logsumexp",
        )
        for name, accumulate, samples, refusals in (
            ("cumulative_sum", lambda x, axis: np.cumsum(x, axis, dtype=x.dtype), (), _NO_SUM),
            (
                "cumulative_prod",
                lambda x, axis: np.cumprod(x, axis, dtype=x.dtype),
                _ZEROS,
                _NO_PRODUCT,
            ),
            ("cumulative_max", np.maximum.accumulate, (), ()),
            ("cumulative_min", np.minimum.accumulate, (), ()),
            ("cumulative_logsumexp", lambda x, axis: np.log(np.cumsum(np.exp(x), axis)), (), ()),
        )
    ],
    named(
        "diff",
        lambda x, axis=-1: np.diff(x, axis=axis),
        samples=(
            given(_X),
            given(_X, axis=0),
            given(_X, axis=1),
            given(spaced(1), axis=0),
            given(spaced(2, 0), axis=0),
            given(spaced(2, 0), axis=1),
        ),
        refusals=(*refuses(_X[:, 0], axis=AXIS), refused(tt.AxisError, "0-d", spaced())),
        takes_integers=True,
    ),
    named(
        "ssm_scan",
        _ssm_scan,
        samples=(
            given(_X, _A, _B),
            # Without a batch, and with two axes of it.
            given(_X[0], _A[0], _B[0]),
            given(spaced(2, 2, 4, 3), spaced(2, 2, 4, 3, seed=1), spaced(2, 2, 4, 3, seed=2)),
            # Coefficients for all steps, for all sequences, for all channels.
            given(_X, spaced(3), spaced(3, seed=1)),
            given(_X, spaced(5, 3), spaced(2, 5, 1)),
            given(_X, spaced(2, 1, 3), spaced(1, 5, 1)),
            given(_X, spaced(), spaced(1)),
            # One step, no step, no sequence, no channel.
            given(_X[:, :1], _A[:, :1], _B[:, :1]),
            given(_X[:, :0], _A[:, :0], _B[:, :0]),
            given(_X[:0], _A[:0], _B[:0]),
            given(_X[..., :0], _A[..., :0], _B[..., :0]),
            given(spaced(1, 1, 1), spaced(1, 1, 1, seed=1), spaced(1, 1, 1, seed=2)),
        ),
        refusals=(
            refused(tt.ShapeError, r"\(3,\)", spaced(3), spaced(3), spaced(3)),
            refused(tt.ShapeError, r"\(\)", spaced(), spaced(), spaced()),
            refused(tt.ShapeError, r"a of shape \(4,\)", _X, spaced(4), _B),
            refused(tt.ShapeError, r"b of shape \(2, 4, 3", _X, _A, spaced(2, 4, 3)),
            # A coefficient does not enlarge the sequence.
            refused(tt.ShapeError, r"a of shape \(2, 5, 3\)", _X[:1], _A, _B[:1]),
            refused(tt.ShapeError, r"b of shape \(2, 5, 3\)", _X[0], _A[0], _B),
            *refuses(spaced(2, 3), TENSOR, spaced(2, 3)),
            *refuses(spaced(2, 3), spaced(2, 3), TENSOR),
            refused(tt.ArgumentTypeError, "a must be a tensor", _X, 0.5, _B),
            refused(tt.ArgumentTypeError, "b must be a tensor", _X, _A, None),
            refused(tt.ArgumentTypeError, "x must be a tensor", each(None, 1.0, ARRAY), _A, _B),
            refused(tt.DTypeError, "bool", _X > 0, _A > 0, _B > 0),
        ),
        takes_integers=True,
    ),
)
