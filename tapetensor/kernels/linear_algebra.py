"""Matrix products and einsum."""

from __future__ import annotations

import math
import string
from collections.abc import Sequence

import numpy as np

from tapetensor.arrays.array import Array
from tapetensor.arrays.libraries import like
from tapetensor.kernels.numerics.broadcasting import sum_to
from tapetensor.kernels.numerics.stacks import columns_as_rows
from tapetensor.kernels.numerics.sums import without_repeats
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
        left = np.reshape(lhs, (rows, lhs.shape[-1]))
        product: Array = np.matmul(left.T, np.reshape(g, (rows, g.shape[-1])))
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
