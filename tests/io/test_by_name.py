"""Files are read by name, in part or under other names; what is no array of ours is named."""

from __future__ import annotations

import importlib
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typing_extensions import override

import tapetensor as tt
from tapetensor import io, nn, optim
from tests.io.models import FORMATS, assert_same, layer, needs_safetensors, net, write, write_raw


@pytest.mark.parametrize("suffix", FORMATS)
def test_what_is_written_by_name_is_read_by_name(tmp_path: Path, suffix: str) -> None:
    path, arrays = tmp_path / f"arrays{suffix}", io.state_dict(net(1))
    arrays["hidden.weight"] = arrays["hidden.weight"].T
    io.write(path, arrays)
    found = io.read(path)

    assert_same({name: found[name] for name in arrays}, arrays)
    assert len(found) == len(arrays)
    for wrong in ({"a": np.array([{}])}, {"a": np.zeros(2, complex)}, {"a": [1.0]}, {1: arrays}):
        no_arrays: Any = wrong
        with pytest.raises(tt.ArgumentTypeError, match=r"^write: "):
            io.write(path, no_arrays)
    assert len(io.read(path)) == len(arrays)


def test_names_are_changed_by_a_dict_or_a_function() -> None:
    old = io.state_dict(layer(1))
    there = {"body.weight": old["weight"], "bias": old["bias"], "more": np.zeros(1)}
    by_dict, by_function = layer(2), layer(3)
    first = io.load_state_dict(by_dict, there, names={"body.weight": "weight", "more": None})
    second = io.load_state_dict(
        by_function, there, names=lambda name: None if name == "more" else name.split(".")[-1]
    )

    assert first == second == io.Loaded(("weight", "bias"), ("more",))
    assert_same(io.state_dict(by_dict), old)
    assert_same(io.state_dict(by_function), old)


def test_names_that_cannot_be_meant_are_refused_and_nothing_changes() -> None:
    model, arrays = layer(1), {"w": np.ones((3, 2), np.float32), "b": np.ones(3, np.float32)}
    before = io.state_dict(model)
    cases: list[tuple[Any, type[Exception], str]] = [
        (
            {"x": "weight"},
            tt.ArgumentValueError,
            "names has 'x', which is not there; there is w, b",
        ),
        ({"w": "bias", "b": "bias"}, tt.ArgumentValueError, "gives 'bias' to both 'w' and 'b'"),
        ({"w": 3}, tt.ArgumentTypeError, "for 'w' it gives int"),
        (["w"], tt.ArgumentTypeError, "names must be a dict or a function"),
        (lambda name: {}[name], KeyError, "w"),
        ({"w": "weight", "b": "offset"}, tt.StateMismatchError, "offset: not in the model"),
    ]
    for names, error, told in cases:
        with pytest.raises(error, match=told):
            io.load_state_dict(model, arrays, names=names)
    assert_same(io.state_dict(model), before)


@pytest.mark.parametrize("suffix", FORMATS)
def test_what_is_there_is_taken_and_the_rest_keeps_its_values(tmp_path: Path, suffix: str) -> None:
    path, model, old = tmp_path / f"net{suffix}", net(2), io.state_dict(net(1))
    before = io.state_dict(model)
    io.write(path, {"hidden.weight": old["hidden.weight"], "elsewhere": np.ones(3)})
    loaded = io.load(path, model, strict=False)

    assert (loaded.taken, loaded.left) == (("hidden.weight",), ("elsewhere",))
    assert loaded.missing == tuple(name for name in before if name != "hidden.weight")
    assert_same(io.state_dict(model), before | {"hidden.weight": old["hidden.weight"]})
    assert str(loaded).startswith(f"taken: 1 of {len(before)}\nmissing, as before: hidden.bias, ")
    assert str(loaded).endswith("\nleft out: elsewhere")


def test_less_than_all_is_still_of_the_right_shape_and_something() -> None:
    model = layer(1)
    before = io.state_dict(model)
    with pytest.raises(tt.StateMismatchError, match=r"names=\{'weight': None\}") as raised:
        io.load_state_dict(model, {"weight": np.ones((2, 3), np.float32)}, strict=False)
    assert raised.value.differences == ("weight: shape (2, 3), expected is (3, 2)",)
    with pytest.raises(tt.StateMismatchError, match=r"no name is one of the model.*names="):
        io.load_state_dict(model, {"module.weight": before["weight"]}, strict=False)
    no_flag: Any = "no"
    with pytest.raises(tt.ArgumentTypeError, match="strict"):
        io.load_state_dict(model, before, strict=no_flag)
    optimizer = optim.Adam(model)
    with pytest.raises(tt.ArgumentTypeError, match="are for a Module, got Adam"):
        io.load_state_dict(optimizer, io.state_dict(optimizer), strict=False)
    assert_same(io.state_dict(model), before)


