"""Modules as classes: their fields, what fits an annotation, copies, and what they tell."""

from __future__ import annotations

import copy
import pickle
import re
from typing import Any, Generic
from typing import Literal as L

import numpy as np
import pytest

import tapetensor as tt
from tapetensor import NoneTape, Tensor0D, Tensor1D, Tensor2D, nn
from tapetensor.errors import ArgumentTypeError, BuildError, DTypeError, ShapeError
from tapetensor.nn.typing import W
from tapetensor.typing import B, T


class Mlp(nn.Module):
    hidden: nn.Linear[L[7], L[5]]
    out: nn.Linear[L[5], L[2]]

    def forward(self, x: Tensor2D[B, L[7], T]) -> Tensor2D[B, L[2], T]:
        return self.out.forward(self.hidden.forward(x).relu())


class Settings(nn.Module):
    eps: float = 1e-5
    names: list[str] = ["a"]
    act: nn.ReLU | None = None
    norm: nn.LayerNorm[L[2]] = nn.LayerNorm(2)
    shift: Tensor1D[L[2]] = tt.zeros((2,))


def linear(fan_in: int, fan_out: int) -> Any:
    return nn.Linear(fan_in, fan_out, rng=np.random.default_rng(fan_in))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, "Mlp: missing fields hidden, out; the fields are hidden, out"),
        ({"hidden": linear(7, 5)}, "Mlp: missing fields out; the fields are hidden, out"),
        (
            {"hidden": linear(7, 5), "last": 1, "bias": 2},
            "Mlp: missing fields out; no such fields last, bias; the fields are hidden, out",
        ),
        (
            {"hidden": linear(7, 5), "out": linear(5, 2), "drop": 0},
            "Mlp: no such fields drop; the fields are hidden, out",
        ),
    ],
)
def test_missing_and_unknown_fields_are_listed(given: Any, message: str) -> None:
    with pytest.raises(ArgumentTypeError, match=re.escape(message)):
        Mlp(**given)


@pytest.mark.parametrize(
    ("out", "kind", "message"),
    [
        (
            linear(4, 2),
            ShapeError,
            "Mlp: out.weight has shape (2, 4), the annotation of out says (2, 5)",
        ),
        (nn.ReLU(), BuildError, "Mlp: out must be a Linear, as it is annotated, got a ReLU"),
        (
            nn.Linear,
            BuildError,
            "Mlp: out must be a Linear, as it is annotated, got the class Linear",
        ),
        (None, BuildError, "Mlp: out must be a Linear, as it is annotated, got None"),
        (tt.ones((2, 5)), BuildError, "Mlp: out must be a Linear, as it is annotated, got a Tens"),
        (
            nn.Linear(5, 2, np.float64, rng=np.random.default_rng(0)),
            DTypeError,
            "Mlp: out.weight has dtype float64, the annotation of out says float32",
        ),
    ],
)
def test_a_value_that_does_not_fit_its_annotation_is_refused(
    out: Any, kind: type[Exception], message: str
) -> None:
    with pytest.raises(kind, match=re.escape(message)):
        Mlp(hidden=linear(7, 5), out=out)


def test_values_in_lists_tuples_and_options_are_checked_too() -> None:
    class Model(nn.Module):
        blocks: list[nn.Linear[L[3], L[3]]]
        pair: tuple[nn.ReLU, nn.LayerNorm[L[3]]]
        named: dict[str, nn.Linear[L[3], L[1]]]
        maybe: nn.LayerNorm[L[2]] | None
        table: Tensor2D[L[3], Any]

    good: dict[str, Any] = {
        "blocks": [linear(3, 3)] * 2,
        "pair": (nn.ReLU(), nn.LayerNorm(3)),
        "named": {"a": linear(3, 1)},
        "maybe": None,
        "table": tt.ones((3, 9)),
    }
    Model(**good)
    Model(**good | {"maybe": nn.LayerNorm(2)})

    for wrong, message in [
        ({"blocks": [linear(3, 3), linear(3, 4)]}, "blocks.1.weight has shape (4, 3)"),
        ({"blocks": linear(3, 3)}, "blocks must be a list, as it is annotated, got a Linear"),
        ({"pair": (nn.ReLU(),)}, "pair has 1 elements, the annotation of pair says 2"),
        ({"pair": (nn.ReLU(), nn.ReLU())}, "pair.1 must be a LayerNorm"),
        ({"named": {"a": linear(2, 1)}}, "named.a.weight has shape (1, 2)"),
        ({"named": [linear(3, 1)]}, "named must be a dict, as it is annotated, got a list"),
        ({"maybe": nn.LayerNorm(3)}, "maybe.weight has shape (3,)"),
        ({"table": tt.ones((3,))}, "table has shape (3,), the annotation of table says (3, Any)"),
        ({"table": np.ones((3, 2))}, "table must be a tensor, as it is annotated, got a ndarray"),
    ]:
        with pytest.raises(tt.TapeTensorError, match=re.escape(f"Model: {message}")):
            Model(**good | wrong)
        model = Model(**good)
        ((name, value),) = wrong.items()
        with pytest.raises(tt.TapeTensorError, match=re.escape(message.partition(" ")[0])):
            setattr(model, name, value)
        assert vars(model) == good


