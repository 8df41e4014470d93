"""Models in use: called with other tensors, and trained in part."""

from __future__ import annotations

from typing import Any
from typing import Literal as L

import numpy as np
import pytest

import tapetensor as tt
from tapetensor import nn, optim

X: Any = tt.normal((5, 3), rng=np.random.default_rng(1))


class Model(nn.Module):
    hidden: Any
    norm: Any
    out: Any

    def forward(self, x: Any) -> Any:
        return self.out.forward(self.norm.forward(self.hidden.forward(x)).tanh())


def model() -> Any:
    rng = np.random.default_rng(0)
    return Model(
        hidden=nn.Linear(3, 4, rng=rng), norm=nn.BatchNorm1d(4), out=nn.Linear(4, 2, rng=rng)
    )


def values_of(one: Any) -> dict[str, Any]:
    return {name: tensor.numpy().copy() for name, tensor in one.parameters().items()}


def test_gradients_flow_to_what_the_tensors_are_computed_from() -> None:
    one = model()
    # A network that gives the weight: its own parameter is what is trained.
    code = tt.normal((1, 12), rng=np.random.default_rng(2), dtype=np.float32)

    def loss(code: Any, x: Any) -> Any:
        weight = code.tanh().reshape((4, 3))
        tensors = {"hidden.weight": weight, "out.bias": one.out.bias * 2.0}
        return nn.functional_call(one, tensors, x).square().sum()

    gradients = loss(code.trace(), X.trace()).backward()

    direction = np.random.default_rng(3).standard_normal((1, 12)).astype(np.float32)
    ahead, behind = [
        loss(tt.from_numpy(code.numpy() + size * direction, (1, 12)).trace(), X.trace()).item()
        for size in (np.float32(1e-2), np.float32(-1e-2))
    ]
    slope = (gradients[code].numpy() * direction).sum()
    np.testing.assert_allclose(slope, (ahead - behind) / 2e-2, rtol=2e-2)
    assert one.out.bias in gradients
    assert one.hidden.weight not in gradients


def test_a_step_of_training_can_be_differentiated() -> None:
    def loss(one: Any, tensors: Any, x: Any) -> Any:
        return nn.functional_call(one, tensors, x).square().mean()

    layer = nn.UnbiasedLinear(3, 1, rng=np.random.default_rng(0))
    rate = tt.full((1, 3), 0.1)

    def after_a_step(rate: Any) -> Any:
        slope = tt.grad(lambda w: loss(layer, {"weight": w}, X.retaped(w.tape_type)), layer.weight)
        return loss(layer, {"weight": layer.weight - rate * slope}, X.retaped(rate.tape_type))

    found = tt.grad(after_a_step, rate).numpy()
    w, x = layer.weight.numpy().astype(np.float64), X.numpy().astype(np.float64)
    slope = 2 * w @ x.T @ x / len(x)
    expected = -slope * (2 * (w - 0.1 * slope) @ x.T @ x / len(x))
    np.testing.assert_allclose(found, expected, rtol=1e-4)


def test_the_model_stays_as_it_is_but_for_its_running_statistics() -> None:
    one, other = model(), model()
    before = values_of(one)
    tensors = {"hidden.weight": tt.ones((4, 3))}

    nn.functional_call(one, tensors, X.trace())
    other.hidden.weight = tt.ones((4, 3))
    other.forward(X.trace())

    after = values_of(one)
    assert all(np.array_equal(before[name], after[name]) for name in before)
    np.testing.assert_array_equal(one.norm.running_mean.numpy(), other.norm.running_mean.numpy())
    assert one.norm.running_mean.numpy().any()


@pytest.mark.parametrize(
    ("tensors", "error", "match"),
    [
        ({"hidden.wieght": tt.ones((4, 3))}, tt.ArgumentValueError, "did you mean 'hidden.weight'"),
        ({"hidden.weight": tt.ones((3, 4))}, tt.ShapeError, "hidden.weight"),
        ({"hidden.weight": tt.ones((4, 3), np.float64)}, tt.DTypeError, "hidden.weight"),
        ({"hidden.weight": tt.ones((4, 3)).trace()}, tt.UntracedTensorError, "no input has"),
        ({"hidden.weight": np.ones((4, 3))}, tt.ArgumentTypeError, "hidden.weight"),
        ([tt.ones((4, 3))], tt.ArgumentTypeError, "tensors by name"),
    ],
)
def test_what_cannot_take_the_place_is_refused(tensors: Any, error: Any, match: str) -> None:
    one = model()
    before = one.norm.running_mean.numpy().copy()

    with pytest.raises(error, match=match):
        nn.functional_call(one, tensors, X)

    np.testing.assert_array_equal(one.norm.running_mean.numpy(), before)


class Mlp(nn.Module):
    hidden: nn.Linear[L[3], L[4]]
    out: nn.Linear[L[4], L[2]]

    def forward(self, x: Any) -> Any:
        return self.out.forward(self.hidden.forward(x).tanh())


@pytest.fixture
def mlp() -> Mlp:
    return tt.build(Mlp, rng=np.random.default_rng(0))


def values(mlp: Mlp) -> dict[str, list[Any]]:
    return {name: one.numpy().tolist() for name, one in mlp.parameters().items()}


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
    mlp: Mlp, options: dict[str, Any], names: list[str]
) -> None:
    selection = nn.Selection(mlp, **options)

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


def test_a_step_changes_what_is_selected_and_nothing_else(mlp: Mlp) -> None:
    trained = nn.Selection(mlp, without=["hidden"])
    optimizer = optim.Adam(trained, lr=0.1)
    before = values(mlp)

    grads = mlp.forward(tt.ones((5, 3)).trace()).square().mean().backward(wrt=trained)
    optimizer.step(grads)

    assert len(grads) == 2
    changed = {name for name, now in values(mlp).items() if now != before[name]}
    assert changed == {"out.weight", "out.bias"}


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
    mlp: Mlp, arguments: Any, options: Any, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        nn.Selection(*[mlp if one is None else one for one in arguments], **options)
