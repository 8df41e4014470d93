"""Derivatives of derivatives of every op, loss and layer."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tapetensor as tt
from tapetensor import losses
from tapetensor.testing import check_grad
from tests.nn.gradients import check_layer
from tests.nn.layer_rows import ROWS
from tests.ops.calling import of_floats, on_every, result_of, tensors_of, traced_at
from tests.ops.rows import Case
from tests.ops.samples import CASES

_CASES = [case for case in CASES if case.op.is_differentiable]

FIRST_CASES = [case for case in _CASES if case.sample is case.op.samples[0]]


def gradient_sum(
    case: Case, rng: np.random.Generator, make: Callable[[Any], Any] = tt.from_numpy
) -> tuple[Any, list[Any]]:
    """Return a function with a gradient of `case` inside, and the inputs to check it at.

    The function is ``<u, d/dx <c, op(x)**2>>``, over all float operands, for random ``c`` and
    ``u``: the square makes ops that are linear differentiable twice. Of plain inputs it is plain.
    """
    operands = tensors_of(case.sample, make=make)
    positions = case.sample.float_positions
    op = of_floats(case, operands)
    weight = make(np.asarray(rng.standard_normal(result_of(case, operands).shape)))
    directions = [
        make(np.asarray(rng.standard_normal(operands[position].shape))) for position in positions
    ]

    def scalar(*inputs: Any) -> Any:
        return (op(*inputs).square() * weight).sum()

    def f(*inputs: Any) -> Any:
        recorded = any(x.owns_tape for x in inputs)
        traced = [x.trace() if recorded and not x.owns_tape else x for x in inputs]
        gradients: Any = tt.grad(scalar, *traced)
        parts = gradients if isinstance(gradients, tuple) else (gradients,)
        total = 0.0
        for part, direction in zip(parts, directions, strict=True):
            total = (part * direction).sum() + total
        return total

    return f, [operands[position] for position in positions]


@on_every(_CASES)
def test_the_second_derivative_is_that_of_central_differences(
    case: Case, rng: np.random.Generator
) -> None:
    # Not by `check_grad`, which would record the gradients of which it takes the differences, too.
    f, inputs = gradient_sum(case, rng)
    step = 1e-6
    everything = tuple(range(len(inputs)))

    for checked in {(position,) for position in everything} | {everything}:
        gradients = f(*traced_at(inputs, checked)).backward(wrt=[inputs[one] for one in checked])
        directions = {one: np.asarray(rng.standard_normal(inputs[one].shape)) for one in checked}
        ahead, behind = (
            f(*[tt.from_numpy(x.numpy() + h * directions.get(n, 0)) for n, x in enumerate(inputs)])
            for h in (step, -step)
        )
        found = [
            np.sum(gradient.numpy() * directions[one])
            for one in checked
            if (gradient := gradients.get(inputs[one])) is not None
        ]

        differences = (ahead.item() - behind.item()) / (2 * step)
        np.testing.assert_allclose(np.sum(found), differences, rtol=1e-4, atol=1e-6)


@on_every(FIRST_CASES)
def test_the_gradient_is_the_same_whether_it_is_recorded_or_not(
    case: Case, rng: np.random.Generator
) -> None:
    operands = tensors_of(case.sample)
    op = of_floats(case, operands)
    inputs = [operands[position] for position in case.sample.float_positions]

    def f(*inputs: Any) -> Any:
        return op(*inputs).square().sum()

    plain: Any = tt.grad(f, *inputs)
    recorded: Any = tt.grad(f, *[x.trace() for x in inputs])

    plain, recorded = ([one] if len(inputs) == 1 else one for one in (plain, recorded))
    for expected, gradient in zip(plain, recorded, strict=True):
        assert not expected.owns_tape
        assert gradient.owns_tape
        assert gradient.dtype == expected.dtype
        np.testing.assert_allclose(
            gradient.detach().numpy(), expected.detach().numpy(), rtol=1e-12, atol=1e-14
        )


_ROWS = tt.from_numpy(np.linspace(-1.3, 1.7, 12).reshape(4, 3) ** 3)
_TARGETS = np.linspace(1.1, -0.7, 12).reshape(4, 3)
_PROBABILITIES = np.linspace(0.1, 0.9, 12).reshape(4, 3)
_SIGNS = np.array([1, -1, 1, -1])
_EACH_SIGN = np.where(np.arange(12).reshape(4, 3) % 2 == 0, 1, -1)
_LABELS = np.array([0, 2, 1, 1])


def gradient_of(f: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return the gradient of ``sum(f(x)**2)`` as a function that can be traced."""
    return lambda x: tt.grad(lambda x: f(x).square().sum(), x)


