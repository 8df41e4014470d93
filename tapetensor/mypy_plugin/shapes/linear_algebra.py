"""Products of tensors, and decompositions of matrices."""

from __future__ import annotations

from typing import Final

from tapetensor.mypy_plugin.reading import known, merged, read_literal, read_tensor
from tapetensor.mypy_plugin.shapes.calls import Answer, Call, of_all_shapes, opening
from tapetensor.rules import products
from tapetensor.rules.dims import ANY, Dim, Size
from tapetensor.rules.products import check_matrices


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
def solve(call: Call) -> Answer:
    """Refuse matrices that are not square, and right-hand sides that do not fit them."""
    products.solve(call.op, call.receiver.dims, call.operand(0).dims)
    return None


# The axes of what each op makes of matrices (*Ds, M, N), where K is the smaller of M and N.
MADE: Final = {
    "inv": ("NN",),
    "cholesky": ("NN",),
    "det": ("",),
    "slogdet": ("", ""),
    "eigh": ("N", "NN"),
    "qr": ("MK", "KN"),
    "svd": ("MK", "K", "KN"),
    "pinv": ("NM",),
}
_OF_ANY_MATRIX: Final = ("qr", "svd", "pinv")


@of_all_shapes
def of_matrices(call: Call) -> Answer:
    """Return what an op makes of matrices, which mostly have to be square."""
    shape = call.receiver.dims
    if call.op in _OF_ANY_MATRIX:
        check_matrices(call.op, shape)
        rows, columns = shape[-2:]
    else:
        rows = columns = products.side_of_squares(call.op, shape)
    sides = {"M": rows, "N": columns, "K": _smaller(rows, columns)}
    shapes = [(*shape[:-2], *[sides[side] for side in made]) for made in MADE[call.op]]
    if len(shapes) == 1:
        return call.like(call.receiver, shapes[0])
    return call.tuple_of(list(map(call.like, call.results, shapes)))


def _smaller(rows: Dim, columns: Dim) -> Dim:
    if rows.literal is not None and columns.literal is not None:
        return Size.of(min(rows.literal, columns.literal))
    return rows if rows == columns else ANY
