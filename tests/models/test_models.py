"""The published architectures in `examples/models` compute what their papers say, and learn."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import bert
import llama
import mixture_of_experts as moe
import nano_gpt
import numpy as np
import pytest
import resnet
import unet

import tapetensor as tt
from tapetensor import nn
from tests.models import images_reference, reference
from tests.models.reference import Array, Parameters


class Case(NamedTuple):
    """A model, its inputs (the first one is traced) and the same in plain numpy."""

    model: Any
    inputs: tuple[Array, ...]
    shape: tuple[int, ...]
    reference: Callable[..., Array]

    def output(self, *, traced: bool) -> Any:
        """Run the model."""
        first: Any
        first, *rest = [tt.from_numpy(one) for one in self.inputs]
        return self.model.forward(first.trace() if traced else first, *rest)


def values(module: nn.Module) -> dict[str, Array]:
    """Return the parameters in float64."""
    return {name: one.numpy().astype(np.float64) for name, one in module.parameters().items()}


def nano_gpt_case(rng: np.random.Generator) -> Case:
    model = nano_gpt.build_nano_gpt(rng)
    return Case(model, (rng.integers(65, size=(3, 7)),), (3, 7, 65), reference.nano_gpt)


def llama_case(rng: np.random.Generator) -> Case:
    model = tt.build(llama.Llama, rng=rng)
    return Case(model, (rng.integers(50, size=(3, 7)),), (3, 7, 50), reference.llama)


def bert_case(rng: np.random.Generator) -> Case:
    model = tt.build(bert.Classifier, rng=rng)
    for module in model.modules().values():
        if isinstance(module, nn.Dropout):
            module.p = 0.0
    ids, segments = rng.integers(40, size=(3, 7)), rng.integers(2, size=(3, 7))
    visible = np.arange(7) < np.array([[7], [4], [5]])
    return Case(model, (ids, segments, visible), (3, 3), reference.bert)


def mixture_case(rng: np.random.Generator) -> Case:
    model = tt.build(moe.Model, rng=rng)
    x = rng.standard_normal((12, 16)).astype(np.float32)
    return Case(model, (x,), (12, 1), reference.mixture_model)


def resnet_case(rng: np.random.Generator) -> Case:
    x = rng.standard_normal((3, 3, 16, 16)).astype(np.float32)
    return Case(tt.build(resnet.ResNet, rng=rng), (x,), (3, 10), images_reference.resnet)


def unet_case(rng: np.random.Generator) -> Case:
    x = rng.standard_normal((2, 1, 16, 16)).astype(np.float32)
    return Case(tt.build(unet.UNet, rng=rng), (x,), (2, 1, 16, 16), images_reference.unet)


CASES = [nano_gpt_case, llama_case, bert_case, mixture_case, resnet_case, unet_case]


@pytest.fixture(params=CASES)
def case(request: pytest.FixtureRequest, rng: np.random.Generator) -> Case:
    made: Case = request.param(rng)
    return made


def expected(case: Case, parameters: Parameters, *, traced: bool) -> Array:
    """Return what plain numpy makes of the inputs."""
    is_on_images = case.reference.__module__ == images_reference.__name__
    how: Any = {"traced": traced} if is_on_images else {}
    return case.reference(parameters, *case.inputs, **how)


@pytest.mark.parametrize("traced", [False, True])
def test_the_output_is_that_of_plain_numpy(case: Case, traced: bool) -> None:
    output = case.output(traced=traced)

    wanted = expected(case, values(case.model), traced=traced)
    assert (output.shape, output.dtype, output.owns_tape) == (case.shape, np.float32, traced)
    np.testing.assert_allclose(output.detach().numpy(), wanted, rtol=1e-3, atol=1e-4)


def test_the_gradient_is_the_slope_of_plain_numpy_in_float64(
    case: Case, rng: np.random.Generator
) -> None:
    grads = case.output(traced=True).square().mean().backward(wrt=case.model)
    assert set(grads) == {one.id for one in case.model.parameters().values()}
    center = values(case.model)
    direction = {name: rng.standard_normal(one.shape) for name, one in center.items()}

    def loss(step: float) -> float:
        moved = {name: one + step * direction[name] for name, one in center.items()}
        return float(np.mean(expected(case, moved, traced=True) ** 2))

    # Small steps: in networks on images there are thousands of kinks around.
    size = 1e-7 if case.model.__class__ in (resnet.ResNet, unet.UNet) else 1e-5
    slope = (loss(size) - loss(-size)) / (2 * size)
    found = math.fsum(
        float(np.sum(grads[parameter].numpy() * direction[name]))
        for name, parameter in case.model.parameters().items()
    )
    np.testing.assert_allclose(found, slope, rtol=2e-3)


@pytest.mark.parametrize(
    "model", [nano_gpt, llama, bert, moe, resnet, unet], ids=lambda model: model.__name__
)
def test_the_example_runs_and_reports_a_loss_that_falls(
    model: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    model.main()

    words = capsys.readouterr().out.splitlines()[0].replace(",", "").split()
    first, last = (float(word) for word in words if word.replace(".", "").isdigit() and "." in word)
    assert last < 0.4 * first
