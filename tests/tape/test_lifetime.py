"""What lives as long as what: reference counting alone frees everything, `gc` is switched off."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import tapetensor as tt
from tapetensor.tape import Pullbacks
from tapetensor.tensor.apply import apply


@pytest.fixture(autouse=True)
def without_garbage_collection() -> Iterator[None]:
    gc.disable()
    yield
    gc.enable()


class Watched:
    """An op that counts how many of the arrays that its pullbacks keep are alive."""

    def __init__(self) -> None:
        self._kept: list[weakref.ref[Any]] = []

    @property
    def alive(self) -> int:
        return sum(array() is not None for array in self._kept)

    def double(self, x: Any) -> Any:
        def kernel(x: Any) -> tuple[Any, Pullbacks]:
            slopes = np.full_like(x, 2)
            self._kept.append(weakref.ref(slopes))
            return x * slopes, (lambda g: g * slopes,)

        return apply(kernel, (x,))


def test_a_history_dies_with_the_tensor() -> None:
    watched = Watched()
    result = watched.double(watched.double(tt.ones((3,)).trace()))
    del result

    assert watched.alive == 0


def test_a_branch_that_was_dropped_costs_nothing() -> None:
    watched = Watched()
    trunk = watched.double(tt.ones((3,)).trace())
    branch = watched.double(trunk)
    joined = trunk + watched.double(trunk)
    del branch
    assert watched.alive == 2
    del joined

    assert watched.alive == 1
    assert trunk.owns_tape


def test_a_value_and_its_tape_each_keep_what_was_recorded() -> None:
    watched = Watched()
    value, tape = watched.double(tt.ones((3,)).trace()).split_tape()
    del tape
    assert watched.alive == 1
    del value

    assert watched.alive == 0


def test_dropping_a_traced_tensor_frees_every_array_of_its_computation() -> None:
    x = tt.ones((8, 8)).traced()
    arrays = [weakref.ref(x._array)]
    for _ in range(3):
        x = (x @ x).tanh() * 0.5
        arrays.append(weakref.ref(x._array))
    assert all(array() is not None for array in arrays)
    del x

    assert [array() for array in arrays] == [None] * 4


def test_a_carried_store_is_kept_alive_by_the_tape_that_carries_it() -> None:
    """Stores are told apart by identity, which a dead store would pass on to another."""
    x = tt.ones((1,))
    branches = []
    for _ in range(20):
        store = tt.Gradients()
        store.insert(x, np.ones((1,), np.float32))
        branches.append(x.trace(store))
        del store
    loss = tt.concat(branches).sum()

    assert loss.backward()[x].item() == 40.0
