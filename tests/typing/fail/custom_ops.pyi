# Mistakes in ops of the user's own, and around functions that take functions of tensors.

from typing import Literal as L

import tapetensor as tt
from tapetensor import OwnedTape, Tensor2D
from tapetensor.typing import Array, Pullbacks
from tests.typing.operands import m, md, v

def unary(x: Array) -> tuple[Array, Pullbacks]: ...
def only_output(x: Array) -> Array: ...
def wants_plain(x: Tensor2D[L[2], L[3]]) -> None: ...
def wants_traced(x: Tensor2D[L[2], L[3], OwnedTape]) -> None: ...
def wants_square(x: Tensor2D[L[3], L[3]]) -> None: ...

tt.custom_op(unary, m)  # type: ignore[call-overload]  # the shape of the output is not said
tt.custom_op(unary, shape=m.shape)  # type: ignore[call-overload]  # nothing to compute from
tt.custom_op(unary, 3.0, shape=m.shape)  # type: ignore[call-overload]  # a number is no operand
tt.custom_op(only_output, m, shape=m.shape)  # type: ignore[arg-type]  # no pullbacks
tt.custom_op(unary, m, md, shape=m.shape)  # type: ignore[arg-type]  # two dtypes
tt.custom_op(unary, m, shape=3)  # type: ignore[call-overload]  # a shape is a tuple
wants_square(tt.custom_op(unary, m, shape=m.shape))  # type: ignore[arg-type]  # the shape was said
wants_plain(tt.custom_op(unary, m.trace(), shape=m.shape))  # type: ignore[arg-type]  # the tape goes on
wants_plain(tt.custom_op(unary, m, v.trace(), shape=m.shape))  # type: ignore[arg-type]  # of either
wants_traced(tt.custom_op(unary, m, v, shape=m.shape))  # type: ignore[arg-type]  # nobody owned one
