"""Files that PyTorch wrote are read here, and ours there, where it is installed."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any
from typing import Literal as L

import numpy as np
import pytest

import tapetensor as tt
from tapetensor import io, nn
from tests.io.models import FORMATS, write
from tests.typing.pages import blocks

torch: Any = pytest.importorskip("torch")

Perceptron = nn.Sequential[
    nn.Linear[L[3], L[4]],
    nn.BatchNorm1d[L[4]],
    nn.Tanh,
    nn.Sequential[nn.LayerNorm[L[4]], nn.Linear[L[4], L[2]]],
]
Convolutions = nn.Sequential[
    nn.Conv2d[L[4], L[4], L[3]],
    nn.BatchNorm2d[L[4]],
    nn.ConvTranspose2d[L[4], L[3], L[2], L[2]],
]


class Attentive(nn.Module):
    """What PyTorch has as an encoder and a decoder, under fields of the same names."""

    encoder: nn.Repeated[nn.EncoderBlock[L[8], L[2], L[12]], L[2]]
    decoder: nn.DecoderBlock[L[8], L[2], L[12]]
    attention: nn.MultiHeadAttention[L[8], L[4]]

    def forward(self, x: Any) -> Any:
        return self.attention.forward(self.decoder.forward(x, self.encoder.forward(x)))


class TorchAttentive(torch.nn.Module):  # type: ignore[misc]  # PyTorch is not there for mypy
    def __init__(self) -> None:
        super().__init__()
        sizes: dict[str, Any] = {"dim_feedforward": 12, "dropout": 0.0, "batch_first": True}
        self.encoder = torch.nn.TransformerEncoder(
            torch.nn.TransformerEncoderLayer(8, 2, **sizes), 2, enable_nested_tensor=False
        )
        self.decoder = torch.nn.TransformerDecoderLayer(8, 2, **sizes)
        self.attention = torch.nn.MultiheadAttention(8, 4, batch_first=True)

    def forward(self, x: Any) -> Any:
        mask = torch.nn.Transformer.generate_square_subsequent_mask(x.shape[-2])
        y = self.decoder(x, self.encoder(x), tgt_mask=mask, tgt_is_causal=True)
        return self.attention(y, y, y)[0]


def their_perceptron() -> Any:
    last = torch.nn.Sequential(torch.nn.LayerNorm(4), torch.nn.Linear(4, 2))
    return torch.nn.Sequential(
        torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4), torch.nn.Tanh(), last
    )


def their_convolutions() -> Any:
    return torch.nn.Sequential(
        torch.nn.Conv2d(4, 4, 3), torch.nn.BatchNorm2d(4), torch.nn.ConvTranspose2d(4, 3, 2, 2)
    )


# A model of ours, PyTorch's, and the shape of an input.
MODELS: dict[str, tuple[Any, Any, tuple[int, ...]]] = {
    "perceptron": (Perceptron, their_perceptron, (5, 3)),
    "convolutions": (Convolutions, their_convolutions, (2, 4, 5, 5)),
    "attentions": (Attentive, TorchAttentive, (2, 6, 8)),
    **{
        kind: (
            getattr(nn, kind)[L[3], L[4]],
            lambda k=kind: getattr(torch.nn, k)(3, 4, batch_first=True),
            (2, 6, 3),
        )
        for kind in ("RNN", "GRU", "LSTM")
    },
}


def ours(name: str, seed: int) -> Any:
    return tt.build(MODELS[name][0], rng=np.random.default_rng(seed))


def theirs(name: str, seed: int) -> Any:
    """Return the same architecture, in PyTorch, with numbers and running statistics of its own."""
    torch.manual_seed(seed)
    _, make, shape = MODELS[name]
    model = make()
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.5)
    model(torch.randn(shape))
    return model.eval()


def assert_alike(name: str, model: Any, torch_model: Any) -> None:
    """Compare what both compute."""
    x = np.random.default_rng(5).standard_normal(MODELS[name][2]).astype(np.float32)
    with torch.no_grad():
        expected = torch_model(torch.from_numpy(x))
    found = model.forward(tt.from_numpy(x))
    if isinstance(expected, tuple):
        expected, found = expected[0], found[0] if isinstance(found, tuple) else found
    np.testing.assert_allclose(found.numpy(), expected.numpy(), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("suffix", FORMATS)
@pytest.mark.parametrize("name", MODELS)
def test_a_state_dict_of_torch_loads_here(tmp_path: Path, name: str, suffix: str) -> None:
    path, torch_model, model = tmp_path / f"model{suffix}", theirs(name, 1), ours(name, 2)
    if suffix == ".safetensors":
        torch_files: Any = pytest.importorskip("safetensors.torch")
        torch_files.save_file(torch_model.state_dict(), path)
    else:
        write(path, {key: one.numpy() for key, one in torch_model.state_dict().items()})
    io.load(path, model)

    assert_alike(name, model, torch_model)


@pytest.mark.parametrize("suffix", FORMATS)
@pytest.mark.parametrize("name", MODELS)
def test_a_file_of_ours_loads_in_torch(tmp_path: Path, name: str, suffix: str) -> None:
    path, model, torch_model = tmp_path / f"model{suffix}", ours(name, 1), theirs(name, 2)
    x: Any = tt.normal(MODELS[name][2], rng=np.random.default_rng(3))
    model.forward(x.trace())
    io.save(path, model, for_pytorch=True)
    if suffix == ".safetensors":
        torch_files: Any = pytest.importorskip("safetensors.torch")
        state = torch_files.load_file(path)
    else:
        with np.load(path) as archive:
            state = {key: torch.from_numpy(array) for key, array in archive.items()}
    torch_model.load_state_dict(state)

    assert_alike(name, model, torch_model)


def test_a_model_goes_there_and_back_without_a_file_as_the_page_says() -> None:
    model, torch_model = ours("perceptron", 1), theirs("perceptron", 2)
    before = {name: array.copy() for name, array in io.state_dict(model).items()}
    (program,) = blocks("files", 'python title="with PyTorch"')
    there, back = map(ast.unparse, ast.parse(program).body)
    names = {"io": io, "torch": torch, "model": model, "torch_model": torch_model}
    exec(compile(there, "docs/files.md", "exec"), names)
    assert_alike("perceptron", model, torch_model)
    io.load_state_dict(model, io.state_dict(ours("perceptron", 3)))
    exec(compile(back, "docs/files.md", "exec"), names)

    for name, array in io.state_dict(model).items():
        np.testing.assert_array_equal(array, before[name])
