"""Steps by gradients of rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tapetensor as tt
from tapetensor import io, nn
from tapetensor.errors import ArgumentValueError, UnusedParametersError
from tapetensor.optim import Adagrad, Adam, RMSprop, Sgd, SparseAdam
from tests.optim.models import HOLDS, assert_close, seen_by
from tests.optim.optimizers import adam

# A table of its own, and one that lies with others.
SIZES = [(700, 64), (40, 3)]

EXACT: dict[str, Any] = {
    "sgd": lambda model: Sgd(model, lr=0.01),
    "sgd with momentum": lambda model: Sgd(model, lr=0.01, momentum=0.9),
    "sgd with decay": lambda model: Sgd(model, lr=0.01, weight_decay=0.1),
    "sgd with decoupled decay": lambda model: Sgd(
        model, lr=0.01, weight_decay=0.1, decoupled_weight_decay=True
    ),
    "adagrad": lambda model: Adagrad(model, lr=0.1, lr_decay=0.1, initial_accumulator_value=0.1),
    "adagrad with decay": lambda model: Adagrad(model, lr=0.1, weight_decay=0.1),
    "adam": lambda model: Adam(model, lr=0.1),
    "rmsprop": lambda model: RMSprop(model, lr=0.1, momentum=0.5),
}


class Words(nn.Module):
    """A table and what follows it."""

    table: nn.Embedding[Any, Any]
    head: nn.Linear[Any, Any]


def words(size: tuple[int, int], *, sparse: bool) -> Any:
    rng = np.random.default_rng(0)
    table: Any = nn.Embedding(*size, rng=rng, sparse=sparse)
    return Words(table=table, head=nn.Linear(size[1], 2, rng=rng))


def read(model: Any, step: int) -> Any:
    drawn = np.random.default_rng(step).integers(model.table.num_embeddings, size=(4, 5))
    ids: Any = tt.from_numpy(drawn)
    return model.head.forward(model.table.forward(ids.trace())).square().sum()


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", EXACT)
def test_an_optimizer_makes_of_rows_what_it_makes_of_the_whole_gradient(
    name: str, size: tuple[int, int]
) -> None:
    found = []
    for sparse in (True, False):
        model = words(size, sparse=sparse)
        optimizer = EXACT[name](model)
        for step in range(6):
            grads = read(model, step).backward(wrt=model)
            if step != 3:
                optimizer.step(grads)
                continue
            # A step of the whole gradient between two of rows.
            grads.insert(model.table.weight, np.ones(size, np.float32))
            optimizer.step(grads)
        found.append(io.state_dict(model) | io.state_dict(optimizer))
    mine, theirs = found
    assert_close(mine, theirs, 1e-5)


@pytest.mark.parametrize("make", [Sgd, Adagrad, SparseAdam])
def test_rows_are_updated_where_the_table_lies(make: Any) -> None:
    table: Any = nn.Embedding(5000, 64, rng=np.random.default_rng(0), sparse=True)
    optimizer = make(table)
    ids: Any = tt.from_numpy(np.array([3, 4000]))
    addresses = set()
    for _ in range(4):
        loss = table.forward(ids.trace()).square().sum()
        optimizer.step(loss.backward(wrt=table))
        addresses.add(table.weight.numpy().__array_interface__["data"][0])
    assert len(addresses) == 1


@pytest.mark.parametrize("make", [Sgd, Adagrad, SparseAdam])
@pytest.mark.parametrize("size", SIZES)
def test_views_handles_and_tapes_keep_the_values_that_they_had(
    make: Any, size: tuple[int, int]
) -> None:
    table: Any = nn.Embedding(*size, rng=np.random.default_rng(0), sparse=True)
    optimizer, ids = make(table), tt.from_numpy(np.array([3, 3, 9]))
    kept: list[tuple[Any, Any]] = []
    for hold in HOLDS:
        holder = hold(table.weight)
        kept.append((holder, seen_by(holder)))
        before = table.weight.numpy().copy()
        optimizer.step(table.forward(ids.trace()).square().sum().backward(wrt=table))
        changed = (table.weight.numpy() != before).any(axis=1)
        assert changed.nonzero()[0].tolist() == [3, 9]
    for holder, values in kept:
        np.testing.assert_array_equal(seen_by(holder), values)


def lazy(size: tuple[int, int]) -> tuple[Any, Any]:
    table: Any = nn.Embedding(*size, np.float64, rng=np.random.default_rng(0), sparse=True)
    return table, SparseAdam(table, lr=0.1, betas=(0.5, 0.7), eps=1e-3)


@pytest.mark.parametrize("size", SIZES)
def test_sparse_adam_on_rows_that_every_step_reads_is_adam(size: tuple[int, int]) -> None:
    table, optimizer = lazy(size)
    start = table.weight.numpy().copy()
    rows = start[[2, 5]].reshape(-1)
    state: dict[str, Any] = {}
    ids: Any = tt.from_numpy(np.array([5, 2]))
    for _ in range(4):
        optimizer.step(table.forward(ids.trace()).square().sum().backward(wrt=table))
        rows = adam(rows, 2 * rows, state, lr=0.1, betas=(0.5, 0.7), eps=1e-3)
    np.testing.assert_allclose(table.weight.numpy()[[2, 5]].reshape(-1), rows, rtol=1e-12)
    others = np.delete(np.arange(size[0]), [2, 5])
    np.testing.assert_array_equal(table.weight.numpy()[others], start[others])


def test_rows_that_a_step_does_not_read_wait_with_their_moments() -> None:
    table, optimizer = lazy((40, 3))
    ids: Any = tt.from_numpy(np.array([1]))
    optimizer.step(table.forward(ids.trace()).square().sum().backward(wrt=table))
    waiting = io.state_dict(optimizer) | io.state_dict(table)
    others: list[list[int]] = [[2], [2], []]
    for other in others:
        ids = tt.from_numpy(np.array(other, np.int64))
        optimizer.step(table.forward(ids.trace()).square().sum().backward(wrt=table))
    state = io.state_dict(optimizer) | io.state_dict(table)
    for name in ("weight.gradients", "weight.squares", "weight"):
        np.testing.assert_array_equal(state[name][1], waiting[name][1])
    assert state["weight.step"] == 4


def test_sparse_adam_refuses_the_gradient_of_a_whole_table() -> None:
    model = words((40, 3), sparse=True)
    optimizer = SparseAdam(model)
    before = io.state_dict(model)
    with pytest.raises(UnusedParametersError, match="its gradient is that of the whole"):
        optimizer.step(read(model, 0).backward(wrt=model), unused="skip")
    assert all(np.array_equal(before[name], one) for name, one in io.state_dict(model).items())
    with pytest.raises(ArgumentValueError, match="SparseAdam: eps must be"):
        SparseAdam(model, eps=0.0)


def trained(make: Any, *, is_compiled: bool) -> Any:
    """Take some steps, compiled or not, and a plain one; return what there is then."""
    model = words((700, 64), sparse=True)
    # Sparse Adam takes rows alone.
    part = model.table if make is SparseAdam else model
    optimizer = make(part)

    def step(model: Any, ids: Any) -> Any:
        loss = model.head.forward(model.table.forward(ids.trace())).square().sum()
        optimizer.step(loss.backward(wrt=part))
        return loss.detach()

    run = tt.compile(step) if is_compiled else step
    for number in range(4):
        run(model, tt.from_numpy(np.random.default_rng(number).integers(700, size=6)))
    # Plain steps go on from where a plan has left off.
    optimizer.step(read(model, 9).backward(wrt=part))
    return io.state_dict(model) | io.state_dict(optimizer)


@pytest.mark.parametrize("make", [Sgd, Adagrad, Adam])
def test_a_compiled_step_does_what_the_plain_one_does(make: Any) -> None:
    found, expected = [trained(make, is_compiled=one) for one in (True, False)]
    assert_close(found, expected, 1e-5)


def test_a_compiled_step_of_sparse_adam_runs_as_the_plain_one_and_says_so() -> None:
    with pytest.warns(UserWarning, match="calls of this kind run as the plain function"):
        found = trained(SparseAdam, is_compiled=True)
    assert_close(found, trained(SparseAdam, is_compiled=False))
