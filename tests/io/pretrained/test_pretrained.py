"""What PyTorch wrote is loaded through a mapping, computes and learns the same, and goes back."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tapetensor as tt
from tapetensor import io, losses, optim
from tests.io.models import Array, needs_safetensors
from tests.io.pretrained import ours
from tests.typing.pages import blocks

HERE = Path(__file__).parent
KINDS = ["Gpt2", "ResNet"]


def load(kind: str, path: Path, model: Any) -> io.Loaded:
    """Load what PyTorch wrote; GPT-2 with the program of the page."""
    if kind == "ResNet":
        return io.load(path, model, names=lambda name: ours.ours(kind, name))
    (program,) = blocks("fine_tuning", 'python title="GPT-2"')
    said: list[io.Loaded] = []
    there = {"io": io, "model": model, "print": said.append}
    exec(program.replace('"gpt2.safetensors"', repr(str(path))), there)
    return said[0]


def fine_tuned(model: Any, known: dict[str, Array]) -> list[float]:
    """Take the steps that PyTorch took; return the losses."""
    optimizer = optim.Sgd(model, lr=0.05)
    labels = tt.from_numpy(known["labels"].reshape(-1))
    found = []
    for _ in range(len(known["losses"])):
        outputs: Any = model.forward(tt.from_numpy(known["inputs"]).trace())
        loss: Any = losses.cross_entropy(outputs.reshape((-1, outputs.shape[-1])), labels)
        found.append(loss.item())
        optimizer.step(loss.backward(wrt=model))
    return found


def outputs(model: Any, known: dict[str, Array]) -> Array:
    result: Array = model.forward(tt.from_numpy(known["inputs"])).numpy()
    return result


def prove(kind: str, folder: Path, back: Path) -> None:
    """Load a file, compare, fine-tune, compare again, and write it back."""
    path, model = folder / f"{kind.lower()}.safetensors", ours.build(kind)
    known = io.read(folder / f"{kind.lower()}.npz")
    loaded = load(kind, path, model)
    assert set(loaded.taken) == set(io.state_dict(model))
    assert (loaded.missing, loaded.converted) == ((), {})
    assert all(name == "lm_head.weight" or "num_batches" in name for name in loaded.left)
    np.testing.assert_allclose(outputs(model, known), known["outputs"], rtol=1e-5, atol=1e-5)

    np.testing.assert_allclose(fine_tuned(model, known), known["losses"], rtol=1e-5)
    np.testing.assert_allclose(outputs(model, known), known["tuned"], rtol=1e-5, atol=1e-5)
    there = ours.in_their_names(kind, model)
    if kind == "Gpt2":
        there["lm_head.weight"] = there["transformer.wte.weight"]
    io.write(back, there)


@needs_safetensors
@pytest.mark.parametrize("kind", KINDS)
def test_a_file_of_pytorch_is_loaded_fine_tuned_and_written_back(kind: str, tmp_path: Path) -> None:
    prove(kind, HERE, back := tmp_path / "back.safetensors")

    before, after = io.read(HERE / f"{kind.lower()}.safetensors"), io.read(back)
    headers = {name: (one.shape, one.dtype) for name, one in before.items() if "num_" not in name}
    assert {name: (one.shape, one.dtype) for name, one in after.items()} == headers


@needs_safetensors
@pytest.mark.parametrize("kind", KINDS)
def test_pytorch_loads_strictly_what_was_written_back(kind: str, tmp_path: Path) -> None:
    torch: Any = pytest.importorskip("torch")
    files: Any = pytest.importorskip("safetensors.torch")
    theirs: Any = importlib.import_module("tests.io.pretrained.theirs")
    theirs.write(getattr(theirs, kind), 2, tmp_path)
    prove(kind, tmp_path, back := tmp_path / "back.safetensors")
    model = getattr(theirs, kind)()
    model.load_state_dict(files.load_file(back), strict=True)

    known = io.read(tmp_path / f"{kind.lower()}.npz")
    with torch.no_grad():
        found = model.eval()(torch.from_numpy(known["inputs"])).numpy()
    np.testing.assert_allclose(found, known["tuned"], rtol=1e-5, atol=1e-5)
