"""What is saved comes back to the bit, and training goes on from it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any
from typing import Literal as L

import numpy as np
import pytest

import tapetensor as tt
from tapetensor import Tensor2D, io, losses, nn, optim
from tapetensor.optim import schedules
from tapetensor.typing import B, T
from tests.io.models import FORMATS, assert_same, net, saved, tied, write


@pytest.mark.parametrize("suffix", FORMATS)
def test_every_tensor_of_a_model_comes_back(tmp_path: Path, suffix: str) -> None:
    model, other = net(1), net(2)
    io.save(tmp_path / f"net{suffix}", model)
    ids = {name: tensor.id for name, tensor in other.parameters().items()}
    io.load(tmp_path / f"net{suffix}", other)

    assert_same(io.state_dict(other), io.state_dict(model))
    assert {name: tensor.id for name, tensor in other.parameters().items()} == ids
    x: tt.Tensor2D[L[5], L[3]] = tt.normal((5, 3), rng=np.random.default_rng(3))
    np.testing.assert_array_equal(model.forward(x).numpy(), other.forward(x).numpy())


def test_numpy_itself_reads_an_npz_file(tmp_path: Path) -> None:
    state = saved(tmp_path / "net.npz")
    with np.load(tmp_path / "net.npz") as archive:
        assert_same(dict(archive), state)


@pytest.mark.parametrize("suffix", FORMATS)
def test_the_modules_of_a_sequential_go_by_position(tmp_path: Path, suffix: str) -> None:
    def model(seed: int) -> nn.Sequential[Any, Any, Any]:
        rng = np.random.default_rng(seed)
        return nn.Sequential(nn.Linear(3, 4, rng=rng), nn.ReLU(), nn.Linear(4, 2, rng=rng))

    io.save(tmp_path / f"model{suffix}", model(1))
    other = model(2)
    io.load(tmp_path / f"model{suffix}", other)

    assert list(io.state_dict(other)) == ["0.weight", "0.bias", "2.weight", "2.bias"]
    assert_same(io.state_dict(other), io.state_dict(model(1)))


@pytest.mark.parametrize("suffix", FORMATS)
@pytest.mark.parametrize("left_out", [None, "embed.weight", "out.weight"])
def test_a_tied_weight_stays_tied_and_needs_one_of_its_names(
    tmp_path: Path, suffix: str, left_out: str | None
) -> None:
    path = tmp_path / f"tied{suffix}"
    state = io.state_dict(tied(1))
    write(path, {name: array for name, array in state.items() if name != left_out})
    model = tied(2)
    io.load(path, model)

    assert model.embed.weight is model.out.weight
    assert_same(io.state_dict(model), state)


def test_a_tape_and_a_view_keep_the_values_from_before_the_load(tmp_path: Path) -> None:
    saved(tmp_path / "net.npz")
    model = net(2)
    view = model.hidden.weight.numpy()
    before = view.copy()
    x: tt.Tensor2D[L[1], L[3]] = tt.ones((1, 3))
    loss = model.hidden.forward(x.trace()).sum()
    io.load(tmp_path / "net.npz", model)

    np.testing.assert_array_equal(view, before)
    np.testing.assert_allclose(loss.backward()[x].numpy()[0], before.sum(axis=0), rtol=1e-6)


@pytest.mark.parametrize("suffix", FORMATS)
def test_notes_come_back_to_the_bit(tmp_path: Path, suffix: str) -> None:
    value = {"epoch": 3, "losses": [0.1 + 0.2, 1e-300, float("inf")], "name": "größer"}
    io.save_checkpoint(tmp_path / f"run{suffix}", model=net(1), notes=io.Notes(value))
    notes = io.Notes(None)
    io.load_checkpoint(tmp_path / f"run{suffix}", notes=notes)

    assert notes.value == value


def test_notes_that_would_come_back_as_something_else_are_refused() -> None:
    for value in ((1, 2), {"epochs": [{3: 0.5}]}, {None: 1}, {"sizes": (3, 4)}):
        with pytest.raises(tt.ArgumentTypeError, match=r"Notes: .* (list|text)"):
            io.Notes(value)


def test_notes_that_are_no_json_are_refused() -> None:
    with pytest.raises(tt.ArgumentTypeError, match="Notes: only what JSON has"):
        io.Notes({"model": net(1)})


SCHEDULE = schedules.warm_up(schedules.cosine(lr=0.002, steps=20), steps=4)


class Net(nn.Module):
    """Everything that has a state: parameters, running statistics, a generator."""

    hidden: nn.Linear[L[3], L[200]]
    norm: nn.BatchNorm1d[L[200]]
    drop: nn.Dropout = nn.options(p=0.3)
    # Large enough for an update of its own, block by block.
    wide: nn.Linear[L[200], L[200]]
    out: nn.Linear[L[200], L[1]]

    def forward(self, x: Tensor2D[B, L[3], T]) -> Tensor2D[B, L[1], T]:
        h = self.drop.forward(self.norm.forward(self.hidden.forward(x)).relu())
        return self.out.forward(self.wide.forward(h))


class Run:
    """A model in training, with all that it draws from."""

    def __init__(self, make: Callable[[Any], optim.Optimizer], seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.model = tt.build(Net, rng=self.rng)
        self.optimizer = make(self.model)

    def train(self, steps: int) -> None:
        for _ in range(steps):
            x: Tensor2D[int, L[3]] = tt.normal((16, 3), rng=self.rng)
            target = x.sum(axis=-1, keepdims=True)
            self.optimizer.lr = SCHEDULE(self.optimizer.steps)
            loss = losses.mse(self.model.forward(x.trace()), target)
            self.optimizer.step(loss.backward(wrt=self.model))

    def parts(self) -> dict[str, Any]:
        return {"model": self.model, "optimizer": self.optimizer, "rng": self.rng}

    def state(self) -> dict[str, Any]:
        return {
            f"{name}.{inner}": array
            for name, part in self.parts().items()
            for inner, array in io.state_dict(part).items()
        }


@pytest.mark.parametrize("suffix", FORMATS)
@pytest.mark.parametrize("make", [optim.AdamW, lambda m: optim.Sgd(m, momentum=0.9, nesterov=True)])
def test_a_run_that_is_interrupted_ends_where_one_that_is_not_ends(
    tmp_path: Path, suffix: str, make: Any
) -> None:
    path = tmp_path / f"run{suffix}"
    whole, first, second = Run(make, seed=1), Run(make, seed=1), Run(make, seed=2)
    whole.train(12)
    first.train(5)
    io.save_checkpoint(path, **first.parts())
    first.train(2)
    second.train(1)
    io.load_checkpoint(path, **second.parts())
    second.train(7)

    assert whole.optimizer.steps == second.optimizer.steps == 12
    assert_same(whole.state(), second.state())


def test_the_state_of_an_optimizer_goes_by_the_names_of_the_parameters() -> None:
    model = tied(1)
    assert list(io.state_dict(optim.Sgd(model, momentum=0.9))) == [
        *["lr", "steps", "embed.weight.velocity", "embed.weight.step"],
        *["out.bias.velocity", "out.bias.step"],
    ]
    assert list(io.state_dict(optim.Sgd(model)))[2:] == ["embed.weight.step", "out.bias.step"]
    assert list(io.state_dict(optim.RMSprop(model, centered=True)))[2:5] == [
        *["embed.weight.squares", "embed.weight.mean", "embed.weight.step"]
    ]


@pytest.mark.parametrize("suffix", FORMATS)
@pytest.mark.parametrize(
    "bits",
    [np.random.PCG64, np.random.PCG64DXSM, np.random.MT19937, np.random.Philox, np.random.SFC64],
)
def test_a_generator_of_any_kind_goes_on_where_it_was(
    tmp_path: Path, suffix: str, bits: Any
) -> None:
    path = tmp_path / f"rng{suffix}"
    rng, other = np.random.Generator(bits(1)), np.random.Generator(bits(2))
    rng.random(7, np.float32)
    io.save(path, rng)
    io.load(path, other)

    np.testing.assert_array_equal(rng.integers(1000, size=50), other.integers(1000, size=50))
    assert rng.random(dtype=np.float32) == other.random(dtype=np.float32)
