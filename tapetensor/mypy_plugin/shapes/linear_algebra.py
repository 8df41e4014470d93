"""Products of tensors, and decompositions of matrices."""

from __future__ import annotations

from tapetensor.mypy_plugin.reading import known, merged, read_literal, read_tensor
from tapetensor.mypy_plugin.shapes.calls import Answer, Call, of_all_shapes, opening
from tapetensor.rules import products
from tapetensor.rules.dims import ANY, Dim, Dims, Size
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


@of_all_shapes
def slogdet(call: Call) -> Answer:
    """Return the results of `slogdet`: two numbers for each matrix."""
    side_of(call)
    leading = call.receiver.dims[:-2]
    return _results(call, leading, leading)


@of_all_shapes
def eigh(call: Call) -> Answer:
    """Return the results of `eigh`: as many values and vectors as rows."""
    size, leading = side_of(call), call.receiver.dims[:-2]
    return _results(call, (*leading, size), (*leading, size, size))


@of_all_shapes
def qr(call: Call) -> Answer:
    """Return the results of `qr`."""
    leading, rows, columns = _matrices(call)
    size = _smaller(rows, columns)
    return _results(call, (*leading, rows, size), (*leading, size, columns))


@of_all_shapes
def svd(call: Call) -> Answer:
    """Return the results of `svd`."""
    leading, rows, columns = _matrices(call)
    size = _smaller(rows, columns)
    return _results(call, (*leading, rows, size), (*leading, size), (*leading, size, columns))


@of_all_shapes
def pinv(call: Call) -> Answer:
    """Return the result of `pinv`, whose matrices lie."""
    leading, rows, columns = _matrices(call)
    return call.like(call.receiver, (*leading, columns, rows))


def _matrices(call: Call) -> tuple[Dims, Dim, Dim]:
    shape = call.receiver.dims
    check_matrices(call.op, shape)
    return shape[:-2], shape[-2], shape[-1]


def _smaller(rows: Dim, columns: Dim) -> Dim:
    if rows.literal is not None and columns.literal is not None:
        return Size.of(min(rows.literal, columns.literal))
    return rows if rows == columns else ANY


def _results(call: Call, *shapes: Dims) -> Answer:
    results = zip(call.results, shapes, strict=True)
    return call.tuple_of([call.like(one, dims) for one, dims in results])
