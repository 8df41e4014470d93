"""The residual network and the UNet compute what their papers say, and learn."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple
from typing import Literal as L

import numpy as np
import pytest
import resnet
import unet

import tapetensor as tt
from tapetensor import Tensor4D, losses, nn, optim
from tests.models import images_reference as reference
from tests.models.reference import Array


class Case(NamedTuple):
    """A model, an input, and the same in plain numpy."""

    model: Any
    x: Array
    shape: tuple[int, ...]
    reference: Callable[..., Array]

    def output(self, *, traced: bool) -> Any:
        """Run the model."""
        x = tt.from_numpy(self.x)
        return self.model.forward(x.trace() if traced else x)


def values(module: nn.Module) -> dict[str, Array]:
    """Return the parameters in float64."""
    return {name: one.numpy().astype(np.float64) for name, one in module.parameters().items()}


@pytest.fixture(params=["resnet", "unet"])
def case(request: pytest.FixtureRequest, rng: np.random.Generator) -> Case:
    if request.param == "resnet":
        x = rng.standard_normal((3, 3, 16, 16)).astype(np.float32)
        return Case(tt.build(resnet.ResNet, rng=rng), x, (3, 10), reference.resnet)
    x = rng.standard_normal((2, 1, 16, 16)).astype(np.float32)
    return Case(tt.build(unet.UNet, rng=rng), x, (2, 1, 16, 16), reference.unet)


@pytest.mark.parametrize("traced", [False, True])
def test_the_output_is_that_of_plain_numpy(case: Case, traced: bool) -> None:
    # Inference first: training would move the running statistics.
    output = case.output(traced=traced)

    wanted = case.reference(values(case.model), case.x, traced=traced)
    assert (output.shape, output.dtype, output.owns_tape) == (case.shape, np.float32, traced)
    np.testing.assert_allclose(output.detach().numpy(), wanted, rtol=1e-3, atol=1e-4)


def test_exactly_the_parameters_get_gradients(case: Case) -> None:
    grads = case.output(traced=True).square().mean().backward(wrt=case.model)

    parameters = case.model.parameters()
    assert set(grads) == {parameter.id for parameter in parameters.values()}
    for parameter in parameters.values():
        assert grads[parameter].shape == parameter.shape


def test_the_gradient_is_the_slope_of_plain_numpy_in_float64(
    case: Case, rng: np.random.Generator
) -> None:
    grads = case.output(traced=True).square().mean().backward(wrt=case.model)
    center = values(case.model)
    direction = {name: rng.standard_normal(one.shape) for name, one in center.items()}

    def loss(step: float) -> float:
        moved = {name: one + step * direction[name] for name, one in center.items()}
        return float(np.mean(case.reference(moved, case.x, traced=True) ** 2))

    # A small step: there are thousands of kinks around.
    slope = (loss(1e-7) - loss(-1e-7)) / 2e-7
    found = math.fsum(
        float(np.sum(grads[parameter].numpy() * direction[name]))
        for name, parameter in case.model.parameters().items()
    )
    np.testing.assert_allclose(found, slope, rtol=2e-3)


def test_the_loss_falls_over_10_steps(case: Case, rng: np.random.Generator) -> None:
    optimizer = optim.AdamW(case.model, lr=1e-2)
    target: Any = tt.from_numpy(rng.standard_normal(case.shape), case.shape, np.float32)
    curve = []
    for _ in range(10):
        loss = losses.mse(case.output(traced=True), target)
        curve.append(loss.item())
        optimizer.step(loss.backward(wrt=case.model))

    assert curve[-1] < 0.8 * curve[0]


def test_a_later_stage_sees_half_of_the_image(rng: np.random.Generator) -> None:
    model = tt.build(resnet.ResNet, rng=rng)
    x: Tensor4D[L[2], L[8], L[16], L[16]] = tt.normal((2, 8, 16, 16), rng=rng)

    assert model.stage_2[0].forward(x).shape == (2, 16, 8, 8)


@pytest.mark.parametrize("model", [resnet, unet], ids=lambda model: model.__name__)
def test_the_example_runs_and_reports_a_loss_that_falls(
    model: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    model.main()

    words = capsys.readouterr().out.splitlines()[0].replace(",", "").split()
    first, last = (float(word) for word in words if word.replace(".", "").isdigit() and "." in word)
    assert last < 0.4 * first