@pytest.mark.parametrize("suffix", FORMATS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_float16_becomes_what_the_model_has(tmp_path: Path, suffix: str, dtype: Any) -> None:
    path, model = tmp_path / f"half{suffix}", layer(1, dtype)
    halves = {name: one.astype(np.float16) for name, one in io.state_dict(layer(2)).items()}
    write(path, halves)
    loaded = io.load(path, model)

    assert loaded.converted == {"weight": "float16", "bias": "float16"}
    assert "converted from float16: " in str(loaded)
    assert_same(io.state_dict(model), {name: one.astype(dtype) for name, one in halves.items()})
    assert io.read(path)["weight"].dtype == np.float16


@needs_safetensors
def test_bfloat16_is_read_to_the_bit(tmp_path: Path) -> None:
    path, model = tmp_path / "half.safetensors", layer(1)
    numbers = [1.0, -0.0, 3.140625, float("inf"), 2.0**-130, -65536.0]
    # As PyTorch writes bfloat16: the first half of the bits of float32.
    halves = (np.array(numbers, "<f4").view("<u4") >> 16).astype("<u2")
    write_raw(path, {"weight": ("BF16", [3, 2], halves.tobytes())})
    loaded = io.load(path, model, strict=False)

    assert loaded.converted == {"weight": "bfloat16"}
    found = io.read(path)["weight"]
    assert found.tobytes() == np.array(numbers, np.float32).tobytes()
    np.testing.assert_array_equal(model.weight.numpy(), found)
    whole = path.read_bytes()
    for length in range(len(whole)):
        path.write_bytes(whole[:length])
        with pytest.raises(tt.FileFormatError, match=r"^read: .*is damaged"):
            io.read(path)


def test_a_file_that_inflates_beyond_all_weights_is_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "zeros.npz"
    io.write(tmp_path / "some.npz", {"zeros": np.zeros(1000)})
    assert io.read(tmp_path / "some.npz")["zeros"].shape == (1000,)
    monkeypatch.setattr("tapetensor.io.files._READ_AT_ONCE", 1 << 16)
    np.savez_compressed(path, zeros=np.zeros(10_000))
    with pytest.raises(tt.FileFormatError, match=r"inflates to 80000 bytes, which no weights"):
        io.read(path)


def lines_for(path: Path) -> list[str]:
    """Return the lines that turn a pickle into safetensors, from the error that refuses it."""
    told = []
    for read in (lambda: io.load(path, layer(1)), lambda: io.read(path)):
        with pytest.raises(tt.ArgumentValueError, match="pickles, which may run anything") as error:
            read()
        told.append(_lines_of(error.value))
    assert told[0] == told[1]
    return told[0]


@pytest.mark.parametrize("name", ["model.pt", "model.pth", "pytorch_model.bin"])
def test_a_pickle_of_pytorch_is_refused_with_the_lines_that_turn_it(name: str) -> None:
    first, second = lines_for(Path(name))

    assert first == f"state = torch.load({name!r}, map_location='cpu', weights_only=True)"
    assert second.startswith("safetensors.torch.save_file(")
    assert second.endswith(f", {name.rpartition('.')[0] + '.safetensors'!r})")
    with pytest.raises(tt.ArgumentValueError, match=r"must end in .*\.safetensors, which") as told:
        io.save(name, layer(1))
    assert "pickle" not in str(told.value)


ONE = np.ones(2, np.float32)


@pytest.mark.parametrize(
    ("suffix", "names"),
    [
        pytest.param(".safetensors", ["__metadata__"], marks=needs_safetensors),
        pytest.param(".safetensors", ["\ud800"], marks=needs_safetensors),
        (".npz", ["a\0b"]),
        (".npz", ["a\0b", "a\0c"]),
        (".npz", ["a", "a.npy"]),
        (".npz", ["\ud800"]),
        (".npz", ["a" * 70_000]),
    ],
)
def test_names_that_would_not_come_back_are_refused(
    tmp_path: Path, suffix: str, names: list[str]
) -> None:
    path = tmp_path / f"arrays{suffix}"
    io.write(path, {"good": ONE})
    with pytest.raises(tt.ArgumentValueError, match=r"files have no such names: .* another name"):
        io.write(path, dict.fromkeys(names, ONE))

    assert list(io.read(path)) == ["good"]


@pytest.mark.parametrize("suffix", FORMATS)
def test_all_other_names_come_back(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"arrays{suffix}"
    names = ["", "a", "A", "a/", "a/b", "../a", "/a", "a\nb", "é", "file", "x.npy", "con"]
    names += ["__metadata__"] if suffix == ".npz" else ["a\0b", "__metadata__.a"]
    io.write(path, {name: ONE * at for at, name in enumerate(names)})
    found = io.read(path)

    assert {name: array[0] for name, array in found.items()} == {
        name: at for at, name in enumerate(names)
    }


@pytest.mark.parametrize("call", [io.save_checkpoint, io.load_checkpoint])
def test_parts_that_would_share_names_are_refused(tmp_path: Path, call: Any) -> None:
    with pytest.raises(tt.ArgumentValueError, match=r"'a' and 'a\.weight' would share names"):
        call(tmp_path / "run.npz", **{"a": layer(0), "a.weight": io.Notes(1)})

    assert not list(tmp_path.iterdir())


class Several(nn.Module):
    """A dict of modules."""

    parts: dict[Any, nn.Module]

    def __init__(self, parts: dict[Any, nn.Module]) -> None:
        self.parts = parts


@pytest.mark.parametrize(
    "parts",
    [
        {0: layer(0), "0": layer(0)},
        {"a.0": layer(0), "a": nn.Sequential(layer(0))},
    ],
)
def test_two_parameters_of_one_name_are_refused(parts: dict[Any, nn.Module]) -> None:
    model = Several(parts)
    for use in (model.parameters, lambda: optim.Sgd(model), lambda: io.state_dict(model)):
        with pytest.raises(tt.ArgumentValueError, match=r"two tensors go by the name 'parts\."):
            use()


@pytest.mark.parametrize("names", [["step"], ["a", "a"], ["a.b"], [""]])
def test_the_state_of_an_optimizer_has_names_of_its_own(names: list[str]) -> None:
    class Own(optim.Optimizer):
        def __init__(self, model: optim.optimizer.Parameters) -> None:
            states = [optim.State(name) for name in names]
            super().__init__(model, 0.1, lambda *_: None, states, 0.0, False)

        @override
        def _options(self, count: int) -> tuple[Any, ...]:
            return (count,)

    with pytest.raises(tt.ArgumentValueError, match=r"Own: the state .* files have the arrays"):
        Own([tt.ones((2,))])


GOOD: dict[str, Any] = {"weight": np.full((3, 2), 2, np.float32), "bias": np.ones(3, np.float32)}
# By the dtype of a file, the numbers of bits.
KINDS = {"F8_E4M3": 8, "F8_E5M2": 8, "F8_E8M0": 8, "C64": 64, "F4": 4}


def assert_the_good_ones_come(path: Path, told: str) -> None:
    with pytest.warns(UserWarning, match=rf"read: .*'other' is {told}.*; the rest is read"):
        found = io.read(path)
    assert set(found) == set(GOOD)
    for given in ({"strict": False}, {"names": {"other": None}}):
        model, options = layer(1), dict[str, Any](given)
        assert io.load(path, model, **options).left == ("other",)
        np.testing.assert_array_equal(model.weight.numpy(), GOOD["weight"])


@needs_safetensors
@pytest.mark.parametrize("kind", KINDS)
def test_a_dtype_that_no_tensor_has_is_left_out(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "arrays.safetensors"
    entries = {name: ("F32", [*array.shape], array.tobytes()) for name, array in GOOD.items()}
    write_raw(path, entries | {"other": (kind, [2], bytes(KINDS[kind] * 2 // 8))})
    told = {"C64": "of complex64", "F8_E4M3": "of f8_e4m3, .* scales"}
    assert_the_good_ones_come(path, told.get(kind, f"of .*{kind[-2:].lower()}"))


@pytest.mark.parametrize(
    ("other", "told"),
    [
        (np.ones(2, complex), "of complex128"),
        (np.array(["a", "bc"]), "of <U2"),
        (np.array(["2020-01-01"], "M8[D]"), r"of datetime64\[D\]"),
        (np.array([{"lr": 0.1}], object), "a pickle"),
    ],
    ids=["complex", "texts", "dates", "pickle"],
)
def test_what_numpy_has_and_tensors_have_not_is_left_out(
    tmp_path: Path, other: Any, told: str
) -> None:
    path = tmp_path / "arrays.npz"
    np.savez(path, other=other, **GOOD)
    assert_the_good_ones_come(path, told)


def test_a_file_with_nothing_else_is_refused(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", other=np.ones(2, complex))
    with pytest.raises(tt.FileFormatError, match=r"'other' is of complex128, .*nothing else"):
        io.read(tmp_path / "a.npz")


@pytest.mark.parametrize("suffix", FORMATS)
def test_numbers_are_numbers_whatever_the_order_of_their_bytes(tmp_path: Path, suffix: str) -> None:
    turned = {name: array.astype(">f4") for name, array in GOOD.items()}
    path, model, other = tmp_path / f"turned{suffix}", layer(1), layer(2)
    io.write(path, turned)
    io.load(path, model)
    io.load_state_dict(other, turned)
    if suffix == ".npz":
        np.savez(path, **turned)
        io.load(path, model)

    for one in (model.weight, other.weight):
        assert one.array.dtype.isnative
        np.testing.assert_array_equal(one.numpy(), GOOD["weight"])
    assert io.read(path)["bias"].dtype == np.float32


@pytest.mark.parametrize(
    ("name", "read", "written"),
    [
        ("x.npy", r"tt\.from_numpy\(numpy\.load\('x\.npy'\)\)", r"numpy\.save\('x\.npy'"),
        ("x.onnx", r"onnx\.load\('x\.onnx'\)", r"tapetensor\.onnx\.export"),
    ],
)
def test_files_of_others_are_refused_with_what_reads_and_writes_them(
    name: str, read: str, written: str
) -> None:
    for action, told in ((io.read, read), (lambda path: io.load(path, layer(1)), read)):
        with pytest.raises(tt.ArgumentValueError, match=told):
            action(name)
    with pytest.raises(tt.ArgumentValueError, match=written):
        io.save(name, layer(1))


def _lines_of(error: Exception) -> list[str]:
    return [line.strip() for line in str(error).splitlines() if line.startswith("  ")]


@pytest.mark.parametrize(
    "nested",
    [
        # Two parts have the same tensors.
        lambda state, adam: {"step": 3, "model": state, "ema": state, "optimizer": adam},
        lambda state, adam: {"state_dict": state, "optimizer_states": [adam], "epoch": 1},
        lambda state, adam: {f"module.{name}": one for name, one in state.items()},
        lambda state, adam: [state, adam],
    ],
    ids=["by part", "lightning", "parallel", "list"],
)
def test_checkpoints_are_turned_however_they_are_nested(tmp_path: Path, nested: Any) -> None:
    torch: Any = pytest.importorskip("torch")
    pytest.importorskip("safetensors.torch")
    theirs = torch.nn.Linear(2, 3)
    adam = torch.optim.Adam(theirs.parameters())
    theirs(torch.ones(1, 2)).sum().backward()
    adam.step()
    path, turned = tmp_path / "run.pt", tmp_path / "run.safetensors"
    # It lies in another order.
    state = theirs.state_dict() | {"weight": theirs.weight.detach().T.contiguous().T}
    torch.save(nested(state, adam.state_dict()), path)
    with pytest.raises(tt.ArgumentValueError) as refused:
        io.read(path)
    names = {"torch": torch, "safetensors": importlib.import_module("safetensors")}
    exec("\n".join(_lines_of(refused.value)), names)
    for strict in (True, False):
        model = layer(1)
        with pytest.raises(tt.StateMismatchError, match="there behind") as error:
            io.load(turned, model, strict=strict)
        cure = re.findall(r"names=(lambda .*)", str(error.value))[-1]
        io.load(turned, model, names=eval(cure))
        np.testing.assert_array_equal(model.weight.numpy(), theirs.weight.detach().numpy())


def test_all_parts_that_could_be_meant_are_named() -> None:
    arrays = {f"{part}.{name}": one for part in ("model", "ema") for name, one in GOOD.items()}
    with pytest.raises(tt.StateMismatchError, match=r"behind 'model\.' and 'ema\.': names="):
        io.load_state_dict(layer(1), arrays)
    with pytest.raises(tt.StateMismatchError) as error:
        io.load_state_dict(layer(1), {"model.weight": GOOD["weight"]})
    assert "behind" not in str(error.value)
