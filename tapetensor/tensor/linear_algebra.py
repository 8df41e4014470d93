"""Matrices: their products and triangles."""

# Where an operand fits in more than one way (a dim may be 1, or Any) the overloads overlap; they
# give the same shape there, and the first that fits is taken.
# mypy: disable-error-code="overload-overlap"

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Never, overload

from tapetensor.arguments import as_int
from tapetensor.errors import AxisError
from tapetensor.kernels import indexing, linear_algebra
from tapetensor.rules import products
from tapetensor.rules.dims import sized
from tapetensor.rules.refusals import refusal
from tapetensor.tape import Kernel, NoneTape
from tapetensor.tensor.apply import apply
from tapetensor.tensor.base import NumberBase, TensorBase, check_numeric, check_tensor
from tapetensor.tensor.operands import TapeOfRhs
from tapetensor.typing import D, Ds, K, M, N, R, S, T

if TYPE_CHECKING:
    from tapetensor.tensor.tensor import Joins, Tensor


class LinearAlgebra(TensorBase[S, T, D]):
    """Matrix products, and the triangles of matrices."""

    __slots__ = ()

    @overload
    def __matmul__(
        self: NumberBase[tuple[K], T, R], rhs: Joins[tuple[K], T, R], /
    ) -> Tensor[tuple[()], T, R]: ...
    @overload
    def __matmul__(
        self: NumberBase[tuple[K], NoneTape, R], rhs: Tensor[tuple[K], TapeOfRhs, R], /
    ) -> Tensor[tuple[()], TapeOfRhs, R]: ...
    @overload
    def __matmul__(
        self: NumberBase[tuple[*Ds, K], T, R], rhs: Joins[tuple[K], T, R], /
    ) -> Tensor[tuple[*Ds], T, R]: ...
    @overload
    def __matmul__(
        self: NumberBase[tuple[*Ds, K], NoneTape, R], rhs: Tensor[tuple[K], TapeOfRhs, R], /
    ) -> Tensor[tuple[*Ds], TapeOfRhs, R]: ...
    @overload
    def __matmul__(
        self: NumberBase[tuple[*Ds, K], T, R], rhs: Joins[tuple[K, N], T, R], /
    ) -> Tensor[tuple[*Ds, N], T, R]: ...
    @overload
    def __matmul__(
        self: NumberBase[tuple[*Ds, K], NoneTape, R], rhs: Tensor[tuple[K, N], TapeOfRhs, R], /
    ) -> Tensor[tuple[*Ds, N], TapeOfRhs, R]: ...
    @overload
    def __matmul__(
        self: NumberBase[tuple[*Ds, M, K], T, R], rhs: Joins[tuple[*Ds, K, N], T, R], /
    ) -> Tensor[tuple[*Ds, M, N], T, R]: ...
    @overload
    def __matmul__(
        self: NumberBase[tuple[*Ds, M, K], NoneTape, R],
        rhs: Tensor[tuple[*Ds, K, N], TapeOfRhs, R],
        /,
    ) -> Tensor[tuple[*Ds, M, N], TapeOfRhs, R]: ...
    @overload
    def __matmul__(
        self: NumberBase[tuple[M, K], T, R], rhs: Joins[tuple[*Ds, K, N], T, R], /
    ) -> Tensor[tuple[*Ds, M, N], T, R]: ...
    @overload
    def __matmul__(
        self: NumberBase[tuple[M, K], NoneTape, R], rhs: Tensor[tuple[*Ds, K, N], TapeOfRhs, R], /
    ) -> Tensor[tuple[*Ds, M, N], TapeOfRhs, R]: ...
    def __matmul__(self, rhs: Any, /) -> Tensor[Any, Any, Any]:
        """Multiply matrices.

            result[..., m, n] = sum over k of lhs[..., m, k] * rhs[..., k, n]

        Shape: ``(*Ds, M, K) @ (K, N) -> (*Ds, M, N)``, ``(*Ds, M, K) @ (*Ds, K, N) ->
            (*Ds, M, N)``, ``(*Ds, K) @ (K,) -> (*Ds)``, ``(K,) @ (K,) -> ()``; leading axes
            broadcast as numpy's.
        Derivative: ``g @ rhs.T`` for `lhs`, ``lhs.T @ g`` for `rhs`, for the cotangent ``g``.

        Raises:
            ShapeError: if the contracted sizes differ, or one operand is 0-d.
            DTypeError: if the dtypes differ.

        >>> import tapetensor as tt
        >>> x = tt.from_numpy([[1.0, 2.0]], shape=(1, 2))
        >>> w = tt.from_numpy([[3.0], [4.0]], shape=(2, 1))
        >>> x @ w
        Tensor([[11.]], shape=(1, 1), dtype=float32, NoneTape)
        """
        check_tensor("matmul", "the right operand", rhs)
        check_numeric("matmul", self)
        if not self._array.shape or not rhs._array.shape:
            shapes = [sized(one._array.shape) for one in (self, rhs)]
            raise refusal(lambda: products.matmul("matmul", *shapes))
        return apply(linear_algebra.matmul, (self, rhs))

    def __rmatmul__(self, lhs: Never, /) -> Never:
        """Refuse: only tensors multiply tensors.

        Raises:
            ArgumentTypeError: always.
        """
        check_tensor("matmul", "the left operand", lhs)
        raise AssertionError("two tensors meet in __matmul__")

    def tril(
        self: LinearAlgebra[tuple[*Ds, M, N], T, D], k: int = 0
    ) -> Tensor[tuple[*Ds, M, N], T, D]:
        """Return the lower triangles of the matrices, with zeros above.

        Shape: that of `self`, ``(*Ds, M, N)``.
        Derivative: 1 in the triangle, 0 outside.

        Args:
            k: the last diagonal that is kept; 0 is the main one, 1 the one above it.

        Raises:
            AxisError: if there are fewer than two axes.

        >>> import tapetensor as tt
        >>> tt.ones((2, 2)).tril()
        Tensor([[1., 0.],
                [1., 1.]], shape=(2, 2), dtype=float32, NoneTape)
        """
        return _triangle(indexing.tril, self, k)

    def triu(
        self: LinearAlgebra[tuple[*Ds, M, N], T, D], k: int = 0
    ) -> Tensor[tuple[*Ds, M, N], T, D]:
        """Return the upper triangles of the matrices, with zeros below.

        Shape: that of `self`, ``(*Ds, M, N)``.
        Derivative: 1 in the triangle, 0 outside.

        Args:
            k: the first diagonal that is kept; 0 is the main one, 1 the one above it.

        Raises:
            AxisError: if there are fewer than two axes.

        >>> import tapetensor as tt
        >>> tt.ones((2, 2)).triu(k=1)
        Tensor([[0., 1.],
                [0., 0.]], shape=(2, 2), dtype=float32, NoneTape)
        """
        return _triangle(indexing.triu, self, k)


def _triangle(kernel: Kernel, x: TensorBase[S, T, D], k: object) -> Tensor[S, T, D]:
    op = kernel.__name__
    if x._array.ndim < 2:
        raise AxisError(f"{op}: needs two axes, the shape is {x._array.shape}")
    return apply(kernel, (x,), (as_int(op, "k", k),))
