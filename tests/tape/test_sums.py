"""Gradients of one id add up in place, but never in an array that anybody else can see."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tapetensor as tt
from tapetensor.arrays.array import Array
from tapetensor.tape.history import History, gathered

X = tt.from_numpy([1.0, 2.0], shape=(2,), dtype=np.float64)
Y = tt.from_numpy([3.0, 5.0], shape=(2,), dtype=np.float64)


def plain_sum(history: History, output_id: int, cotangent: Array) -> dict[int, Array]:
    """Replay by the book, with a fresh array for every sum."""
    arrays: dict[int, Array] = {output_id: cotangent}
    for produced_id, _, pullbacks, parents, _, _ in reversed(gathered(history)[0]):
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
        x = (x + y) + (x - y) * y
        x = x.reshape((2, 1)).reshape((2,)) + x
    return x


def numpy_scalars(x: Any, y: Any) -> Any:
    """Use a sum, whose gradient is a numpy scalar, four times."""
    total = y.retaped(tt.OwnedTape).sum()
    return (x.sum() + total) * total * total * total


def parts(x: Any, y: Any) -> Any:
    """Use parts of a value, some twice, some that overlap, and the whole before and after."""
    whole = x * y
    first, second = whole.split(2)
    both = first * second + first
    mask = tt.from_numpy([True, False], shape=(2,), dtype=np.bool_)
    last = whole[1:] + whole[::-1][:1] + whole[mask] + whole
    return last * both + whole


PROGRAMS: dict[str, Callable[[Any, Any], Any]] = {
    "many uses": many_uses,
    "identities only": lambda x, y: ((x + y) + y) + y + y,
    "both operands one": lambda x, y: (x * y) * y * y + y,
    "numpy scalars": numpy_scalars,
    "parts": parts,
    "parts of a leaf": lambda x, y: (x[1:] + x[:1]) * x[1:] * y,
}


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("wrt", [None, [X], [Y], [X, Y]], ids=["all", "x", "y", "both"])
def test_sums_in_place_are_the_sums_by_the_book(program: str, wrt: Any) -> None:
    result = PROGRAMS[program](X.trace(), Y)
    cotangent = tt.full(result.shape, 1.5, np.float64)
    expected = plain_sum(result.history, result.id, cotangent.numpy())

    grads = result.backward(cotangent, wrt=wrt)

    for leaf in wrt or [X, Y]:
        np.testing.assert_array_equal(grads[leaf].numpy(), expected[leaf.id])
    assert len(grads) == len(wrt or [X, Y])


def test_the_cotangent_and_the_gradients_of_intermediate_values_stay_as_they_were() -> None:
    """A sum that an identity hands on is one array under two ids."""
    cotangent = tt.ones((2,), np.float64)
    trunk = X.trace(tt.Gradients.leaky()) * Y
    middle = trunk + Y
    y = ((middle + trunk) + trunk) + trunk
    grads = y.backward(cotangent)

    assert cotangent.numpy().tolist() == [1.0, 1.0]
    assert grads[middle].numpy().tolist() == [1.0, 1.0]
    assert grads[trunk].numpy().tolist() == [4.0, 4.0]
    assert grads[X].numpy().tolist() == [12.0, 20.0]
    assert grads[Y].numpy().tolist() == [5.0, 9.0]


def test_pruning_leaves_an_op_of_three_operands_its_wanted_pullbacks() -> None:
    table = tt.ones((2, 2), np.float64)
    mask = tt.from_numpy([True, False], shape=(2,), dtype=np.bool_)
    y: Any = tt.where(mask, X.trace(), Y.trace()) * X.trace()
    z = tt.concat((y, Y, Y, X)).sum() * table.sum()
    grads = z.backward(wrt=[Y])

    assert list(grads) == [Y.id]
    assert grads[Y].numpy().tolist() == [8.0, 16.0]