# Each takes the input, and what makes a tensor of its targets.
LOSSES: dict[str, Callable[[Any, Callable[[Any], Any]], Any]] = {
    "mse": lambda x, t: losses.mse(x, t(_TARGETS)),
    "rmse": lambda x, t: losses.rmse(x, t(_TARGETS)),
    "mae": lambda x, t: losses.mae(x, t(_TARGETS)),
    "huber": lambda x, t: losses.huber(x, t(_TARGETS), delta=0.6),
    "smooth_l1": lambda x, t: losses.smooth_l1(x, t(_TARGETS), beta=0.6),
    "quantile": lambda x, t: losses.quantile(x, t(_TARGETS), 0.9),
    "nll": lambda x, t: losses.nll(x.log_softmax(), t(_LABELS)),
    "cross_entropy": lambda x, t: losses.cross_entropy(x, t(_LABELS)),
    "cross_entropy_with_probabilities": lambda x, t: losses.cross_entropy_with_probabilities(
        x, t(_PROBABILITIES)
    ),
    "kl_div": lambda x, t: losses.kl_div(x, t(_PROBABILITIES)),
    "binary_cross_entropy": lambda x, t: losses.binary_cross_entropy(
        x.sigmoid(), t(_PROBABILITIES)
    ),
    "binary_cross_entropy_with_logits": lambda x, t: losses.binary_cross_entropy_with_logits(
        x, t(_PROBABILITIES)
    ),
    "cosine_embedding": lambda x, t: losses.cosine_embedding(x, t(_TARGETS), t(_SIGNS)),
    "hinge_embedding": lambda x, t: losses.hinge_embedding(x.square(), t(_EACH_SIGN), margin=0.4),
    "soft_margin": lambda x, t: losses.soft_margin(x, t(_EACH_SIGN)),
    "margin_ranking": lambda x, t: losses.margin_ranking(x.exp(), t(_TARGETS), t(_EACH_SIGN), 0.3),
    "multi_margin": lambda x, t: losses.multi_margin(x, t(_LABELS), margin=0.8, power=2),
    "triplet_margin": lambda x, t: losses.triplet_margin(x, t(_TARGETS), t(_PROBABILITIES)),
    "gaussian_nll": lambda x, t: losses.gaussian_nll(x, t(_TARGETS), t(_PROBABILITIES)),
    "poisson_nll": lambda x, t: losses.poisson_nll(x, t(_PROBABILITIES), full=True),
}


def test_every_loss_is_in_the_table() -> None:
    public = {name for name in dir(losses) if inspect.isfunction(getattr(losses, name))}
    public = {name for name in public if not name.startswith("_")}

    assert set(LOSSES) == public


@pytest.mark.parametrize("name", LOSSES)
def test_the_second_derivative_of_a_loss_is_that_of_central_differences(
    name: str, rng: np.random.Generator
) -> None:
    f = gradient_of(lambda x: LOSSES[name](x, tt.from_numpy))
    check_grad(f, _ROWS, rng=rng, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("kind", ROWS, ids=lambda kind: kind.__name__)
def test_the_second_derivatives_of_a_layer_by_input_and_parameters(
    kind: Any, rng: np.random.Generator
) -> None:
    row = ROWS[kind]
    layer = row.make(3, rng)
    x = tt.from_numpy(rng.standard_normal(row.shape(2, 3)))

    check_layer(layer, x, rng, gradient_of(lambda x: row.run(layer, x)), differences_of_plain=True)
