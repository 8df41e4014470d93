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


def test_an_op_on_plain_data_keeps_no_pullback_alive() -> None:
    watched = Watched()
    result = watched.double(tt.from_numpy([1.0, 2.0]))

    assert watched.alive == 0
    assert result.shape == (2,)


def test_an_op_on_a_traced_tensor_keeps_its_pullback_alive() -> None:
    watched = Watched()
    result = watched.double(watched.double(tt.ones((3,)).trace()))

    assert watched.alive == 2
    assert result.owns_tape


def test_a_history_dies_with_the_tensor() -> None:
    watched = Watched()
    result = watched.double(watched.double(tt.ones((3,)).trace()))
    del result

    assert watched.alive == 0


def test_a_tensor_keeps_what_it_was_computed_from_and_nothing_that_came_after() -> None:
    watched = Watched()
    x = watched.double(tt.ones((3,)).trace())
    result = watched.double(x)
    del result

    assert watched.alive == 1
    assert x.owns_tape


def test_backward_frees_what_was_recorded_while_the_loss_is_still_there() -> None:
    watched = Watched()
    x = tt.ones((3,))
    loss = watched.double(watched.double(x.trace())).sum()
    grads = loss.backward()

    assert watched.alive == 0
    assert loss.item() == 12.0
    assert grads[x].numpy().tolist() == [4.0, 4.0, 4.0]


def test_backward_frees_what_was_recorded_of_all_branches() -> None:
    watched = Watched()
    x = tt.ones((4,))
    first, second = watched.double(x.trace()).split(2)
    loss = (watched.double(first) * watched.double(second)).sum()
    assert watched.alive == 3
    loss.backward()

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


def test_what_two_parts_have_in_common_lives_until_the_last_is_gone() -> None:
    watched = Watched()
    first, second = watched.double(tt.ones((4,)).trace()).split(2)
    del first
    assert watched.alive == 1
    del second

    assert watched.alive == 0


def test_a_value_and_its_tape_each_keep_what_was_recorded() -> None:
    watched = Watched()
    value, tape = watched.double(tt.ones((3,)).trace()).split_tape()
    del tape
    assert watched.alive == 1
    del value

    assert watched.alive == 0


def test_detach_keeps_no_record_alive() -> None:
    watched = Watched()
    constant = watched.double(tt.ones((3,)).trace()).detach()

    assert watched.alive == 0
    assert constant.numpy().tolist() == [2.0, 2.0, 2.0]


def test_a_failed_op_keeps_nothing_alive() -> None:
    watched = Watched()
    x = watched.double(tt.ones((3,)).trace())
    with pytest.raises(tt.ShapeError):
        x + tt.ones((4,))
    del x

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
