"""What a training draws from is found, saved and brought back; what cannot be found is named."""

from __future__ import annotations

import itertools
import os
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import tapetensor as tt
from tapetensor import data, losses, nn, optim, training
from tests.training.models import pressing_ctrl_c

ROWS = np.random.default_rng(0).normal(size=(12, 2, 3)).astype(np.float32)
GLOBAL: Any = None


def tensor(rows: Any) -> Any:
    return tt.from_numpy(rows.astype(np.float32), rows.shape)


def loss_of(model: Any, batch: Any) -> Any:
    return losses.mse(model.forward(batch.trace()), batch)


def noisy(drawn: Callable[[tuple[int, ...]], Any]) -> Any:
    return lambda: (tensor(rows + drawn(rows.shape)) for rows in ROWS[:6])


def closure() -> Any:
    rng = np.random.default_rng(1)
    return noisy(lambda shape: rng.normal(size=shape))


def global_name() -> Any:
    global GLOBAL
    GLOBAL = np.random.default_rng(1)
    return noisy(lambda shape: GLOBAL.normal(size=shape))


def attribute() -> Any:
    class Drawn:
        def __init__(self) -> None:
            self.settings = {"rngs": [np.random.default_rng(1)]}

        def __iter__(self) -> Iterator[Any]:
            yield from map(tensor, ROWS[self.settings["rngs"][0].permutation(12)[:6]])

    return Drawn()


def batches_within() -> Any:
    inner = data.batches(tensor(ROWS[:, 0]), size=2, rng=np.random.default_rng(1))
    return lambda: inner


def children() -> Any:
    rng = np.random.default_rng(1)

    def drawn() -> Iterator[Any]:
        (child,) = rng.spawn(1)
        yield from map(tensor, ROWS[child.permutation(12)[:6]])

    return drawn


def bits() -> Any:
    kinds = [np.random.Philox(1), np.random.MT19937(2), np.random.SFC64(3)]
    return noisy(lambda shape: sum(np.random.Generator(one).normal(size=shape) for one in kinds))


def legacy() -> Any:
    old = np.random.RandomState(1)
    old.normal()
    return noisy(lambda shape: old.normal(size=shape))


def numpys_own() -> Any:
    np.random.seed(1)  # noqa: NPY002  # the point
    # Out of sight, as within other libraries.
    normal = getattr(np, "rand" + "om").normal
    return noisy(lambda shape: normal(size=shape))


def pythons() -> Any:
    own = random.Random(1)
    return noisy(lambda shape: own.gauss(0, 1))


def counted() -> Any:
    count = 0

    def drawn() -> Iterator[Any]:
        nonlocal count
        for _ in range(5):
            count += 1
            yield tensor(ROWS[count % 12])

    return drawn


def placed() -> Any:
    class Endless:
        at = 0

        def __iter__(self) -> Iterator[Any]:
            return self

        def __next__(self) -> Any:
            self.at = (self.at + 1) % 12
            return tensor(ROWS[self.at])

    endless = Endless()
    return lambda: itertools.islice(endless, 5)


def listed() -> Any:
    count = [0]

    def drawn() -> Iterator[Any]:
        for _ in range(5):
            count[0] += 1
            yield tensor(ROWS[count[0] % 12])

    return drawn


FOUND = [
    closure, global_name, attribute, batches_within, children, bits, legacy, numpys_own, pythons,
    counted, placed, listed,
]  # fmt: skip


def trained(path: Path, batches: Any, loss: Any = loss_of, at: int = -1, **options: Any) -> Any:
    """Train, and press Ctrl-C in the step of that number; return the losses of all epochs."""
    model = nn.Linear(3, 3, rng=np.random.default_rng(2))
    options |= {"checkpoint": path, "schedule": pressing_ctrl_c(at)}
    history = training.fit(model, optim.Adam(model), loss, batches, **options)
    return [row["loss"] for row in history.rows]


@pytest.mark.parametrize("at", [3, 8, None])
@pytest.mark.parametrize("made", FOUND, ids=lambda made: made.__name__)
def test_a_training_goes_on_with_the_same_draws(tmp_path: Path, made: Any, at: int | None) -> None:
    path = tmp_path / "run.npz"
    whole = trained(tmp_path / "whole.npz", made(), epochs=3)
    if at is None:
        trained(path, made(), epochs=2)
    else:
        trained(path, made(), at=at, epochs=3)

    assert trained(path, made(), epochs=3, resume=True) == whole
    assert len(set(whole)) == 3


@pytest.mark.parametrize(
    ("made", "named"),
    [
        (lambda: itertools.cycle([1]), "batches reads 'held', a cycle"),
        (lambda: (one for one in [1]), "batches reads 'held', a generator"),
        (
            lambda: SimpleNamespace(it=iter([1])),
            r"batches reads SimpleNamespace\.it, a list_iterator",
        ),
        (random.SystemRandom, "batches reads 'held', a SystemRandom"),
    ],
)
def test_a_place_that_cannot_be_read_is_named_at_once(
    tmp_path: Path, made: Any, named: str
) -> None:
    held = made()
    batches = [tensor(rows) for rows in ROWS[:2]]
    with pytest.warns(RuntimeWarning, match=f"fit: {named}, which keeps a place of its own"):
        trained(tmp_path / "run.npz", lambda: batches if held else [], epochs=1)


@pytest.mark.parametrize("at", [3, None])
def test_batches_that_depend_on_what_is_out_of_sight_are_noticed(
    tmp_path: Path, at: int | None
) -> None:
    path = tmp_path / "run.npz"

    def batches() -> Iterator[Any]:
        yield from map(tensor, ROWS[:5] * np.float32(int.from_bytes(os.urandom(2), "big") + 1))

    if at is None:
        trained(path, batches, epochs=1)
    else:
        trained(path, batches, at=at, epochs=1)
    with pytest.warns(RuntimeWarning, match="epoch 1 would now begin with others"):
        trained(path, batches, epochs=2, resume=True)


def test_files_that_are_written_and_numbers_that_are_set_anew_trouble_nobody(
    tmp_path: Path,
) -> None:
    path, batches = tmp_path / "run.npz", [tensor(rows) for rows in ROWS[:2]]
    seen = []
    with (tmp_path / "log").open("w") as log:
        for factor, resume in ((1.0, False), (0.5, True)):

            def loss(model: Any, batch: Any) -> Any:
                print("a step", file=log)
                seen.append(factor)  # noqa: B023  # it is called in this turn
                return loss_of(model, batch) * factor  # noqa: B023  # the same

            trained(path, batches, loss, epochs=1 + resume, resume=resume)

    # What did not change is what the program says now, and not what it said then.
    assert seen == [1.0, 1.0, 0.5, 0.5]
