"""The published architectures in `examples/models` compute what their papers say, and learn."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple
from typing import Literal as L

import bert
import llama
import mixture_of_experts as moe
import nano_gpt
import numpy as np
import pytest
import resnet
import unet

import tapetensor as tt
from tapetensor import Tensor, losses, nn, optim
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
        return float(np.mean(expected(case, moved, traced=True) ** 2))

    # Small steps: in networks on images there are thousands of kinks around.
    size = 1e-7 if case.model.__class__ in (resnet.ResNet, unet.UNet) else 1e-5
    slope = (loss(size) - loss(-size)) / (2 * size)
    found = math.fsum(
        float(np.sum(grads[parameter].numpy() * direction[name]))
        for name, parameter in case.model.parameters().items()
    )
    np.testing.assert_allclose(found, slope, rtol=2e-3)


def test_the_loss_falls_over_20_steps(case: Case, rng: np.random.Generator) -> None:
    optimizer = optim.AdamW(case.model, lr=1e-2)
    labels: Any = tt.from_numpy(rng.integers(case.shape[-1], size=case.shape[:-1]))
    target: Any = tt.from_numpy(rng.standard_normal(case.shape), case.shape, np.float32)
    is_classifier = len(case.shape) < 4 and case.shape[-1] > 1
    curve = []
    for _ in range(20):
        output = case.output(traced=True)
        loss = losses.cross_entropy(output, labels) if is_classifier else losses.mse(output, target)
        curve.append(loss.item())
        optimizer.step(loss.backward(wrt=case.model))

    assert curve[-1] < 0.8 * curve[0]


@pytest.mark.parametrize("make", [nano_gpt_case, llama_case])
def test_a_later_token_changes_no_earlier_logits(
    make: Callable[[np.random.Generator], Case], rng: np.random.Generator
) -> None:
    case = make(rng)
    changed = case.inputs[0].copy()
    changed[:, 4] = (changed[:, 4] + 1) % 50

    before = case.output(traced=False).numpy()
    after = case._replace(inputs=(changed,)).output(traced=False).numpy()

    np.testing.assert_allclose(after[:, :4], before[:, :4], atol=1e-6)
    assert (np.abs(after[:, 4:] - before[:, 4:]).max(axis=(0, 2)) > 1e-4).all()


def test_padding_changes_nothing_in_bert(rng: np.random.Generator) -> None:
    case = bert_case(rng)
    ids, segments, visible = case.inputs
    changed = np.where(visible, ids, (ids + 1) % 40)

    before = case.output(traced=False).numpy()
    after = case._replace(inputs=(changed, segments, visible)).output(traced=False).numpy()

    np.testing.assert_allclose(after, before, atol=1e-6)


def test_grouped_queries_are_multi_head_attention_with_repeated_keys(
    rng: np.random.Generator,
) -> None:
    grouped = tt.build(llama.GroupedQueryAttention[L[16]], rng=rng)
    full = tt.build(llama.GroupedQueryAttention[L[32]], rng=rng)
    x: Tensor[tuple[L[2], L[6], L[32]]] = tt.normal((2, 6, 32), rng=rng)

    full.query, full.output = grouped.query, grouped.output
    for many, few in ((full.key, grouped.key), (full.value, grouped.value)):
        heads = few.weight.numpy().reshape(32, 2, 8)
        many.weight = tt.from_numpy(heads.repeat(2, axis=1).reshape(32, 32), (32, 32))

    wanted = full.forward(x).numpy()
    np.testing.assert_allclose(grouped.forward(x).numpy(), wanted, rtol=1e-5, atol=1e-6)


def test_an_expert_that_nobody_chose_gets_a_gradient_of_zero(rng: np.random.Generator) -> None:
    layer = tt.build(moe.MixtureOfExperts, rng=rng)
    layer.gate.bias = tt.from_numpy([9.0, 9.0, 9.0, 0.0, 0.0, 0.0], (6,))
    x: Tensor[tuple[L[20], L[16]]] = tt.normal((20, 16), rng=rng)

    chosen = moe.best(layer.gate.forward(x)).numpy()
    grads = layer.forward(x.trace()).square().sum().backward(wrt=layer)

    assert set(np.unique(chosen)) == {0, 1, 2}
    for index, expert in enumerate(layer.experts):
        for parameter in expert.parameters().values():
            assert grads[parameter].numpy().any() == (index in chosen)


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
