"""Every op of the table is differentiated twice."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import tapetensor as tt
from tests.ops.calling import on_every, result_of, tensors_of, traced_at
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
    weight = make(np.asarray(rng.standard_normal(result_of(case, operands).shape)))
    directions = [
        make(np.asarray(rng.standard_normal(operands[position].shape))) for position in positions
    ]

    def scalar(*inputs: Any) -> Any:
        given = list(operands)
        for position, tensor in zip(positions, inputs, strict=True):
            given[position] = tensor
        return (result_of(case, given).square() * weight).sum()

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
    positions = case.sample.float_positions
    inputs = [operands[position] for position in positions]

    def f(*inputs: Any) -> Any:
        given = list(operands)
        for position, tensor in zip(positions, inputs, strict=True):
            given[position] = tensor
        return result_of(case, given).square().sum()

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
