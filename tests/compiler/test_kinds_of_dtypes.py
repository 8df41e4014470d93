"""Arrays of texts, dates, fields and small integers: numpy's own answer, or its own error."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tapetensor as tt

_TEXTS, _DATES = np.array(["ab", "c"]), np.array(["2020-01-01", "2020-01-02"], "M8[ns]")
_FIELDS, _SMALL = np.zeros(2, "i4,f4"), np.ones(2, np.int8)


@pytest.mark.parametrize("dtype", [None, "U3", "S3", "V2", "M8[D]"])
@pytest.mark.parametrize("x", [_TEXTS, _DATES, _SMALL], ids=["texts", "dates", "numbers"])
@pytest.mark.parametrize("make", [np.zeros_like, np.ones_like])
def test_zeros_and_ones_like_an_array_are_those_of_their_dtype(
    make: Any, x: Any, dtype: Any
) -> None:
    expected = make(x, dtype=dtype)
    found = tt.compile(lambda x: make(x, dtype=dtype))(x)

    assert (found.dtype, found.tolist()) == (expected.dtype, expected.tolist())


_RAISING: dict[str, tuple[Callable[[Any], Any], Any]] = {
    "a number that does not fit": (lambda x: np.full_like(x, 300), _SMALL),
    "fewer places than numbers": (lambda x: np.full_like(x[:1], x), _SMALL),
    "texts as numbers": (lambda x: x.astype(float), _TEXTS),
    "texts as dates": (lambda x: x.astype("M8[s]"), _TEXTS),
    "dates as short texts": (lambda x: x.astype("S3"), _DATES),
    "fields as a mask": (lambda x: np.where(x, 1.0, 2.0), _FIELDS),
}


@pytest.mark.parametrize("is_read", [True, False], ids=["read", "unread"])
@pytest.mark.parametrize("name", _RAISING)
def test_what_an_array_cannot_be_made_of_raises_also_where_nobody_reads_it(
    name: str, is_read: bool
) -> None:
    step, x = _RAISING[name]

    def run(x: Any) -> Any:
        made = step(x)
        return made if is_read else x.size

    with pytest.raises((ValueError, TypeError, OverflowError, RuntimeError)) as expected:
        run(x)
    with pytest.raises(type(expected.value)) as found:
        tt.compile(run)(x)
    assert not isinstance(found.value, tt.TraceError)


def test_integers_of_equal_dtypes_keep_their_own_scalars() -> None:
    def run(x: Any) -> Any:
        pair = np.broadcast_to(x, 2) + x
        return np.floor(x), x + 1, (x * 1.0).astype(x.dtype)[()], pair @ pair

    for dtype in (np.longlong, np.int64, np.ulonglong, np.uint64):
        x = np.array(3, dtype)
        assert [*map(type, tt.compile(run)(x))] == [*map(type, run(x))]


@pytest.mark.parametrize("value", [np.datetime64("2020-01-05"), _TEXTS], ids=repr)
def test_what_cannot_be_equal_is_compared_by_the_function_itself(value: Any) -> None:
    compiled: Any = tt.compile(lambda x: (value == x, x != value))

    with pytest.warns(UserWarning, match="calls of this kind run as the plain function does"):
        found = compiled(_SMALL)
    assert repr(found) == repr((value == _SMALL, value != _SMALL))
