"""Every op of the table is differentiated twice, or refuses to be with its name."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tapetensor as tt
from tapetensor.testing import check_grad
from tests.ops.calling import result_of, tensors_of
from tests.ops.rows import Case
from tests.ops.samples import CASES

_CASES = [case for case in CASES if case.op.is_differentiable]

# Ops whose kernels write to memory that they share, step by step.
_REFUSED = {"ssm_scan"}


def gradient_sum(case: Case, rng: np.random.Generator) -> tuple[Any, list[Any]]:
    """Return a function with a gradient of `case` inside, and the inputs to check it at.

    The function is ``<u, d/dx <c, op(x)**2>>``, over all float operands, for random ``c`` and
    ``u``: the square makes ops that are linear differentiable twice.
    """
    operands = tensors_of(case.sample)
    positions = case.sample.float_positions
    weight = tt.from_numpy(np.asarray(rng.standard_normal(result_of(case, operands).shape)))
    directions = [
        tt.from_numpy(np.asarray(rng.standard_normal(operands[position].shape)))
        for position in positions
    ]

    def scalar(*inputs: Any) -> Any:
        given = list(operands)
        for position, tensor in zip(positions, inputs, strict=True):
            given[position] = tensor
        return (result_of(case, given).square() * weight).sum()

    def f(*inputs: Any) -> Any:
        traced = [x if x.owns_tape else x.trace() for x in inputs]
        gradients: Any = tt.grad(scalar, *traced)
        parts = gradients if isinstance(gradients, tuple) else (gradients,)
        total = 0.0
        for part, direction in zip(parts, directions, strict=True):
            total = (part * direction).sum() + total
        return total

    return f, [operands[position] for position in positions]


@pytest.mark.parametrize("case", [c for c in _CASES if c.op.name not in _REFUSED], ids=lambda c: c.name)
def test_the_second_derivative_is_that_of_central_differences(
    case: Case, rng: np.random.Generator
) -> None:
    f, inputs = gradient_sum(case, rng)

    check_grad(f, *inputs, rng=rng, rtol=1e-4, atol=1e-6)
