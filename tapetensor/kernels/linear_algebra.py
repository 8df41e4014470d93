"""Matrix products, einsum, and matrices solved for or taken apart, over the last two axes.

Of a decomposition several results are one array, rows under rows. Derivatives after M. B. Giles
(2008), "Collected matrix derivative results for forward and reverse mode algorithmic
differentiation", and M. Seeger et al. (2017), "Auto-differentiating linear algebra".
"""

from __future__ import annotations

import math
import string
from collections.abc import Sequence

import numpy as np

from tapetensor.arrays.array import Array
from tapetensor.arrays.libraries import like
from tapetensor.errors import ArgumentValueError
from tapetensor.kernels.numerics.along_axes import is_turned, sum_to, without_repeats
from tapetensor.kernels.numerics.matrices import cofactors, columns_as_rows, transposed
from tapetensor.tape import Pullback, Pullbacks

# A product of so many multiplications outweighs that those who read it may have to turn it.
_WORTH_TURNING = 1 << 18


def matmul(lhs: Array, rhs: Array) -> tuple[Array, Pullbacks]:
    """``lhs @ rhs`` with numpy's rules for vectors and for leading axes."""
    return np.matmul(lhs, rhs), (
        lambda g: _matmul_pullback_lhs(g, lhs, rhs),
        lambda g: _matmul_pullback_rhs(g, lhs, rhs),
    )


def linear(x: Array, weight: Array, bias: Array) -> tuple[Array, Pullbacks]:
    """``x @ weight.T + bias`` for a weight of shape (out, in).

    It is a kernel of its own because the bias is added into the fresh product.
    """
    y, (pullback_x, pullback_weight) = unbiased_linear(x, weight)
    y += bias
    return y, (pullback_x, pullback_weight, lambda g: sum_to(g, bias.shape))


def unbiased_linear(x: Array, weight: Array) -> tuple[Array, Pullbacks]:
    """``x @ weight.T`` for a weight of shape (out, in).

    It is a kernel of its own because leading axes fold into one product instead of a batch.
    """
    if x.ndim == 2:
        return _wide_product(x, weight.T), (
            lambda g: _wide_product(g, weight),
            lambda g: _product(g.T, x),
        )
    out_features, in_features = weight.shape
    rows = math.prod(x.shape[:-1])
    folded = np.reshape(x, (rows, in_features))

    def fold(g: Array) -> Array:
        return np.reshape(g, (rows, out_features))

    return np.reshape(_product(folded, weight.T), (*x.shape[:-1], out_features)), (
        lambda g: np.reshape(_product(fold(g), weight), x.shape),
        lambda g: _product(fold(g).T, folded),
    )


def einsum(
    *operands: Array, inputs: Sequence[str], output: str, shapes: Sequence[tuple[int, ...]]
) -> tuple[Array, Pullbacks]:
    """The sum of products that the subscripts spell.

    The subscripts come in explicit form: one string per operand, letters only, and the shape that
    each operand broadcasts to.
    """
    full = [
        x if x.shape == shape else np.broadcast_to(x, shape)
        for x, shape in zip(operands, shapes, strict=True)
    ]
    y = np.einsum(",".join(inputs) + "->" + output, *full, optimize=len(operands) > 1)
    return y, tuple(
        [
            _einsum_pullback(position, full, inputs, output, x.shape)
            for position, x in enumerate(operands)
        ]
    )


def _wide_product(lhs: Array, rhs: Array) -> Array:
    """Return the product of two matrices; one that is wider than tall may lie in Fortran order.

    It is the transpose of the product of the transposes then: OpenBLAS takes as little as half the
    time where the longer side comes first.
    """
    (rows, inner), columns = lhs.shape, rhs.shape[1]
    if rows < columns and rows * inner * columns >= _WORTH_TURNING:
        return _product(rhs.T, lhs.T).T
    return _product(lhs, rhs)


def _product(lhs: Array, rhs: Array) -> Array:
    """Return the product of two matrices.

    The method of numpy's own arrays begins half a microsecond sooner than the ufunc. Of two numbers
    it may make -0, where the ufunc makes 0, and it does not see that two parts of an array are one.
    """
    is_own = type(lhs) is np.ndarray and type(rhs) is np.ndarray
    if is_own and lhs.size != 1 and (lhs.base is None or lhs.base is not rhs.base):
        fast: Array = lhs.dot(rhs)
        return fast
    # The method copies what the BLAS cannot read.
    product: Array = np.matmul(without_repeats(lhs), without_repeats(rhs))
    return product


def _matmul_pullback_lhs(g: Array, lhs: Array, rhs: Array) -> Array:
    if rhs.ndim == 1:
        return sum_to(np.expand_dims(g, -1) * rhs, lhs.shape)
    if lhs.ndim == 1:
        row: Array = np.matmul(np.expand_dims(g, -2), np.swapaxes(rhs, -1, -2))
        return np.reshape(sum_to(row, (1, *lhs.shape)), lhs.shape)
    return sum_to(np.matmul(g, columns_as_rows(rhs)), lhs.shape)


