"""What is saved comes back to the bit, and training goes on from it."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from typing import Literal as L

import numpy as np
import pytest

import tapetensor as tt
from tapetensor import io, optim
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
    for value in ((1, 2), {"epochs": [{3: 0.5}]}, {None: 1}, {"sizes": (3, 4)}, {"net": net(1)}):
        with pytest.raises(tt.ArgumentTypeError, match=r"Notes: (.* (list|text)|only what)"):
            io.Notes(value)


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
