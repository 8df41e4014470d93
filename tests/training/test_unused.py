"""Steps in which some parameters have no gradient, in `fit`: refused, or skipped if it is said."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tapetensor as tt
from tapetensor import distributed, io, losses, nn, optim, training

RNG = np.random.default_rng(3)
# Which expert a batch is for, as its first part says: an integer that traces to a choice.
BATCHES = [(tt.normal((4, 3), np.float64, rng=RNG), at % 3 == 1) for at in range(7)]


class Experts(nn.Module):
    """Two layers, of which a batch goes through one."""

    first: nn.Linear[Any, Any, Any]
    second: nn.Linear[Any, Any, Any]

    def __init__(self, seed: int = 0) -> None:
        rng = np.random.default_rng(seed)
        self.first = nn.Linear(3, 3, np.float64, rng=rng)
        self.second = nn.Linear(3, 3, np.float64, rng=rng)


def loss_of(model: Experts, batch: Any) -> Any:
    x, is_second = batch
    expert = model.second if is_second else model.first
    return losses.mse(expert.forward(x.trace()), x)


def trained(model: Experts, **options: Any) -> dict[str, Any]:
    optimizer = optim.AdamW(model, lr=0.05)
    options = {"epochs": 3, "unused": "skip", **options}
    history = training.fit(model, optimizer, loss_of, BATCHES, **options)
    state = io.state_dict(model) | io.state_dict(optimizer)
    return {**state, "loss": np.array([row["loss"] for row in history.rows])}


def by_hand(epochs: int) -> dict[str, Any]:
    """Train each expert with an optimizer of its own."""
    model = Experts()
    optimizers = {id(one): optim.AdamW(one, lr=0.05) for one in (model.first, model.second)}
    for _ in range(epochs):
        for batch in BATCHES:
            expert = model.second if batch[1] else model.first
            optimizers[id(expert)].step(loss_of(model, batch).backward(wrt=expert))
    return io.state_dict(model)


@pytest.mark.parametrize(
    "options", [{}, {"compile": True}, {"clip_norm": 1e9}, {"ranks": distributed.alone()}]
)
def test_an_expert_without_rows_stays_as_it_is(options: dict[str, Any]) -> None:
    found = trained(Experts(), **options)

    for name, array in by_hand(3).items():
        np.testing.assert_allclose(found[name], array, rtol=1e-12, atol=1e-14)
    assert found["first.weight.step"] == 3 * 5
    assert found["second.weight.step"] == 3 * 2
    assert found["steps"] == 3 * 7


@pytest.mark.parametrize("is_compiled", [False, True])
def test_it_goes_on_from_a_file(tmp_path: Path, is_compiled: bool) -> None:
    path = tmp_path / "run.npz"
    whole = trained(Experts(), compile=is_compiled)
    trained(Experts(), checkpoint=path, epochs=1, compile=is_compiled)
    resumed = trained(Experts(seed=5), checkpoint=path, resume=True, compile=is_compiled)

    for name, array in whole.items():
        np.testing.assert_array_equal(resumed[name], array)


def test_without_a_word_it_is_refused() -> None:
    model = Experts()
    before = io.state_dict(model)
    with pytest.raises(tt.UnusedParametersError, match=r'second\.weight: .*unused="skip"'):
        trained(model, unused="error")
    for name, array in io.state_dict(model).items():
        np.testing.assert_array_equal(array, before[name])
    with pytest.raises(tt.ArgumentValueError, match='fit: unused must be "error" or "skip"'):
        trained(model, unused=None)
