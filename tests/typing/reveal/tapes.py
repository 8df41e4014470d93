"""Contexts, the tape that is driven by hand, and the options of the backward pass."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal as L

import numpy as np

import tapetensor as tt
from tapetensor import GradientContext, Gradients, OwnedTape, Tensor2D
from tapetensor.arrays.array import Array
from tapetensor.optim import Sgd
from tests.typing.check import assert_type, check
from tests.typing.operands import m, md, s

# The gradients of a loss of any shape and either dtype.
assert_type(tt.compute_gradients(s.trace()), Gradients)
assert_type(tt.compute_gradients(m.trace() * 2.0), Gradients)
assert_type(tt.compute_gradients(md.trace(), wrt=[md]), Gradients)
check(assert_type(tt.compute_gradients(m.trace(), wrt=m)[m], Tensor2D[L[2], L[3]]), (2, 3))

# Strictness on request.
assert_type(m.trace().sum().backward(unused="error"), Gradients)
assert_type(m.trace().backward(m, unused="ignore", check_finite=True), Gradients)

# A context changes no type.
with GradientContext() as context:
    assert_type(context, GradientContext)
    traced = m.trace()
    check(assert_type(traced.detach(), Tensor2D[L[2], L[3]]), (2, 3))
assert_type(context.id, int)
assert_type(context.is_open, bool)
with GradientContext():
    tt.clear_tape()
clear_context_zero: Callable[[], None] = tt.clear_default_context_tape


class OneParameter:
    def parameters(self) -> dict[str, Tensor2D[L[2], L[3]]]:
        return {"m": tt.ones((2, 3))}


with GradientContext():
    Sgd(OneParameter(), lr=0.1).zero_grad()

# Slots are numbers, gradients one entry per slot.
tape = tt.GradientTape()
x, w = tape.alloc(np.ones((2, 2))), tape.alloc(np.ones((2, 2)))
assert_type(x, int)
assert_type(tape.record_add(x, w), int)
assert_type(tape.record_mul(x, w), int)
assert_type(tape.record_matmul(x, w), int)
assert_type(tape.record_silu(x), int)
assert_type(tape.record_ssm_scan(x, w, w), int)
scale = tape.alloc(np.ones(2))
assert_type(tape.record_layer_norm(x, scale, scale), int)
last = tape.record(lambda a: (a, (lambda g: g,)), [x])
assert_type(last, int)
assert_type(tape.backward(np.ones((2, 2)), output=last), list[Array | None])
gradients: list[Array | None] = []
assert_type(
    tape.backward(np.ones((2, 2)), gradients, unused="ignore", output=last), list[Array | None]
)

# Sums of gradients by name.
sums = tt.GradientAccumulator()
sums.accumulate("m", m)
sums.accumulate("m", m.numpy())
found: Array | None = sums.get("m")
assert_type(sums.apply_clip(1.0), float)
names: tuple[str, ...] = sums.names


# Which of the two an input is, where both are taken.
def of_either(x: Tensor2D[L[2], L[3]] | Tensor2D[L[2], L[3], OwnedTape]) -> bool:
    if tt.owns_tape(x):
        assert_type(x, Tensor2D[L[2], L[3], OwnedTape])
        return True
    assert_type(x, Tensor2D[L[2], L[3]])
    return False


assert of_either(m.trace())
assert not of_either(m)
