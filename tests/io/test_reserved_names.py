"""Names that a format cannot have, or has for itself, are refused, and the file is as it was."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typing_extensions import override

import tapetensor as tt
from tapetensor import io, nn, optim
from tests.io.models import FORMATS, needs_safetensors

ONE = np.ones(2, np.float32)


def layer() -> nn.Linear[Any, Any]:
    return nn.Linear(2, 2, rng=np.random.default_rng(0))


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
        call(tmp_path / "run.npz", **{"a": layer(), "a.weight": io.Notes(1)})

    assert not list(tmp_path.iterdir())


class Several(nn.Module):
    """A dict of modules."""

    parts: dict[Any, nn.Module]

    def __init__(self, parts: dict[Any, nn.Module]) -> None:
        self.parts = parts


@pytest.mark.parametrize(
    "parts", [{0: layer(), "0": layer()}, {"a.0": layer(), "a": nn.Sequential(layer())}]
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