def test_defaults_are_copied_for_every_module() -> None:
    first, second = Settings(), tt.build(Settings, rng=np.random.default_rng(0))
    first.names.append("b")

    assert second.names == ["a"]
    assert first.norm is not second.norm
    ids = [tensor.id for one in (first, second) for tensor in one.parameters().values()]
    assert len(set(ids)) == 6
    assert second.act is None
    assert second.eps == 1e-5


def test_undeclared_tensors_and_modules_are_refused() -> None:
    model: Any = Mlp(hidden=linear(7, 5), out=linear(5, 2))

    for value, where in [
        (tt.ones((2,)), "extra"),
        (nn.ReLU(), "extra"),
        ([linear(2, 2)], "extra.0"),
        ({"a": (1, tt.ones((2,)))}, "extra.a.1"),
    ]:
        message = rf"Mlp.{where}: annotate extra in the class body \(extra: \w+\[...\]\)"
        with pytest.raises(BuildError, match=message):
            model.extra = value
        assert not hasattr(model, "extra")

    model.extra = [1, "two"]

    assert model.extra == [1, "two"]


def test_a_field_holds_leafs_only() -> None:
    with pytest.raises(BuildError, match=r"Settings.shift: a field holds a leaf, .*detach"):
        Settings(shift=tt.ones((2,)).trace())  # type: ignore[arg-type]  # on purpose


class Blocks(nn.Module):
    layer: nn.Linear[L[2], L[2]]
    blocks: list[Any]

    def forward(self, x: Any) -> Any:
        for one in self.blocks:
            x = one(x)
        return self.layer.forward(x)


def test_what_is_put_into_a_list_later_is_a_leaf_as_well() -> None:
    x = tt.ones((1, 2))
    model = Blocks(layer=nn.Linear(2, 2, rng=np.random.default_rng(0)), blocks=[])
    model.blocks.append(model.forward(x.trace()))

    with pytest.raises(BuildError, match=r"Blocks.blocks.0: a field holds a leaf.*detach\(\).num"):
        model.parameters()


def test_compiled_layers_are_layers_of_a_module(rng: np.random.Generator) -> None:
    layer, block, first = [nn.Linear(2, 2, rng=rng) for _ in range(3)]
    model = Blocks(layer=tt.compile(layer), blocks=[])
    model.blocks.append(nn.Sequential(tt.compile(first), block))

    found = model.parameters()

    assert [*found.values()] == [
        one for each in (layer, first, block) for one in each.parameters().values()
    ]
    grads = model.forward(tt.ones((1, 2)).trace()).sum().backward(wrt=model)
    assert all(grads.get(one) is not None for one in found.values())


def test_what_replaces_a_field_must_fit_it() -> None:
    model = Mlp(hidden=linear(7, 5), out=linear(5, 2))
    before = model.out

    with pytest.raises(ShapeError, match=r"Mlp: out.weight has shape \(2, 3\)"):
        model.out = linear(3, 2)
    message = r"Linear.bias: the tensor has shape \(2,\), the one to replace it \(3,\)"
    with pytest.raises(ShapeError, match=message):
        model.out.bias = tt.ones((3,))  # type: ignore[arg-type]  # on purpose
    with pytest.raises(
        DTypeError, match=r"Linear.bias: the tensor has dtype float32, the one .*64"
    ):
        model.out.bias = tt.ones((2,), np.float64)  # type: ignore[arg-type]  # on purpose
    message = "Linear: bias must be a tensor, as it is annotated, got a ndarray; wrap numpy arrays"
    with pytest.raises(BuildError, match=message):
        model.out.bias = np.ones(2, np.float32)  # type: ignore[assignment]  # on purpose
    with pytest.raises(BuildError, match="Linear: bias must be a tensor, as it is annotated, got "):
        model.out.bias = None  # type: ignore[assignment]  # on purpose
    for wrong in (None, tt.ones((2, 5)), [before]):
        with pytest.raises(BuildError, match="Mlp: out must be a Linear, as it is annotated, got "):
            model.out = wrong  # type: ignore[assignment]  # on purpose
    assert model.out is before
    assert list(model.parameters()) == ["hidden.weight", "hidden.bias", "out.weight", "out.bias"]

    model.out = linear(5, 2)

    assert model.out is not before


