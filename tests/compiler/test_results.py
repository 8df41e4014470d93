"""Objects that a compiled function makes and returns."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest

import tapetensor as tt


class Own(dict[str, Any]):
    """A dict whose items are its attributes."""

    def __init__(self, **items: Any) -> None:
        super().__init__(**items)
        self.__dict__ = self


def test_a_tensor_that_is_made_of_a_scalar_sees_no_writes_into_the_array_around_it() -> None:
    def made(x: Any) -> Any:
        y = x * 2.0
        scalars = x[0, 0], y[1, 1], x[1].copy()[0], x.T.reshape(-1)[1]
        tensors = [tt.from_numpy(one) for one in scalars]
        return x, y, tensors, tt.from_array(x[0, 1]), tt.from_numpy(x[1, 0]) * 1.0

    for call in (made, tt.compile(made)):
        x, y, tensors, *others = call(np.arange(4.0).reshape(2, 2))
        x[:] = y[:] = 9.0
        assert [one.item() for one in (*tensors, *others)] == [0.0, 6.0, 2.0, 2.0, 1.0, 2.0]


class Pair(NamedTuple):
    """Two values."""

    first: Any
    second: Any


def test_a_slice_that_ends_at_a_number_of_the_program_is_refused_as_a_result() -> None:
    @tt.compile
    def run(x: Any) -> Any:
        return slice(None, 2), slice(None, x.sum().item())

    with pytest.raises(tt.TraceError, match="a result is a slice"):
        run(np.ones(2))
