"""Rows at computed indices, and real parts: views that a plan reads anew, and hands on."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tapetensor as tt

MATRIX = np.random.default_rng(0).normal(size=(4, 4))

VIEWS: dict[str, Callable[[Any, Any], Any]] = {
    "a row": lambda x, i: x[i],
    "a row of some rows": lambda x, i: x[1:][i],
    "the end of a row": lambda x, i: x[i][1:],
    "a column": lambda x, i: x[:, i],
    "a column as a row": lambda x, i: x.T[i],
    "a slice of a row": lambda x, i: x[i, 1:3],
    "a row with an axis more": lambda x, i: x[i, None],
    "an element": lambda x, i: x[i, 1],
    "an element as an array": lambda x, i: x[i, 1, ...],
    "a copy of a row": lambda x, i: x[i].copy(),
    "a row by take": lambda x, i: x.take(i, 0),
}


def _swap(x: Any, i: Any) -> None:
    x[i], x[0] = x[0], x[i]


def _more(x: Any, i: Any) -> None:
    x[i] += 1.0


def _into_a_view(x: Any, i: Any) -> None:
    row = x[i]
    row += 10
    row[1:][0] = 3


WRITES: dict[str, Callable[[Any, Any], Any]] = {
    "nothing": lambda x, i: None,
    "everything": lambda x, i: x.fill(7.0),
    "one row": lambda x, i: operator.setitem(x, 1, 5.0),
    "the row": lambda x, i: operator.setitem(x, i, 5.0),
    "more in all": lambda x, i: np.add(x, 1, out=x),
    "more in the row": _more,
    "the row by out": lambda x, i: np.multiply(x[i], 3, out=x[i]),
    "an element of the row": lambda x, i: operator.setitem(x[i], 2, 9.0),
    "two rows in turns": _swap,
    "into a view of the row": _into_a_view,
}


@pytest.mark.parametrize("view", VIEWS)
def test_a_part_at_a_computed_index_sees_every_write_and_hands_on_its_own(view: str) -> None:
    wrong = []
    for name, write in WRITES.items():

        def both(a: Any, indices: Any, write: Any = write) -> Any:
            x = a * 2.0
            part = VIEWS[view](x, indices[0])
            write(x, indices[1])
            return part * 1.0, part, x

        compiled = tt.compile(both)
        for indices in ([2, 2], [1, 3], [-1, 1]):
            expected, found = both(MATRIX, indices), compiled(MATRIX, np.array(indices))
            if not all(map(np.array_equal, expected, found)):
                wrong.append((name, indices))

    assert wrong == []


def test_a_part_leaves_as_a_view_of_what_leaves_beside_it() -> None:
    @tt.compile
    def doubled(a: Any, i: Any) -> Any:
        x = a * 2
        row = x[i[0]]
        return x, row, row, row[1:]

    x, row, again, end = doubled(MATRIX, np.array([2]))

    assert row is again
    x[2] = 1.0
    assert row.tolist() == [1.0] * 4
    end[...] = 5.0
    assert x[2].tolist() == [1.0, 5.0, 5.0, 5.0]


def test_a_row_of_an_argument_leaves_as_a_view_of_it() -> None:
    matrix = MATRIX.copy()
    row = tt.compile(lambda a, i: a[i[0]])(matrix, np.array([1]))
    matrix[1] = 4.0

    assert row.tolist() == [4.0] * 4


def test_the_real_part_of_complex_numbers_is_real_and_sees_writes() -> None:
    def parts(a: Any) -> Any:
        x = np.fft.fft(a)
        real, imag = x.real, np.imag(x)
        x *= 2
        return real * 1.0, imag + 1.0, real

    for expected, found in zip(parts(MATRIX), tt.compile(parts)(MATRIX), strict=True):
        assert found.dtype == np.float64
        np.testing.assert_array_equal(found, expected)


def test_what_is_written_into_a_real_or_an_imaginary_part_is_in_the_array() -> None:
    def written(a: Any) -> Any:
        x = np.fft.fft(a)
        real = x.real
        real[0] = 5.0
        x.imag += 1.0
        x.T.imag[1:] *= a.T[1:]
        np.add(real, 1.0, out=x.imag, where=real > 5.5)
        x[-1] = 1j
        a = a * 2
        a.real = real
        return x, real, real + x.imag, x.imag, a

    compiled = tt.compile(written)
    for _ in range(2):
        x, real, _, imag, _ = found = compiled(MATRIX)
        for expected, array in zip(written(MATRIX), found, strict=True):
            np.testing.assert_array_equal(array, expected, strict=True)
        assert real.base is x
        assert np.shares_memory(imag, x)


@pytest.mark.parametrize(
    "write",
    [
        lambda x: setattr(x, "imag", 3),
        lambda x: setattr(x[0, 0] * 1j, "real", 3),
        lambda x: setattr(x * 1j, "real", np.ones(3)),
    ],
)
def test_a_part_that_numpy_does_not_write_is_numpys_error(write: Any) -> None:
    with pytest.raises((TypeError, AttributeError, ValueError)) as expected:
        write(MATRIX)
    with pytest.raises(expected.type, match=re.escape(str(expected.value))):
        tt.compile(write)(MATRIX)


@pytest.mark.parametrize(
    "ask",
    [
        np.shape,
        np.ndim,
        np.size,
        lambda x: np.size(x, 0),
        np.isrealobj,
        lambda x: np.einsum_path("ij,jk->ik", x, x)[0],
    ],
)
def test_what_shapes_and_dtypes_tell_is_told(ask: Callable[[Any], Any]) -> None:
    assert tt.compile(ask)(MATRIX) == ask(MATRIX)


def test_whether_memory_is_shared_is_not_guessed() -> None:
    with pytest.raises(tt.TraceError, match="may_share_memory reads values or memory"):
        tt.compile(lambda x: np.may_share_memory(x, x * 1.0))(MATRIX)


def test_a_scalar_is_rounded_and_has_no_hash() -> None:
    assert tt.compile(lambda x: round(x[0, 0], 2))(MATRIX) == round(MATRIX[0, 0], 2)
    for ask in (lambda x: hash(x[0, 0]), lambda x: x[0, 0].is_integer(), lambda x: round(x[0, 0])):
        with pytest.raises(tt.TraceError):
            tt.compile(ask)(MATRIX)
    with pytest.raises(TypeError, match="unhashable"):
        tt.compile(lambda x: {x: 1})(MATRIX)


def test_an_array_that_is_returned_twice_is_one_object_whatever_it_is_a_view_of() -> None:
    x = np.arange(4.0)
    makers: list[Any] = [
        lambda v: v.ravel(),
        lambda v: v[1:],
        lambda v: v * 2,
        lambda v: (v * 2).ravel(),
        lambda v: np.arange(3),
    ]
    for make in makers:

        def twice(v: Any, make: Any = make) -> Any:
            made = make(v)
            return made, made, [made]

        first, again, [other] = tt.compile(twice)(x)
        assert first is again
        assert first is other
        assert first is not x
