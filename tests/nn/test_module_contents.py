"""What a module tells of itself: parameters, buffers, modules, repr and summary."""

from __future__ import annotations

from typing import Any
from typing import Literal as L

import numpy as np

import tapetensor as tt
from tapetensor import NoneTape, Tensor0D, Tensor1D, Tensor2D, nn
from tapetensor.typing import B, T


class Mlp(nn.Module):
    hidden: nn.Linear[L[7], L[5]]
    norm: nn.BatchNorm1d[L[5]]
    out: nn.Linear[L[5], L[2]]

    def forward(self, x: Tensor2D[B, L[7], T]) -> Tensor2D[B, L[2], T]:
        h: Tensor2D[B, L[5], T] = self.norm.forward(self.hidden.forward(x))
        return self.out.forward(h.relu())


class Everything(nn.Module):
    scale: Tensor1D[L[3]] = nn.parameter(nn.init.ones)
    blocks: list[nn.LayerNorm[L[3]]] = nn.repeat(2)
    pair: tuple[nn.ReLU, Mlp]
    named: dict[str, Any]
    count: Tensor0D[NoneTape, np.int64] = nn.buffer(nn.init.zeros)
    wide: Tensor2D[L[2], L[1], NoneTape, np.float64] = nn.buffer(nn.init.ones)
    maybe: nn.ReLU | None = None
    eps: float = 0.5
    mode: str = "fast"


class Tied(nn.Module):
    embed: nn.Embedding[L[900], L[4]]
    out: nn.Linear[L[4], L[900]]

    def __init__(self, *, rng: np.random.Generator) -> None:
        self.embed = nn.Embedding(900, 4, rng=rng)
        self.out = nn.Linear(4, 900, rng=rng)
        self.out.weight = self.embed.weight


def everything(rng: np.random.Generator) -> Everything:
    return Everything(
        scale=tt.ones((3,)),
        blocks=[nn.LayerNorm(3), nn.LayerNorm(3)],
        pair=(nn.ReLU(), tt.build(Mlp, rng=rng)),
        named={"a": nn.Linear(1, 1, rng=rng), "b": {"c": tt.ones((1,))}, "d": 5},
        count=tt.full((), 0, np.int64),
        wide=tt.ones((2, 1), np.float64),
    )


def test_parameters_are_named_by_their_path_in_the_order_of_the_fields(
    rng: np.random.Generator,
) -> None:
    assert list(everything(rng).parameters()) == [
        "scale",
        "blocks.0.weight",
        "blocks.0.bias",
        "blocks.1.weight",
        "blocks.1.bias",
        "pair.1.hidden.weight",
        "pair.1.hidden.bias",
        "pair.1.norm.weight",
        "pair.1.norm.bias",
        "pair.1.out.weight",
        "pair.1.out.bias",
        "named.a.weight",
        "named.a.bias",
        "named.b.c",
    ]


def test_buffers_are_state_and_integers(rng: np.random.Generator) -> None:
    model = everything(rng)

    assert list(model.buffers()) == [
        "pair.1.norm.running_mean",
        "pair.1.norm.running_var",
        "count",
        "wide",
    ]
    assert not set(model.buffers()) & set(model.parameters())


def test_modules_are_listed_with_those_within_them(rng: np.random.Generator) -> None:
    model = everything(rng)

    assert list(model.modules()) == [
        "blocks.0",
        "blocks.1",
        "pair.0",
        "pair.1",
        "pair.1.hidden",
        "pair.1.norm",
        "pair.1.out",
        "named.a",
    ]
    assert model.modules()["pair.1.out"] is model.pair[1].out


def test_tied_weights_go_by_both_names_and_count_once(rng: np.random.Generator) -> None:
    model = tt.build(Tied, rng=rng)
    parameters = model.parameters()

    assert list(parameters) == ["embed.weight", "out.weight", "out.bias"]
    assert parameters["embed.weight"] is parameters["out.weight"]
    assert model.summary() == (
        "name          shape     parameters\n"
        "embed.weight  (900, 4)       3,600\n"
        "out.weight    (900, 4)       3,600\n"
        "out.bias      (900,)           900\n"
        "total                        4,500"
    )
    assert model.parameter_count() == 4500


def test_the_repr_of_each_layer(rng: np.random.Generator) -> None:
    assert [
        repr(layer)
        for layer in (
            nn.Linear(3, 2, np.float64, rng=rng),
            nn.Linear(np.int64(3), 2, rng=rng),  # type: ignore[call-overload]  # does at run time
            nn.Embedding(10, 4, rng=rng),
            nn.LayerNorm(3, np.float64, eps=0.0),
            nn.Dropout(0.1, rng=rng),
            nn.GELU("tanh"),
            nn.ReLU(),
            nn.Module(),
        )
    ] == [
        "Linear(in_features=3, out_features=2, dtype=float64)",
        "Linear(in_features=3, out_features=2)",
        "Embedding(num_embeddings=10, embedding_features=4)",
        "LayerNorm(normalized_features=3, dtype=float64, eps=0.0)",
        "Dropout(p=0.1)",
        "GELU(approximate='tanh')",
        "ReLU()",
        "Module()",
    ]
