"""What does not fit is refused with every difference, or left out with a sentence."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tapetensor as tt
from tapetensor import io, optim
from tests.io.models import FORMATS, assert_same, net, tied, write


@pytest.mark.parametrize("suffix", FORMATS)
def test_all_differences_are_reported_at_once(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"net{suffix}"
    arrays: dict[str, Any] = io.state_dict(net(1))
    arrays["hidden.weight"] = np.zeros((3, 4), np.float32)
    arrays["hidden.bias"] = np.zeros((5,), np.float64)
    arrays["norm.weight"] = np.zeros((4,), np.int16)
    arrays["more.weight"] = np.zeros((4,), np.float32)
    del arrays["scale"], arrays["norm.running_var"]
    write(path, arrays)
    model = net(2)
    before = io.state_dict(model)
    with pytest.raises(tt.StateMismatchError) as raised:
        io.load(path, model)

    assert set(raised.value.differences) == {
        "hidden.weight: shape (3, 4), expected is (4, 3)",
        "hidden.bias: shape (5,), expected is (4,)",
        "hidden.bias: dtype float64, expected is float32",
        "norm.weight: dtype int16, expected is float32",
        "scale: missing",
        "norm.running_var: missing",
        "more.weight: not in the model",
    }
    message = str(raised.value)
    assert message.startswith(f"load: {path} does not fit, nothing was loaded:\n  ")
    assert all(one in message for one in raised.value.differences)
    assert_same(io.state_dict(model), before)


def test_a_tied_weight_without_a_value_or_with_two_is_refused() -> None:
    model = tied(1)
    before = io.state_dict(model)
    state = io.state_dict(model)
    state["out.weight"] = state["out.weight"] + 1
    with pytest.raises(tt.StateMismatchError) as raised:
        io.load_state_dict(model, state)
    assert raised.value.differences == (
        "embed.weight = out.weight: one tensor in the model, two values",
    )
    with pytest.raises(tt.StateMismatchError) as raised:
        io.load_state_dict(model, {"out.bias": state["out.bias"]})
    assert raised.value.differences == ("embed.weight = out.weight: missing",)
    assert_same(io.state_dict(model), before)


def test_a_count_of_batches_is_left_out_beside_running_statistics_only() -> None:
    model = net(1)
    count = np.array(3)
    io.load_state_dict(model, {**io.state_dict(model), "norm.num_batches_tracked": count})
    with pytest.raises(tt.StateMismatchError) as raised:
        io.load_state_dict(model, {**io.state_dict(model), "hidden.num_batches_tracked": count})

    assert raised.value.differences == ("hidden.num_batches_tracked: not in the model",)


@pytest.mark.parametrize("suffix", FORMATS)
def test_one_part_that_does_not_fit_keeps_all_from_being_loaded(
    tmp_path: Path, suffix: str
) -> None:
    path = tmp_path / f"run{suffix}"
    model = net(1)
    rng = np.random.default_rng(1)
    io.save_checkpoint(path, model=model, optimizer=optim.Sgd(model, momentum=0.9), rng=rng)
    other, other_rng = net(2), np.random.default_rng(2)
    before, draw = io.state_dict(other), np.random.default_rng(2).random()
    with pytest.raises(tt.StateMismatchError) as raised:
        io.load_checkpoint(path, model=other, optimizer=optim.Adam(other), rng=other_rng)

    assert "optimizer.hidden.weight.velocity: not in the optimizer" in raised.value.differences
    assert "optimizer.hidden.weight.squares: missing" in raised.value.differences
    assert not any(one.startswith(("model.", "rng.")) for one in raised.value.differences)
    assert_same(io.state_dict(other), before)
    assert other_rng.random() == draw


@pytest.mark.parametrize(
    ("name", "value", "told"),
    [
        *[("lr", value, ">= 0") for value in (-1.0, np.nan)],
        *[("steps", -1, ">= 0"), ("hidden.bias.step", -3, ">= 0")],
        *[("hidden.weight.squares", value, "finite, and is not") for value in (np.nan, np.inf)],
    ],
)
def test_values_that_no_optimizer_can_have_are_refused(name: str, value: float, told: str) -> None:
    optimizer = optim.Adam(net(1))
    state = io.state_dict(optimizer)
    before = io.state_dict(optimizer)
    state[name] = np.full_like(state[name], value)
    with pytest.raises(tt.StateMismatchError, match=rf"Adam: {name} must be {told}"):
        io.load_state_dict(optimizer, state)
    assert_same(io.state_dict(optimizer), before)


def test_parameters_may_have_taken_fewer_steps_and_none_more_than_there_were() -> None:
    model = net(1)
    optimizer = optim.Adam(model)
    state = io.state_dict(optimizer)
    steps = {name: 8 for name in state if name.endswith("step")} | {"steps": 8}
    state |= {name: np.array(count) for name, count in steps.items()}
    io.load_state_dict(optimizer, state | {"hidden.bias.step": np.array(6)})
    assert optimizer.steps == 8
    before = io.state_dict(optimizer)
    assert before["hidden.bias.step"] == 6
    with pytest.raises(tt.StateMismatchError, match=r"took 8 steps, and there were 6"):
        io.load_state_dict(optimizer, state | {"steps": np.array(6)})
    assert_same(io.state_dict(optimizer), before)


@pytest.mark.parametrize(
    "text",
    [
        *(b"", b"{", b"[]", b"3", b"{}"),
        b'{"bit_generator": "MT19937"}',
        b'{"bit_generator": "PCG64"}',
        b'{"bit_generator": "PCG64", "state": {"state": -1, "inc": "x"}}',
        b"[" * 50_000,
        b"\xff\xfe",
    ],
)
def test_a_state_that_is_not_the_generators_is_refused(text: bytes) -> None:
    rng = np.random.default_rng(1)
    array = np.frombuffer(text, np.uint8)
    with pytest.raises(tt.StateMismatchError, match=r"state: not that of a PCG64"):
        io.load_state_dict(rng, {"state": array})
    no_states: list[dict[str, Any]] = [{}, {"other": array}, {"state": np.zeros(10**6, np.uint8)}]
    for arrays in [*no_states, {"state": array.astype(np.float32)}, {"state": array[None]}]:
        with pytest.raises(tt.StateMismatchError):
            io.load_state_dict(rng, arrays)
    assert rng.random() == np.random.default_rng(1).random()


def test_what_has_no_state_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.npz"
    tensor: Any = tt.ones((2,))
    model = net(1)
    for call in (
        lambda: io.save(path, tensor),
        lambda: io.load(path, tensor),
        lambda: io.state_dict(tensor),
        lambda: io.load_state_dict(tensor, {}),
        lambda: io.save_checkpoint(path, model=model, x=tensor),
    ):
        with pytest.raises(tt.ArgumentTypeError, match=r"expected a Module, an Optimizer, a num"):
            call()
    with pytest.raises(tt.ArgumentValueError, match=r"^save_checkpoint: name the parts"):
        io.save_checkpoint(path)
    assert not path.exists()


@pytest.mark.parametrize("arrays", [None, 3, {"weight": [1.0]}, {3: np.ones(2)}])
def test_arrays_that_are_none_are_refused(arrays: Any) -> None:
    with pytest.raises(tt.ArgumentTypeError, match=r"^load_state_dict: "):
        io.load_state_dict(net(1), arrays)


@pytest.mark.parametrize("name", ["net", "net.pt", "net.npy", "net.npz.bak"])
def test_a_path_must_say_the_format(tmp_path: Path, name: str) -> None:
    for call in (io.save, io.load):
        with pytest.raises(tt.ArgumentValueError, match=r"must end in \.npz or \.safetensors"):
            call(tmp_path / name, net(1))
    no_path: Any = 3
    with pytest.raises(tt.ArgumentTypeError, match="path must be a path, got int"):
        io.save(no_path, net(1))


@pytest.mark.parametrize("suffix", FORMATS)
def test_a_file_that_is_not_there_is_pythons_own_error(tmp_path: Path, suffix: str) -> None:
    with pytest.raises(FileNotFoundError):
        io.load(tmp_path / f"net{suffix}", net(1))
    with pytest.raises(FileNotFoundError) as caught:
        io.save(tmp_path / "nowhere" / f"net{suffix}", net(1))
    assert Path(caught.value.filename) == tmp_path / "nowhere" / f"net{suffix}"
    (tmp_path / f"folder{suffix}").mkdir()
    with pytest.raises(IsADirectoryError):
        io.load(tmp_path / f"folder{suffix}", net(1))


def test_without_the_library_the_error_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("safetensors", "safetensors.numpy"):
        monkeypatch.setitem(sys.modules, module, None)
    path = tmp_path / "net.safetensors"
    with pytest.raises(tt.MissingDependencyError, match=r"pip install 'tapetensor\[safetensors\]"):
        io.save(path, net(1))
    assert list(tmp_path.iterdir()) == []
    path.write_bytes(b"")
    with pytest.raises(tt.MissingDependencyError, match=r"\.npz files need nothing but numpy"):
        io.load(path, net(1))