def test_calling_a_module_without_forward_is_explained() -> None:
    with pytest.raises(BuildError, match="Settings: define forward"):
        Settings()()  # type: ignore[operator]  # what mypy finds as well


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda model: pickle.loads(pickle.dumps(model))])
def test_a_copy_has_equal_values_new_ids_tied_weights_and_its_own_generator(copied: Any) -> None:
    layer, drop = linear(3, 3), nn.Dropout(rng=np.random.default_rng(0))
    model = nn.Sequential(layer, drop, layer)

    twin = copied(model)

    assert list(twin.parameters()) == list(model.parameters())
    for one, other in zip(model.parameters().values(), twin.parameters().values(), strict=True):
        assert np.array_equal(one.numpy(), other.numpy())
        assert one.id != other.id
    assert twin.layers[0] is twin.layers[2]
    assert twin.layers[1].rng is not drop.rng
    x = tt.ones((3, 3))
    assert np.array_equal(
        drop.forward(x.trace()).detach().numpy(), twin.layers[1].forward(x.trace()).detach().numpy()
    )
    twin.layers[0].bias = tt.full((3,), 5.0)
    assert not np.array_equal(layer.bias.numpy(), twin.layers[0].bias.numpy())


def test_what_an_annotation_leaves_open_fits_everything() -> None:
    names: dict[str, Any] = {"__name__": "somewhere"}
    source = """
from __future__ import annotations
from typing import Any, NewType
from tapetensor import Tensor, nn
Batch = NewType("Batch", int)
class Open(nn.Module):
    bare: Tensor
    nominal: Tensor[tuple[Batch, Any]]
    any_rank: Tensor[tuple[int, ...]]
    layer: nn.Linear
    sequence: nn.Sequential
    nowhere: OnlyForTypeCheckers
    anything: Any
"""
    exec(source, names)
    values = {
        "bare": tt.ones((2, 3), np.float32),
        "nominal": tt.ones((2, 3)),
        "any_rank": tt.ones((2, 3, 4)),
        "layer": linear(9, 8),
        "sequence": nn.Sequential(linear(2, 2), nn.ReLU()),
        "nowhere": 5,
        "anything": None,
    }

    model = names["Open"](**values)

    assert vars(model) == values
    with pytest.raises(ShapeError, match=re.escape("Open: nominal has shape (2,)")):
        names["Open"](**values | {"nominal": tt.ones((2,))})


def test_a_type_variable_for_the_dtype_has_one_meaning() -> None:
    class Pair(nn.Module, Generic[W]):
        first: Tensor1D[L[2], NoneTape, W]
        second: Tensor1D[L[2], NoneTape, W]

    Pair(first=tt.ones((2,), np.float64), second=tt.ones((2,), np.float64))
    mixed: Any = {"first": tt.ones((2,), np.float64), "second": tt.ones((2,))}
    message = "Pair: second has dtype float32, the annotation of second says W = float64"
    with pytest.raises(DTypeError, match=message):
        Pair(**mixed)


class Normed(nn.Module):
    hidden: nn.Linear[L[7], L[5]]
    norm: nn.BatchNorm1d[L[5]]
    out: nn.Linear[L[5], L[2]]

    def forward(self, x: Tensor2D[B, L[7], T]) -> Tensor2D[B, L[2], T]:
        h: Tensor2D[B, L[5], T] = self.norm.forward(self.hidden.forward(x))
        return self.out.forward(h.relu())


class Everything(nn.Module):
    scale: Tensor1D[L[3]] = nn.parameter(nn.init.ones)
    blocks: list[nn.LayerNorm[L[3]]] = nn.repeat(2)
    pair: tuple[nn.ReLU, Normed]
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
        pair=(nn.ReLU(), tt.build(Normed, rng=rng)),
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
