"""Files that PyTorch wrote are read here, and ours there, where it is installed."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any
from typing import Literal as L

import numpy as np
import pytest

import tapetensor as tt
from tapetensor import Tensor2D, io, nn
from tests.io.models import FORMATS, Array, write
from tests.typing.pages import blocks

torch: Any = pytest.importorskip("torch")

Ours = nn.Sequential[
    nn.Linear[L[3], L[4]],
    nn.BatchNorm1d[L[4]],
    nn.Tanh,
    nn.Sequential[nn.LayerNorm[L[4]], nn.Linear[L[4], L[2]]],
]


def ours(seed: int) -> Ours:
    return tt.build(Ours, rng=np.random.default_rng(seed))


def theirs(seed: int) -> Any:
    """Return the same architecture, in PyTorch, with running statistics of its own."""
    torch.manual_seed(seed)
    model = torch.nn.Sequential(
        torch.nn.Linear(3, 4),
        torch.nn.BatchNorm1d(4),
        torch.nn.Tanh(),
        torch.nn.Sequential(torch.nn.LayerNorm(4), torch.nn.Linear(4, 2)),
    )
    model(torch.randn(8, 3))
    return model.eval()


def outputs(model: Ours, torch_model: Any) -> tuple[Array, Array]:
    x: Tensor2D[L[5], L[3]] = tt.normal((5, 3), rng=np.random.default_rng(5))
    with torch.no_grad():
        torch_output: Array = torch_model(torch.from_numpy(x.numpy().copy())).numpy()
    return model.forward(x).numpy(), torch_output


@pytest.mark.parametrize("suffix", FORMATS)
def test_a_state_dict_of_torch_loads_here(tmp_path: Path, suffix: str) -> None:
    path, torch_model = tmp_path / f"model{suffix}", theirs(1)
    if suffix == ".safetensors":
        torch_files: Any = pytest.importorskip("safetensors.torch")
        torch_files.save_file(torch_model.state_dict(), path)
    else:
        write(path, {name: one.numpy() for name, one in torch_model.state_dict().items()})
    model = ours(2)
    io.load(path, model)

    np.testing.assert_allclose(*outputs(model, torch_model), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("suffix", FORMATS)
def test_a_file_of_ours_loads_in_torch(tmp_path: Path, suffix: str) -> None:
    path, model, torch_model = tmp_path / f"model{suffix}", ours(1), theirs(2)
    model.forward(tt.normal((8, 3), rng=np.random.default_rng(3)).trace())
    io.save(path, model)
    if suffix == ".safetensors":
        torch_files: Any = pytest.importorskip("safetensors.torch")
        state = torch_files.load_file(path)
    else:
        with np.load(path) as archive:
            state = {name: torch.from_numpy(array) for name, array in archive.items()}
    torch_model.load_state_dict(state)

    np.testing.assert_allclose(*outputs(model, torch_model), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("suffix", FORMATS)
def test_an_embedding_that_torch_ties_to_its_head_loads_here(tmp_path: Path, suffix: str) -> None:
    class Ties(nn.Module):
        embed: nn.Embedding[L[5], L[4]]
        head: nn.Linear[L[4], L[5]]

    class TorchTies(torch.nn.Module):  # type: ignore[misc]  # PyTorch is not there for mypy
        def __init__(self) -> None:
            super().__init__()
            self.embed, self.head = torch.nn.Embedding(5, 4), torch.nn.Linear(4, 5)
            self.head.weight = self.embed.weight

    torch_model, path = TorchTies(), tmp_path / f"ties{suffix}"
    if suffix == ".safetensors":
        torch_files: Any = pytest.importorskip("safetensors.torch")
        # Keeps one name of the two.
        torch_files.save_model(torch_model, path)
    else:
        write(path, {name: one.numpy() for name, one in torch_model.state_dict().items()})
    model = tt.build(Ties, rng=np.random.default_rng(0))
    model.head.weight = model.embed.weight
    io.load(path, model)

    assert model.head.weight is model.embed.weight
    np.testing.assert_array_equal(
        model.head.weight.numpy(), torch_model.head.weight.detach().numpy()
    )


@pytest.mark.parametrize("suffix", FORMATS)
def test_convolutions_go_both_ways(tmp_path: Path, suffix: str) -> None:
    def model(seed: int) -> Any:
        rng = np.random.default_rng(seed)
        return nn.Sequential(
            nn.Conv2d(2, 4, 3, groups=2, rng=rng),
            nn.BatchNorm2d(4),
            nn.ConvTranspose2d(4, 3, 2, stride=2, bias=False, rng=rng),
        )

    torch.manual_seed(1)
    torch_model = torch.nn.Sequential(
        torch.nn.Conv2d(2, 4, 3, groups=2),
        torch.nn.BatchNorm2d(4),
        torch.nn.ConvTranspose2d(4, 3, 2, stride=2, bias=False),
    )
    torch_model(torch.randn(8, 2, 5, 5))
    torch_model.eval()
    there, back = tmp_path / f"there{suffix}", tmp_path / f"back{suffix}"
    write(there, {name: one.numpy() for name, one in torch_model.state_dict().items()})
    first, second = model(2), model(3)
    io.load(there, first)
    io.save(back, first)
    io.load(back, second)
    x = np.random.default_rng(5).standard_normal((2, 2, 5, 5)).astype(np.float32)
    with torch.no_grad():
        expected = torch_model(torch.from_numpy(x)).numpy()

    names = {name for name in torch_model.state_dict() if "num_batches" not in name}
    assert io.state_dict(second).keys() == names
    np.testing.assert_allclose(
        second.forward(tt.from_numpy(x)).numpy(), expected, rtol=1e-4, atol=1e-5
    )


@pytest.mark.parametrize("suffix", FORMATS)
@pytest.mark.parametrize("kind", ["RNN", "GRU", "LSTM"])
def test_recurrent_layers_load_here(tmp_path: Path, suffix: str, kind: str) -> None:
    torch.manual_seed(1)
    torch_layer = getattr(torch.nn, kind)(3, 4, batch_first=True)
    path, layer = tmp_path / f"layer{suffix}", getattr(nn, kind)(3, 4, rng=np.random.default_rng(0))
    write(path, {name: one.numpy() for name, one in torch_layer.state_dict().items()})
    io.load(path, layer)
    x = np.random.default_rng(5).standard_normal((2, 6, 3)).astype(np.float32)
    with torch.no_grad():
        expected, _ = torch_layer(torch.from_numpy(x))
    result = layer.forward(tt.from_numpy(x))

    output = result[0] if isinstance(result, tuple) else result
    np.testing.assert_allclose(output.numpy(), expected.numpy(), rtol=1e-5, atol=1e-6)


def test_a_model_goes_there_and_back_without_a_file_as_the_page_says() -> None:
    model, torch_model = ours(1), theirs(2)
    before = {name: array.copy() for name, array in io.state_dict(model).items()}
    (program,) = blocks("files", 'python title="with PyTorch"')
    there, back = map(ast.unparse, ast.parse(program).body)
    names = {"io": io, "torch": torch, "model": model, "torch_model": torch_model}
    exec(compile(there, "docs/files.md", "exec"), names)
    np.testing.assert_allclose(*outputs(model, torch_model), rtol=1e-4, atol=1e-5)
    io.load_state_dict(model, io.state_dict(ours(3)))
    exec(compile(back, "docs/files.md", "exec"), names)

    for name, array in io.state_dict(model).items():
        np.testing.assert_array_equal(array, before[name])


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
        for parameter in self.parameters():
            torch.nn.init.normal_(parameter)

    def forward(self, x: Any) -> Any:
        mask = torch.nn.Transformer.generate_square_subsequent_mask(x.shape[-2])
        y = self.decoder(x, self.encoder(x), tgt_mask=mask, tgt_is_causal=True)
        return self.attention(y, y, y)[0]


def attentive_outputs(model: Attentive, torch_model: Any) -> tuple[Array, Array]:
    x = np.random.default_rng(5).standard_normal((2, 6, 8)).astype(np.float32)
    with torch.no_grad():
        torch_output: Array = torch_model(torch.from_numpy(x)).numpy()
    return model.forward(tt.from_numpy(x)).numpy(), torch_output


@pytest.mark.parametrize("suffix", FORMATS)
def test_attentions_load_here(tmp_path: Path, suffix: str) -> None:
    torch.manual_seed(1)
    path, torch_model = tmp_path / f"model{suffix}", TorchAttentive()
    write(path, {name: one.numpy() for name, one in torch_model.state_dict().items()})
    model = tt.build(Attentive, rng=np.random.default_rng(0))
    io.load(path, model)

    np.testing.assert_allclose(*attentive_outputs(model, torch_model), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("suffix", FORMATS)
def test_attentions_of_ours_load_in_torch(tmp_path: Path, suffix: str) -> None:
    path, model = tmp_path / f"model{suffix}", tt.build(Attentive, rng=np.random.default_rng(0))
    io.save(path, model, for_pytorch=True)
    if suffix == ".safetensors":
        torch_files: Any = pytest.importorskip("safetensors.torch")
        state = torch_files.load_file(path)
    else:
        with np.load(path) as archive:
            state = {name: torch.from_numpy(array) for name, array in archive.items()}
    torch_model = TorchAttentive()
    torch_model.load_state_dict(state)

    np.testing.assert_allclose(*attentive_outputs(model, torch_model), rtol=1e-4, atol=1e-5)
