"""What is no array of ours, in a file or as one, gets its sentence; what lies beside it is read."""

from __future__ import annotations

import importlib
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tapetensor as tt
from tapetensor import io
from tests.io.models import FORMATS, needs_safetensors
from tests.io.test_by_name import layer

GOOD: dict[str, Any] = {"weight": np.full((3, 2), 2, np.float32), "bias": np.ones(3, np.float32)}
# By the dtype of a file, the numbers of bits.
KINDS = {"F8_E4M3": 8, "F8_E5M2": 8, "F8_E8M0": 8, "C64": 64, "F4": 4}


def safetensors_with(path: Path, kind: str) -> None:
    """Write good arrays and one of another kind, two elements, all of zeros."""
    header, content = {}, b""
    entries = {name: ("F32", array.shape, array.tobytes()) for name, array in GOOD.items()}
    entries["other"] = (kind, (2,), bytes(KINDS[kind] * 2 // 8))
    for name, (dtype, shape, raw) in entries.items():
        place = [len(content), len(content) + len(raw)]
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": place}
        content += raw
    written = json.dumps(header).encode()
    path.write_bytes(len(written).to_bytes(8, "little") + written + content)


def npz_with(path: Path, other: Any) -> None:
    np.savez(path, other=other, **GOOD)


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
    safetensors_with(path, kind)
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
    npz_with(path, other)
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