def _matmul_pullback_rhs(g: Array, lhs: Array, rhs: Array) -> Array:
    if lhs.ndim == 1 and rhs.ndim == 1:
        return g * lhs
    if rhs.ndim == 1:
        return sum_to(np.expand_dims(g, -1) * lhs, rhs.shape)
    if lhs.ndim == 1:
        return sum_to(np.expand_dims(lhs, -1) * np.expand_dims(g, -2), rhs.shape)
    if rhs.ndim == 2:
        # This is one product over all leading axes instead of a batch of products and a sum.
        rows = math.prod(lhs.shape[:-1])
        left, right = np.reshape(lhs, (rows, lhs.shape[-1])), np.reshape(g, (rows, g.shape[-1]))
        if is_turned(rhs):
            # The cotangent of a weight that was transposed lies as the weight does, which it meets.
            turned: Array = np.matmul(right.T, left)
            return turned.T
        product: Array = np.matmul(left.T, right)
        return product
    return sum_to(np.matmul(np.swapaxes(lhs, -1, -2), g), rhs.shape)


def _einsum_pullback(
    position: int,
    operands: Sequence[Array],
    inputs: Sequence[str],
    output: str,
    original: tuple[int, ...],
) -> Pullback:
    subscripts = inputs[position]
    operand = operands[position]
    others = [array for index, array in enumerate(operands) if index != position]
    other_inputs = [letters for index, letters in enumerate(inputs) if index != position]
    distinct = "".join(dict.fromkeys(subscripts))
    # A letter that only this operand has was summed away: its cotangent repeats along that axis.
    reachable = "".join(
        letter for letter in distinct if letter in output or any(letter in o for o in other_inputs)
    )
    sizes = dict(zip(subscripts, operand.shape, strict=True))
    expression = ",".join([output, *other_inputs]) + "->" + reachable

    def pullback(g: Array) -> Array:
        found = np.einsum(expression, g, *others, optimize=True)
        kept = tuple([sizes[letter] if letter in reachable else 1 for letter in distinct])
        spread = np.broadcast_to(
            np.reshape(found, kept), tuple([sizes[letter] for letter in distinct])
        )
        if distinct == subscripts:
            return sum_to(spread, original)
        return sum_to(_on_diagonals(spread, distinct, subscripts), original)

    return pullback


def _on_diagonals(x: Array, letters: str, subscripts: str) -> Array:
    """Return zeros but for `x`, placed where `subscripts`, which repeat letters, read it from.

    For every repetition there is a product with an identity matrix: a diagonal is a sum over it.
    """
    spare = (letter for letter in string.ascii_letters if letter not in letters)
    target, factors, identities = "", [letters], []
    for letter in subscripts:
        if letter in target:
            other = next(spare)
            factors.append(letter + other)
            identities.append(like(np.eye(x.shape[letters.index(letter)], dtype=x.dtype), x))
            letter = other
        target += letter
    placed: Array = np.einsum(",".join(factors) + "->" + target, x, *identities)
    return placed


def inv(x: Array) -> tuple[Array, Pullbacks]:
    """The inverse."""
    y = np.linalg.inv(x)
    adjoint = transposed(y)
    return y, (lambda g: -(adjoint @ g @ adjoint),)


def det(x: Array) -> tuple[Array, Pullbacks]:
    """The determinant."""
    y = np.linalg.det(x)
    return y, (lambda g: np.reshape(g, (*y.shape, 1, 1)) * cofactors(x, y),)


def solve(a: Array, b: Array) -> tuple[Array, Pullbacks]:
    """``x`` with ``a @ x == b``, for a vector `b` or for the columns of matrices."""
    columns = np.reshape(b, (*b.shape, 1)) if b.ndim == 1 else b
    solved = np.linalg.solve(a, columns)
    y = np.reshape(solved, solved.shape[:-1]) if b.ndim == 1 else solved

    def of_columns(g: Array) -> Array:
        cotangent: Array = np.linalg.solve(transposed(a), np.reshape(g, solved.shape))
        return cotangent

    return y, (
        lambda g: sum_to(-(of_columns(g) @ transposed(solved)), a.shape),
        lambda g: np.reshape(sum_to(of_columns(g), columns.shape), b.shape),
    )


def cholesky(x: Array) -> tuple[Array, Pullbacks]:
    """The lower triangle `y` with ``y @ y.T`` the symmetric part of `x`."""
    y = np.linalg.cholesky(0.5 * (x + transposed(x)))

    def pullback(g: Array) -> Array:
        adjoint = transposed(y)
        product = adjoint @ g
        # The diagonal counts half.
        inner = 0.5 * (np.tril(product) + np.tril(product, -1))
        left = np.linalg.solve(adjoint, inner)
        slope = transposed(np.linalg.solve(adjoint, transposed(left)))
        cotangent: Array = 0.5 * (slope + transposed(slope))
        return cotangent

    return y, (pullback,)


