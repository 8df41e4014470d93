"""Gradients of one id add up in place, but never in an array that anybody else can see."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tapetensor as tt
from tapetensor.arrays.array import Array
from tapetensor.tape.recorder import Recorder

X = tt.from_numpy([1.0, 2.0], shape=(2,), dtype=np.float64)
Y = tt.from_numpy([3.0, 5.0], shape=(2,), dtype=np.float64)


def plain_sum(recorder: Recorder, output_id: int, cotangent: Array) -> dict[int, Array]:
    """Replay by the book, with a fresh array for every sum."""
    arrays: dict[int, Array] = {output_id: cotangent}
    for produced_id in sorted(recorder, reverse=True):
        _, pullbacks, parents = recorder[produced_id]
        if isinstance(parents, int):
            pullbacks, parents = (pullbacks,), (parents,)
        for pullback, parent in zip(pullbacks, parents, strict=True):
            if produced_id in arrays and pullback is not None:
                added = np.array(pullback(arrays[produced_id].copy()))
                arrays[parent] = arrays[parent] + added if parent in arrays else added
    return arrays


def many_uses(x: Any, y: Any) -> Any:
    """Use two values many times, also by ops whose pullbacks return their cotangent itself."""
    for _ in range(3):
        twin = x.with_empty_tape()
        x = (x + y) + (twin - y) * y
        twin = x.with_empty_tape()
        x = x.reshape((2, 1)).reshape((2,)) + twin
    return x


def numpy_scalars(x: Any, y: Any) -> Any:
    """Use a sum, whose gradient is a numpy scalar, four times."""
    total = y.retaped(tt.OwnedTape).sum()
    handles = [total.with_empty_tape() for _ in range(3)]
    return (x.sum() + total) * handles[0] * handles[1] * handles[2]


def parts(x: Any, y: Any) -> Any:
    """Use parts of a value, some twice, some that overlap, and the whole before and after."""
    whole = x * y
    handles = [whole.with_empty_tape() for _ in range(5)]
    first, second = whole.split(2)
    both = first.with_empty_tape() * second + first
    mask = tt.from_numpy([True, False], shape=(2,), dtype=np.bool_)
    last = handles[0][1:] + handles[1][::-1][:1] + handles[2][mask] + handles[3]
    return last * both + handles[4]


PROGRAMS: dict[str, Callable[[Any, Any], Any]] = {
    "many uses": many_uses,
    "identities only": lambda x, y: ((x + y) + y) + y + y,
    "both operands one": lambda x, y: (x * y) * y * y + y,
    "numpy scalars": numpy_scalars,
    "parts": parts,
    "parts of a leaf": lambda x, y: (x.with_empty_tape()[1:] + x.with_empty_tape()[:1]) * x[1:] * y,
}


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("wrt", [None, [X], [Y], [X, Y]], ids=["all", "x", "y", "both"])
def test_sums_in_place_are_the_sums_by_the_book(program: str, wrt: Any) -> None:
    result = PROGRAMS[program](X.trace(), Y)
    value, tape = result.split_tape()
    cotangent = tt.full(value.shape, 1.5, np.float64)
    expected = plain_sum(tape.recorded(), value.id, cotangent.numpy())

    grads = value.put_tape(tape).backward(cotangent, wrt=wrt)

    for leaf in wrt or [X, Y]:
        np.testing.assert_array_equal(grads[leaf].numpy(), expected[leaf.id])
    assert len(grads) == len(wrt or [X, Y])


def test_the_cotangent_and_the_gradients_of_intermediate_values_stay_as_they_were() -> None:
    """A sum that an identity hands on is one array under two ids."""
    cotangent = tt.ones((2,), np.float64)
    trunk = X.trace(tt.Gradients.leaky()) * Y
    handles = [trunk.with_empty_tape() for _ in range(3)]
    middle = trunk + Y
    middle_id = middle.with_empty_tape()
    y = ((middle + handles[0]) + handles[1]) + handles[2]
    grads = y.backward(cotangent)

    assert cotangent.numpy().tolist() == [1.0, 1.0]
    assert grads[middle_id].numpy().tolist() == [1.0, 1.0]
    assert grads[handles[0]].numpy().tolist() == [4.0, 4.0]
    assert grads[X].numpy().tolist() == [12.0, 20.0]
    assert grads[Y].numpy().tolist() == [5.0, 9.0]


def test_gradients_of_one_id_are_not_changed_by_a_later_pass() -> None:
    first = (X.trace() * Y * Y * Y).sum().backward()
    before = first[Y].numpy().copy()
    second = (X.trace(first) * Y * Y * Y).sum().backward()

    np.testing.assert_array_equal(first[Y].numpy(), before)
    np.testing.assert_array_equal(second[Y].numpy(), 2 * before)


def test_pruning_leaves_an_op_of_three_operands_its_wanted_pullbacks() -> None:
    table = tt.ones((2, 2), np.float64)
    mask = tt.from_numpy([True, False], shape=(2,), dtype=np.bool_)
    y: Any = tt.where(mask, X.trace(), Y.trace()) * X.trace()
    z = tt.concat((y, Y, Y, X)).sum() * table.sum()
    grads = z.backward(wrt=[Y])

    assert list(grads) == [Y.id]
    assert grads[Y].numpy().tolist() == [8.0, 16.0]
