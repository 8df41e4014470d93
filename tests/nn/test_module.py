"""Modules as classes: their fields, what fits an annotation, and copies."""

from __future__ import annotations

import copy
import pickle
import re
from typing import Any, Generic
from typing import Literal as L

import numpy as np
import pytest

import tapetensor as tt
from tapetensor import NoneTape, Tensor1D, Tensor2D, nn
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
def test_a_copy_has_equal_values_and_new_ids(copied: Any, rng: np.random.Generator) -> None:
    model = tt.build(Mlp, rng=rng)

    twin: Mlp = copied(model)

    assert list(twin.parameters()) == list(model.parameters())
    for one, other in zip(model.parameters().values(), twin.parameters().values(), strict=True):
        assert np.array_equal(one.numpy(), other.numpy())
        assert one.id != other.id
    twin.out.bias = tt.full((2,), 5.0)
    assert not np.array_equal(model.out.bias.numpy(), twin.out.bias.numpy())


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda model: pickle.loads(pickle.dumps(model))])
def test_a_copy_keeps_weights_tied_and_its_own_generator(copied: Any) -> None:
    layer = linear(3, 3)
    drop = nn.Dropout(rng=np.random.default_rng(0))
    twin = copied(nn.Sequential(layer, drop, layer))

    assert twin.layers[0] is twin.layers[2]
    assert twin.layers[0] is not layer
    assert twin.layers[1].rng is not drop.rng
    x = tt.ones((3, 3))
    assert np.array_equal(
        drop.forward(x.trace()).detach().numpy(), twin.layers[1].forward(x.trace()).detach().numpy()
    )


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
