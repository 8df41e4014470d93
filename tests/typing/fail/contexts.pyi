# Mistakes with contexts, with strictness, and with the tape that is driven by hand.

import numpy as np

import tapetensor as tt
from tests.typing.operands import m, s, si

# The gradients of what was not recorded, or has none.
tt.compute_gradients(m)  # type: ignore[arg-type]  # no tape: nothing was recorded
tt.compute_gradients(s)  # type: ignore[arg-type]  # a scalar without a tape is no better
tt.compute_gradients(si.trace())  # type: ignore[arg-type, type-var]  # integers have no gradient
tt.compute_gradients(3.0)  # type: ignore[arg-type]  # a number is no loss
tt.compute_gradients(m.trace(), wrt=3)  # type: ignore[arg-type]  # wrt names tensors or a module

# Strictness has two words.
m.trace().sum().backward(unused="warn")  # type: ignore[call-overload]  # "ignore" or "error"
m.sum().backward(check_finite=True)  # type: ignore[call-arg]  # no tape: nothing was recorded

# A context is entered by `with` and takes nothing.
tt.GradientContext(3)  # type: ignore[call-arg]  # contexts number themselves
tt.clear_tape(m)  # type: ignore[call-arg]  # it clears that of the active context

# Slots are numbers, values arrays.
tape = tt.GradientTape()
tape.alloc(m)  # type: ignore[arg-type]  # a tensor is no array: m.numpy()
tape.record_add(0)  # type: ignore[call-arg]  # two operands
tape.record_silu(np.ones(2))  # type: ignore[arg-type]  # a slot, not a value
tape.record_layer_norm(0, 1)  # type: ignore[call-arg]  # scale and bias
m.sum().to_html()  # type: ignore[misc]  # no tape: there is nothing to draw
m.sum().tree()  # type: ignore[misc]  # no tape
m.trace().tree(names=[m])  # type: ignore[arg-type]  # names come with tensors
tape.backward(1.0)  # type: ignore[call-overload]  # the cotangent is an array
tape.backward(np.ones(2), unused="warn")  # type: ignore[call-overload]  # "ignore" or "error"

# Sums are by name.
tt.GradientAccumulator().accumulate(m, m)  # type: ignore[arg-type]  # by name, not by tensor
tt.GradientAccumulator().accumulate("m", 3.0)  # type: ignore[arg-type]  # a gradient is no number
tt.GradientAccumulator().get("m") + 1.0  # type: ignore[operator]  # there may be none
