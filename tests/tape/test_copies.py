"""Copying and pickling: a value may be copied, a tape never."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tapetensor as tt

COPIES: list[Any] = [
    pytest.param(copy.copy, id="copy"),
    pytest.param(copy.deepcopy, id="deepcopy"),
    pytest.param(lambda x: pickle.loads(pickle.dumps(x)), id="pickle"),
]


def vector() -> tt.Tensor[Any, tt.NoneTape, np.float32]:
    return tt.from_numpy([1.0, 2.0], shape=(2,))


@pytest.mark.parametrize("copied", COPIES)
def test_a_copy_is_a_plain_tensor_with_equal_elements(copied: Callable[[Any], Any]) -> None:
    x = vector()
    twin = copied(x)

    assert twin is not x
    assert type(twin) is type(x)
    assert not twin.owns_tape
    assert twin.numpy().tolist() == [1.0, 2.0]
    assert twin.dtype == np.float32
    assert twin.trace().square().sum().backward()[twin].numpy().tolist() == [2.0, 4.0]


@pytest.mark.parametrize("copied", COPIES)
def test_a_copy_is_another_tensor_with_an_id_of_its_own(copied: Callable[[Any], Any]) -> None:
    x = vector()

    assert copied(x).id != x.id


def test_a_copy_of_a_weight_that_has_gone_stale_gives_the_weight_no_gradient() -> None:
    model = tt.nn.Linear(2, 1, rng=np.random.default_rng(0))
    stale = copy.copy(model.weight)
    optimizer = tt.optim.Sgd(model, lr=1.0)
    loss = model.forward(tt.ones((3, 2)).trace()).square().sum()
    optimizer.step(loss.backward())
    grads = (stale.square().retaped(tt.OwnedTape) * stale).sum().backward()

    assert stale in grads
    assert model.weight not in grads


@pytest.mark.parametrize("copied", COPIES[1:])
def test_a_deep_copy_and_a_pickled_one_have_memory_of_their_own(
    copied: Callable[[Any], Any],
) -> None:
    x = vector()
    twin = copied(x)

    assert not np.shares_memory(twin.numpy(), x.numpy())


def test_a_deep_copy_of_a_structure_keeps_what_is_shared_in_it() -> None:
    x = vector()
    first, second = copy.deepcopy([x, x])

    assert first is second


@pytest.mark.parametrize("copied", COPIES)
def test_a_tensor_that_has_a_tape_cannot_be_copied_and_stays_usable(
    copied: Callable[[Any], Any],
) -> None:
    x = vector()
    y = x.trace().square()

    with pytest.raises(
        tt.UntracedTensorError, match=r"a tensor with a tape cannot be copied.*detach"
    ):
        copied(y)
    assert y.sum().backward()[x].numpy().tolist() == [2.0, 4.0]


@pytest.mark.parametrize("copied", COPIES)
def test_a_tape_cannot_be_copied(copied: Callable[[Any], Any]) -> None:
    plain, tape = vector().trace().exp().split_tape()

    with pytest.raises(tt.UntracedTensorError, match="copy: a tape cannot be copied or pickled"):
        copied(tape)
    assert plain.put_tape(tape).owns_tape
