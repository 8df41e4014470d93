"""Training a part of a model: what is frozen gets no gradient, costs none, and stays."""

from __future__ import annotations

from typing import Any
from typing import Literal as L

import numpy as np
import pytest

import tapetensor as tt
from tapetensor import nn, optim
from tapetensor.typing import Array, Pullbacks


class Mlp(nn.Module):
    hidden: nn.Linear[L[3], L[4]]
    out: nn.Linear[L[4], L[2]]

    def forward(self, x: Any) -> Any:
        return self.out.forward(self.hidden.forward(x).tanh())


@pytest.fixture
def model() -> Mlp:
    return tt.build(Mlp, rng=np.random.default_rng(0))


def values(model: Mlp) -> dict[str, list[Any]]:
    return {name: one.numpy().tolist() for name, one in model.parameters().items()}


@pytest.mark.parametrize(
    ("options", "names"),
    [
        ({}, ["hidden.weight", "hidden.bias", "out.weight", "out.bias"]),
        ({"only": ["out"]}, ["out.weight", "out.bias"]),
        ({"without": ["hidden"]}, ["out.weight", "out.bias"]),
        ({"only": ("hidden", "out.bias")}, ["hidden.weight", "hidden.bias", "out.bias"]),
        ({"only": ["out"], "without": ["out.bias"]}, ["out.weight"]),
        ({"without": iter(["hidden", "out.bias"])}, ["out.weight"]),
    ],
)
def test_names_stand_for_parameters_and_for_fields(
    model: Mlp, options: dict[str, Any], names: list[str]
) -> None:
    selection = nn.Selection(model, **options)

    assert list(selection.parameters()) == names
    assert repr(selection) == f"Selection({', '.join(names)})"


class Tied(nn.Module):
    embed: nn.Linear[L[3], L[3]]
    out: nn.Linear[L[3], L[3]]


def test_a_tensor_that_is_left_out_by_one_of_its_names_is_frozen_under_all() -> None:
    tied = tt.build(Tied, rng=np.random.default_rng(0))
    tied.out.weight = tied.embed.weight

    assert list(nn.Selection(tied, without=["embed"]).parameters()) == ["out.bias"]
    assert list(nn.Selection(tied, without=["out.weight"]).parameters()) == [
        "embed.bias",
        "out.bias",
    ]
    with pytest.raises(tt.ArgumentValueError, match="no parameter is left"):
        nn.Selection(tied, only=["out.weight"], without=["embed.weight"])


def test_a_step_changes_what_is_selected_and_nothing_else(model: Mlp) -> None:
    trained = nn.Selection(model, without=["hidden"])
    optimizer = optim.Adam(trained, lr=0.1)
    before = values(model)

    grads = model.forward(tt.ones((5, 3)).trace()).square().mean().backward(wrt=trained)
    optimizer.step(grads)

    assert len(grads) == 2
    changed = {name for name, now in values(model).items() if now != before[name]}
    assert changed == {"out.weight", "out.bias"}


@pytest.mark.parametrize("wrt", ["out", "hidden"])
def test_a_frozen_part_runs_no_pullback_that_leads_only_to_it(model: Mlp, wrt: str) -> None:
    runs: list[str] = []

    def marked(name: str, x: Any) -> Any:
        def pullback(g: Array) -> Array:
            runs.append(name)
            return g

        def kernel(x: Array) -> tuple[Array, Pullbacks]:
            return x, (pullback,)

        return tt.custom_op(kernel, x, shape=x.shape)

    x = marked("before hidden", tt.ones((5, 3)).trace())
    h = marked("before out", model.hidden.forward(x))

    model.out.forward(h).sum().backward(wrt=nn.Selection(model, only=[wrt]))

    assert runs == ([] if wrt == "out" else ["before out"])


@pytest.mark.parametrize(
    ("arguments", "options", "error", "message"),
    [
        ((3,), {}, tt.ArgumentTypeError, r"a model with parameters\(\), got int"),
        ((Mlp,), {}, tt.ArgumentTypeError, r"a model with parameters\(\)"),
        ((None,), {"only": "out"}, tt.ArgumentTypeError, "only must be several names, got 'out'"),
        ((None,), {"without": 3}, tt.ArgumentTypeError, "without must be several names"),
        ((None,), {"only": [3]}, tt.ArgumentTypeError, "only must be names"),
        ((None,), {"only": ["ou"]}, tt.ArgumentValueError, "no parameter 'ou'; .* out.weight"),
        ((None,), {"without": ["out.gain"]}, tt.ArgumentValueError, "no parameter 'out.gain'"),
        ((None,), {"only": []}, tt.ArgumentValueError, "no parameter is left"),
        ((None,), {"without": ["hidden", "out"]}, tt.ArgumentValueError, "no parameter is left"),
    ],
)
def test_what_selects_nothing_is_refused(
    model: Mlp, arguments: Any, options: Any, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        nn.Selection(*[model if one is None else one for one in arguments], **options)
