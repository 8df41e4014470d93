"""What is saved comes back, under the names that others know."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from typing import Literal as L

import numpy as np
import pytest

import tapetensor as tt
from tapetensor import io, nn
from tests.io.models import FORMATS, Array, assert_same, needs_safetensors, net, saved, tied, write


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


@pytest.mark.parametrize("suffix", FORMATS)
def test_the_names_are_dotted_and_buffers_are_there(tmp_path: Path, suffix: str) -> None:
    assert list(saved(tmp_path / f"net{suffix}")) == [
        *["hidden.weight", "hidden.bias", "norm.weight", "norm.bias", "scale", "empty"],
        *["layers.0.weight", "layers.0.bias", "layers.1.weight", "layers.1.bias"],
        *["norm.running_mean", "norm.running_var", "mask", "order"],
    ]


def test_numpy_itself_reads_an_npz_file(tmp_path: Path) -> None:
    state = saved(tmp_path / "net.npz")
    with np.load(tmp_path / "net.npz") as archive:
        assert_same(dict(archive), state)


@needs_safetensors
def test_the_library_itself_reads_a_safetensors_file(tmp_path: Path) -> None:
    library: Any = pytest.importorskip("safetensors.numpy")
    state = saved(tmp_path / "net.safetensors")
    found: dict[str, Array] = library.load_file(tmp_path / "net.safetensors")

    assert_same({name: found[name] for name in state}, state)


@pytest.mark.parametrize("suffix", FORMATS)
def test_files_of_other_writers_are_read(tmp_path: Path, suffix: str) -> None:
    state = io.state_dict(net(1))
    write(tmp_path / f"net{suffix}", state)
    other = net(2)
    io.load(tmp_path / f"net{suffix}", other)

    assert_same(io.state_dict(other), state)


def test_a_compressed_archive_and_arrays_in_columns_are_read(tmp_path: Path) -> None:
    state = io.state_dict(net(1))
    by_columns: dict[str, Any] = {name: np.array(array, order="F") for name, array in state.items()}
    np.savez_compressed(tmp_path / "net.npz", **by_columns)
    other = net(2)
    io.load(tmp_path / "net.npz", other)

    assert_same(io.state_dict(other), state)
    assert other.hidden.weight.numpy().flags.c_contiguous


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


def test_a_state_dict_is_a_copy_both_ways() -> None:
    model = net(1)
    state = io.state_dict(model)
    state["hidden.weight"][...] = 7.0
    assert not (model.hidden.weight.numpy() == 7.0).any()
    io.load_state_dict(model, state)
    state["hidden.weight"][...] = 8.0

    assert (model.hidden.weight.numpy() == 7.0).all()


@pytest.mark.parametrize("suffix", FORMATS)
def test_notes_come_back_to_the_bit(tmp_path: Path, suffix: str) -> None:
    value = {"epoch": 3, "losses": [0.1 + 0.2, 1e-300, float("inf")], "name": "größer"}
    io.save_checkpoint(tmp_path / f"run{suffix}", model=net(1), notes=io.Notes(value))
    notes = io.Notes(None)
    io.load_checkpoint(tmp_path / f"run{suffix}", notes=notes)

    assert notes.value == value


def test_notes_that_are_no_json_are_refused() -> None:
    with pytest.raises(tt.ArgumentTypeError, match="Notes: only what JSON has"):
        io.Notes({"model": net(1)})
