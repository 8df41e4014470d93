"""No op holds anything for its pullbacks that another run of it would hold otherwise."""

from __future__ import annotations

from typing import Any

import numpy as np

import tapetensor as tt
from tests.ops.calling import gradients_of, on_every, result_of, tensors_of
from tests.ops.rows import Case
from tests.ops.samples import CASES


@on_every([case for case in CASES if case.op.is_differentiable])
def test_an_op_in_a_checkpoint_has_its_own_gradients(case: Case) -> None:
    operands, positions = tensors_of(case.sample), case.sample.float_positions
    first = positions[0]

    def f(x: Any) -> Any:
        return result_of(case, [*operands[:first], x, *operands[first + 1 :]])

    y = tt.checkpoint(f, operands[first].trace())
    cotangent = tt.ones(y.shape, y.dtype.type)
    found = y.backward(cotangent)

    expected = gradients_of(case, operands, cotangent, [first])
    for position, gradient in zip(positions, expected, strict=True):
        if gradient is not None:
            np.testing.assert_array_equal(found[operands[position]].numpy(), gradient)
