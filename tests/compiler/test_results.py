"""Objects that a compiled function makes and returns."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest

import tapetensor as tt
from tapetensor.errors import TraceError


def test_what_leads_to_itself_comes_out_so() -> None:
    @tt.compile
    def circles(x: Any) -> Any:
        items: list[Any] = [x * 2]
        table: dict[str, Any] = {"items": items}
        items.append(table)
        table["self"] = table
        return items, table

    for _ in range(2):
        items, table = circles(np.ones(2))

        assert items[0].tolist() == [2.0, 2.0]
        assert items[1] is table
        assert table["items"] is items
        assert table["self"] is table


class Own(dict[str, Any]):
    """A dict whose items are its attributes."""

    def __init__(self, **items: Any) -> None:
        super().__init__(**items)
        self.__dict__ = self


def test_a_dict_that_is_its_own_attributes_is_refused_as_a_result() -> None:
    with pytest.raises(TraceError, match="a result is a Own, which a replay cannot make again"):
        tt.compile(lambda x: Own(y=x * 2.0))(np.ones(1))
    assert tt.compile(lambda x: x * len(vars(Own(y=x))["y"]))(np.ones(3)).tolist() == [
        3.0,
        3.0,
        3.0,
    ]


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


def test_what_is_returned_twice_comes_out_as_one() -> None:
    @tt.compile
    def twice(x: Any) -> Any:
        one, pair, items = (x * 2.0, 3), Pair(x + 1.0, 4), list[Any]()
        circle = (items, one)
        items.append(circle)
        return one, [one, pair], {"pair": pair}, circle

    for _ in range(2):
        one, (same, pair), table, circle = twice(np.ones(2))
        assert one is same
        assert pair is table["pair"]
        assert pair.first.tolist() == [2.0, 2.0]
        assert circle[0][0] is circle
        assert circle[1] is one


def test_an_array_that_numpy_gives_twice_is_one() -> None:
    def run(x: Any) -> Any:
        rows, columns = np.diag_indices_from(x)
        rows[0] = 2
        return rows, columns, x[rows, columns], rows is columns

    x = np.arange(9.0).reshape(3, 3)
    compiled = tt.compile(run)
    for _ in range(2):
        found = compiled(x)
        for one, other in zip(found, run(x), strict=True):
            np.testing.assert_array_equal(one, other)
        assert found[0] is found[1]


def test_an_array_that_numpy_does_not_let_anybody_write_into_comes_out_so() -> None:
    @tt.compile
    def run(x: Any) -> Any:
        made, dates = np.arange(4.0).reshape(2, 2).T, np.zeros(2, "M8[D]")
        made.flags.writeable = dates.flags.writeable = False
        return np.imag([1, 2]), np.frombuffer(b"ab", np.uint8), made, dates, np.arange(3)

    for _ in range(2):
        *fixed, free = run(np.ones(1))
        assert [one.flags.writeable for one in fixed] == [False] * 4
        assert fixed[2].strides == (8, 16)
        free[0] = 7


def test_a_slice_that_ends_at_a_number_of_the_program_is_refused_as_a_result() -> None:
    @tt.compile
    def run(x: Any) -> Any:
        return slice(None, 2), slice(None, x.sum().item())

    with pytest.raises(tt.TraceError, match="a result is a slice"):
        run(np.ones(2))


def test_a_view_of_an_array_around_the_function_leaves_as_one() -> None:
    table, rows = np.arange(12.0).reshape(3, 4), np.arange(6.0)[::2]

    def run(x: Any) -> Any:
        return table[0], [row[1:] for row in table.T], np.diagonal(table), rows[1:], table[1] * x

    compiled = tt.compile(run)
    for _ in range(2):
        first, columns, diagonal, part, own = compiled(np.ones(4))
        expected = run(np.ones(4))
        for one, other in zip((first, *columns), (expected[0], *expected[1]), strict=True):
            assert one.base is other.base
            assert one.strides == other.strides
        assert not diagonal.flags.writeable
        assert np.shares_memory(part, rows)
        assert own.base is not table.base
    compiled(np.ones(4))[0][0] = 7.0
    assert table[0, 0] == 7.0
    assert compiled(np.ones(4))[1][0].tolist() == [4.0, 8.0]


def test_what_shows_the_memory_of_no_array_is_refused_as_a_result() -> None:
    held = bytearray(8)
    for show in (lambda: np.frombuffer(held), lambda: np.asarray(memoryview(held))):
        with pytest.raises(tt.TraceError, match="or of other memory; return a copy"):
            tt.compile(show)()
    assert tt.compile(lambda: np.frombuffer(held).copy())().tolist() == [0.0]


def test_whether_an_array_around_may_be_written_into_is_seen_at_every_call() -> None:
    held = np.arange(3.0)
    compiled: Any = tt.compile(lambda: held[1:])
    assert compiled().flags.writeable
    held.flags.writeable = False
    assert not compiled().flags.writeable
    with pytest.raises(tt.TraceError, match="held is changed"):
        tt.compile(lambda: held.setflags(write=True))()
    assert not held.flags.writeable
