# Mistakes in ops of the user's own, and around functions that take functions of tensors.

from typing import Literal as L

import tapetensor as tt
from tapetensor import OwnedTape, Tensor2D
from tapetensor.typing import Array, Pullbacks, T
from tests.typing.operands import m, md, v, w

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

# Gradients of functions.
tt.grad(lambda x: x.exp(), m)  # type: ignore[arg-type,return-value]  # no scalar
tt.grad(lambda x: x.detach().sum(), m)  # type: ignore[arg-type,return-value]  # it owns no tape
tt.grad(lambda x: 3.0, m)  # type: ignore[arg-type,return-value]  # a number is no tensor
tt.grad(lambda x, y: (x @ y).sum(), m, v.trace())  # type: ignore[misc]  # all own a tape, or none
tt.grad(lambda x: (x @ v).sum(), w)  # type: ignore[operator]  # the shapes inside
tt.grad(m.sum())  # type: ignore[call-overload]  # a tensor is no function
wants_traced(tt.grad(lambda x: x.exp().sum(), m))  # type: ignore[arg-type]  # plain of plain
wants_plain(tt.grad(lambda x: x.exp().sum(), m.trace()))  # type: ignore[arg-type]  # recorded
wants_square(tt.grad(lambda x: x.exp().sum(), m))  # type: ignore[arg-type]  # the shape of the point
tt.hessian_vector_product(lambda x: x.sum(), m, v)  # type: ignore[misc]  # another shape
tt.hessian_vector_product(lambda x: x.sum(), m, m.trace())  # type: ignore[arg-type]  # a constant
tt.hessian_vector_product(lambda x: x.sum(), m, md)  # type: ignore[misc]  # another dtype

# Checkpoints have the type of the call that they stand for.
def twice(x: Tensor2D[L[2], L[3], T]) -> Tensor2D[L[2], L[3], T]: ...
def together(x: Tensor2D[L[2], L[3], T], y: Tensor2D[L[2], L[3], T]) -> Tensor2D[L[2], L[3], T]: ...

tt.checkpoint(twice, w)  # type: ignore[arg-type]  # another shape
tt.checkpoint(twice, m, m)  # type: ignore[arg-type]  # an input too many
tt.checkpoint(twice, 3.0)  # type: ignore[call-overload]  # a number is no tensor
tt.checkpoint(together, m)  # type: ignore[arg-type]  # an input too few
tt.checkpoint(lambda x: 3.0, m)  # type: ignore[type-var]  # a number is no tensor
wants_plain(tt.checkpoint(twice, m.trace()))  # type: ignore[arg-type]  # the tape goes on
wants_square(tt.checkpoint(twice, m))  # type: ignore[arg-type]  # the shape goes on
tt.checkpoint(twice, m, rng=3)  # type: ignore[call-overload]  # a seed is no generator