def slogdet(x: Array) -> tuple[Array, Pullbacks]:
    """The sign of the determinant, and the logarithm of its size."""
    sign, size = np.linalg.slogdet(x)
    y = np.stack([sign, size], axis=-1)

    def pullback(g: Array) -> Array:
        try:
            inverse = np.linalg.inv(x)
        except np.linalg.LinAlgError as error:
            raise ArgumentValueError(f"slogdet: the derivative divides by it ({error})") from error
        cotangent: Array = np.reshape(g[..., 1], (*g.shape[:-1], 1, 1)) * transposed(inverse)
        return cotangent

    return y, (pullback,)


def eigh(x: Array) -> tuple[Array, Pullbacks]:
    """A row of the eigenvalues of the symmetric part, ascending, over columns of vectors."""
    values, vectors = np.linalg.eigh(0.5 * (x + transposed(x)))
    row = np.expand_dims(values, -2)

    def pullback(g: Array) -> Array:
        inner = 0.5 * _turned(vectors, g[..., 1:, :], row) + _diagonal(g[..., :1, :])
        cotangent: Array = vectors @ inner @ transposed(vectors)
        return cotangent

    return np.concatenate([row, vectors], axis=-2), (pullback,)


def qr(x: Array) -> tuple[Array, Pullbacks]:
    """The orthogonal columns over the transposed triangle."""
    q, r = np.linalg.qr(x)
    rows, size = q.shape[-2:]

    def pullback(g: Array) -> Array:
        of_q, of_r = g[..., :rows, :], transposed(g[..., rows:, :])
        # What is right of a square depends on it by way of the columns alone.
        of_q = of_q + x[..., size:] @ transposed(of_r[..., size:])
        square, of_square = r[..., :size], of_r[..., :size]
        product = square @ transposed(of_square) - transposed(of_q) @ q
        mirrored = np.tril(product) + transposed(np.tril(product, -1))
        try:
            solved = np.linalg.solve(square, transposed(of_q + q @ mirrored))
        except np.linalg.LinAlgError as error:
            raise ArgumentValueError(f"qr: the derivative divides by R ({error})") from error
        return np.concatenate([transposed(solved), q @ of_r[..., size:]], axis=-1)

    return np.concatenate([q, transposed(r)], axis=-2), (pullback,)


def svd(x: Array) -> tuple[Array, Pullbacks]:
    """The left vectors, a row of the singular values, descending, and the right vectors."""
    u, values, right = np.linalg.svd(x, full_matrices=False)
    v = transposed(right)
    row = np.expand_dims(values, -2)
    rows = u.shape[-2]

    def pullback(g: Array) -> Array:
        of_u, of_v = g[..., :rows, :], g[..., rows + 1 :, :]
        squares = np.square(row)
        inner = _turned(u, of_u, squares) * row + _turned(v, of_v, squares) * transposed(row)
        cotangent: Array = u @ (inner + _diagonal(g[..., rows : rows + 1, :])) @ right
        # What turns the vectors out of the space that they span.
        if rows > row.shape[-1]:
            beyond = of_u - u @ (transposed(u) @ of_u)
            cotangent = cotangent + (beyond / _divisor(row, _is_idle(of_u))) @ right
        if x.shape[-1] > row.shape[-1]:
            beyond = of_v - v @ (transposed(v) @ of_v)
            cotangent = cotangent + u @ transposed(beyond / _divisor(row, _is_idle(of_v)))
        return cotangent

    return np.concatenate([u, row, v], axis=-2), (pullback,)


def pinv(x: Array, rcond: float) -> tuple[Array, Pullbacks]:
    """The pseudoinverse; singular values up to `rcond` of the largest count as 0."""
    y = np.linalg.pinv(x, rcond)
    adjoint = transposed(y)

    def pullback(g: Array) -> Array:
        turned = transposed(g)
        to_left = turned @ y @ adjoint
        to_right = adjoint @ y @ turned
        cotangent: Array = (
            to_left + to_right - adjoint @ g @ adjoint - x @ (y @ to_left) - (to_right @ y) @ x
        )
        return cotangent

    return y, (pullback,)


def _turned(vectors: Array, g: Array, row: Array) -> Array:
    """Return how far a cotangent turns vectors into each other, by the gaps of their values.

    Where two values are equal no vectors of theirs are any better than others, and a function of
    them has no derivative: infinity or NaN, but for what does not depend on vectors at all.
    """
    turns = transposed(vectors) @ g
    itself = like(np.eye(row.shape[-1], dtype=np.bool_), row)
    gaps = _divisor(row - transposed(row), _is_idle(g) | itself)
    turned: Array = (turns - transposed(turns)) / gaps
    return turned


def _is_idle(g: Array) -> Array:
    is_idle: Array = np.all(g == 0, axis=(-2, -1), keepdims=True)
    return is_idle


def _divisor(gaps: Array, is_idle: Array) -> Array:
    return np.where((gaps == 0) & is_idle, 1, gaps)


def _diagonal(row: Array) -> Array:
    """Return a row as the diagonal of a square."""
    squares: Array = row * like(np.eye(row.shape[-1], dtype=row.dtype), row)
    return squares
