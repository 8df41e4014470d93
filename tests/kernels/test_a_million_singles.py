"""What adds up a million singles keeps their digits, forwards and backwards."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tapetensor as tt

_COUNT = 1_000_000
_PLACES = tt.from_numpy(np.zeros(_COUNT, np.int64))
_PAIRS = _PLACES.reshape((_COUNT // 2, 2))
# Of a table with more rows than are read.
_FEW = tt.from_numpy(np.zeros(_COUNT // 10, np.int64))


def _scan(x: Any) -> Any:
    return tt.ssm_scan(x, tt.ones(x.shape, x.dtype), tt.ones((1, 1), x.dtype))


# What is computed, and of what shape its operand is; all elements are 0.1, as is the cotangent.
_ADDS: dict[str, tuple[Callable[[Any], Any], tuple[int, ...]]] = {
    "cumulative_sum": (lambda x: x.cumulative_sum(axis=0), (_COUNT,)),
    "cumulative_sum of rows": (lambda x: x.cumulative_sum(axis=0), (_COUNT // 2, 2)),
    "cumulative_sum along rows": (lambda x: x.cumulative_sum(axis=1), (2, _COUNT // 2)),
    "cumulative_logsumexp": (lambda x: x.cumulative_logsumexp(axis=0), (_COUNT // 10,)),
    # Fewer, for these go step by step.
    "ssm_scan": (_scan, (_COUNT // 10, 1)),
    "sum": (lambda x: x.sum(), (_COUNT,)),
    "sum of rows": (lambda x: x.sum(axis=0), (_COUNT // 2, 2)),
    "sum of the axis between": (lambda x: x.sum(axis=1), (2, _COUNT // 4 + 7, 2)),
    "sum of the axes around": (lambda x: x.sum(axis=(0, 2)), (_COUNT // 4, 2, 2)),
    "mean of the axis between": (lambda x: x.mean(axis=1), (1, _COUNT // 2, 2)),
    "segment_sum": (lambda x: tt.segment_sum(x, _PLACES, 2), (_COUNT,)),
    "segment_sum of pairs": (lambda x: tt.segment_sum(x, _PLACES, 2), (_COUNT, 2)),
    "segment_sum of wide rows": (lambda x: tt.segment_sum(x, _FEW[:50_000], 2), (50_000, 64)),
    "take": (lambda x: x.take(_PLACES), (2,)),
    "take of a large table": (lambda x: x.take(_FEW), (_COUNT, 2)),
    "take along the last axis": (lambda x: x.take(_PLACES, axis=1), (2, 2)),
    "an index": (lambda x: x[_PLACES], (2, 3)),
    "an index behind a slice": (lambda x: x[:, _PLACES], (2, 2)),
    "take_along_axis": (lambda x: x.take_along_axis(_PAIRS, axis=0), (2, 2)),
    "put_along_axis": (
        lambda x: tt.zeros((2,), x.dtype).put_along_axis(_PLACES, x, 0, accumulate=True),
        (_COUNT,),
    ),
    "a row that broadcasts": (lambda x: tt.ones((_COUNT, 2), x.dtype) * x, (2,)),
    "a column that broadcasts": (lambda x: tt.ones((_COUNT // 2, 2, 1), x.dtype) * x, (2, 1)),
    "broadcast_to": (lambda x: x.broadcast_to((2, _COUNT // 2, 2)), (2, 1, 2)),
}


@pytest.mark.parametrize("name", _ADDS)
def test_a_million_singles_add_up_to_what_doubles_do(name: str) -> None:
    f, shape = _ADDS[name]

    def both(x: Any) -> Any:
        y = f(x.trace())
        tenths = tt.full(y.shape, 0.1, x.dtype)
        return f(x), (y * tenths).sum().backward()[x]

    singles = both(tt.full(shape, 0.1))
    doubles = both(tt.full(shape, 0.1, np.float64))
    for found, wanted in zip(singles, doubles, strict=True):
        np.testing.assert_allclose(found.numpy(), wanted.numpy(), rtol=3e-5)


@pytest.mark.parametrize("name", ["cumulative_sum", "segment_sum", "sum of the axis between"])
def test_so_they_do_in_a_plan(name: str) -> None:
    f, shape = _ADDS[name]
    x = tt.full(shape, 0.1)

    np.testing.assert_allclose(tt.compile(f)(x).numpy(), f(x).numpy(), rtol=1e-6)
