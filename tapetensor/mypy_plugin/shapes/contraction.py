"""Matrix products and einsum."""

from __future__ import annotations

from tapetensor.mypy_plugin.shapes.calls import Answer, Call, of_all_shapes, opening
from tapetensor.mypy_plugin.shapes.reading import known, merged, read_literal, read_tensor
from tapetensor.rules import products
from tapetensor.rules.dims import Dim


def _is_open(call: Call) -> bool:
    # Plain typing knows the columns of what a matrix gives, and nothing else of an open shape.
    rhs = read_tensor(call.argument(0))
    by_matrix = rhs is not None and rhs.shape is not None and len(rhs.shape) == 2
    return call.fits_all and not by_matrix


@opening(_is_open)
def matmul(call: Call) -> Answer:
    """Return the result of ``@`` for operands of all ranks."""
    operands = [call.receiver, call.operand(0)]
    lhs, rhs = [one.dims for one in operands]
    tape, dtype = merged(operands)
    return call.tensor(known(products.matmul(call.op, lhs, rhs)), tape, dtype)


def rmatmul(call: Call) -> Answer:
    """Explain a product whose left operand has no axes, which no overload takes."""
    if call.operand(0).shape == ():
        products.matmul(call.op, (), call.receiver.dims)
    return None


def einsum(call: Call) -> Answer:
    """Return the result of `einsum` with literal subscripts."""
    subscripts = known(read_literal(call.argument(0), str))
    given = [read_tensor(one) for index in range(1, call.formals) for one in call.types(index)]
    operands = [known(one) for one in given]
    shapes = [one.dims for one in operands]
    tape, dtype = merged(operands)
    _, output, dims = products.einsum(call.op, subscripts, shapes, products.shared_dim)
    return call.tensor(tuple(dims[letter] for letter in output), tape, dtype)


@of_all_shapes
def inverse(call: Call) -> Answer:
    """Return the result of `inv` and `cholesky`, whose matrices are square."""
    shape, size = call.receiver.dims, side_of(call)
    return call.like(call.receiver, (*shape[:-2], size, size))


@of_all_shapes
def det(call: Call) -> Answer:
    """Return the result of `det`: a number for each matrix."""
    side_of(call)
    return call.like(call.receiver, call.receiver.dims[:-2])


@of_all_shapes
def solve(call: Call) -> Answer:
    """Refuse matrices that are not square, and right-hand sides that do not fit them."""
    products.solve(call.op, call.receiver.dims, call.operand(0).dims)
    return None


def side_of(call: Call) -> Dim:
    """Return the size of square matrices."""
    return products.side_of_squares(call.op, call.receiver.dims)
