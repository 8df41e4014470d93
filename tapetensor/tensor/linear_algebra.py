"""Matrices: their products and triangles, equations to solve, and matrices taken apart."""

# Where an operand fits in more than one way (a dim may be 1, or Any) the overloads overlap; they
# give the same shape there, and the first that fits is taken.
# mypy: disable-error-code="overload-overlap"

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Never, overload

import numpy as np

from tapetensor.arguments import as_int
from tapetensor.errors import AxisError, refusal
from tapetensor.kernels import indexing, linear_algebra
from tapetensor.rules import broadcasting as rules
from tapetensor.rules.broadcasting import check_matrices
from tapetensor.rules.dims import sized
from tapetensor.tape import Kernel, NoneTape
from tapetensor.tensor.apply import apply
from tapetensor.tensor.base import (
    FloatingBase,
    NumberBase,
    TensorBase,
    check_floating,
    check_numeric,
    check_same_dtype,
    check_tensor,
)
from tapetensor.tensor.operands import TapeOfRhs
from tapetensor.typing import D, Ds, F, K, M, N, R, S, T

if TYPE_CHECKING:
    from tapetensor.tensor.tensor import Joins, Tensor


class LinearAlgebra(TensorBase[S, T, D]):
    """Matrix products and triangles, systems and decompositions, of the last two axes.

    Inverses, determinants and systems need square matrices. What solves or takes apart raises
    `ArgumentValueError` where numpy's LAPACK finds no answer.
    """

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
            raise refusal(lambda: rules.matmul("matmul", *shapes))
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

    def inv(self: FloatingBase[tuple[*Ds, N, N], T, F]) -> Tensor[tuple[*Ds, N, N], T, F]:
        """Return the inverse of square matrices.

            x @ x.inv() = 1

        To solve equations, `solve` is faster and more exact.

        Shape: ``(*Ds, N, N)``, the same out.
        Derivative: ``-y.T @ g @ y.T`` for the cotangent `g`, with the inverse `y`.

        Raises:
            ArgumentValueError: if a matrix is singular.
            ShapeError: if they are not square.
            DTypeError: if the dtype is not floating.

        Source: array API, ``linalg.inv``; Giles (2008), section 2.2.3.

        >>> import tapetensor as tt
        >>> (tt.eye(2) * 4.0).inv()
        Tensor([[0.25, 0.  ],
                [0.  , 0.25]], shape=(2, 2), dtype=float32, NoneTape)
        """
        check_square("inv", self)
        return apply(linear_algebra.inv, (self,))

    def det(self: FloatingBase[tuple[*Ds, N, N], T, F]) -> Tensor[tuple[*Ds], T, F]:
        """Return the determinant of square matrices.

        Shape: ``(*Ds, N, N) -> (*Ds)``.
        Derivative: the cofactors, ``det(x) * x.inv().T``; those of a singular matrix, too.

        Raises:
            ShapeError: if the matrices are not square.
            DTypeError: if the dtype is not floating.

        Source: array API, ``linalg.det``; Giles (2008), section 2.2.4.

        >>> import tapetensor as tt
        >>> (tt.eye(2) * 4.0).det()
        Tensor(16., shape=(), dtype=float32, NoneTape)
        """
        check_square("det", self)
        return apply(linear_algebra.det, (self,))

    def cholesky(self: FloatingBase[tuple[*Ds, N, N], T, F]) -> Tensor[tuple[*Ds, N, N], T, F]:
        """Return the lower triangles whose squares positive definite matrices are.

            y @ y.transpose() = (x + x.transpose()) / 2

        Of a matrix that is not symmetric it is the factor of its symmetric part, as JAX's; numpy
        and PyTorch read the lower triangle alone.

        Shape: ``(*Ds, N, N)``, the same out.
        Derivative: symmetric, so that a step keeps a symmetric matrix symmetric.

        Raises:
            ArgumentValueError: if a matrix is not positive definite.
            ShapeError: if they are not square.
            DTypeError: if the dtype is not floating.

        Source: array API, ``linalg.cholesky``; I. Murray (2016), "Differentiation of the Cholesky
            decomposition".

        >>> import tapetensor as tt
        >>> (tt.eye(2) * 4.0).cholesky()
        Tensor([[2., 0.],
                [0., 2.]], shape=(2, 2), dtype=float32, NoneTape)
        """
        check_square("cholesky", self)
        return apply(linear_algebra.cholesky, (self,))

    @overload
    def solve(
        self: FloatingBase[tuple[N, N], T, F], b: Joins[tuple[N], T, F], /
    ) -> Tensor[tuple[N], T, F]: ...
    @overload
    def solve(
        self: FloatingBase[tuple[N, N], NoneTape, F], b: Tensor[tuple[N], TapeOfRhs, F], /
    ) -> Tensor[tuple[N], TapeOfRhs, F]: ...
    @overload
    def solve(
        self: FloatingBase[tuple[*Ds, N, N], T, F], b: Joins[tuple[*Ds, N, K], T, F], /
    ) -> Tensor[tuple[*Ds, N, K], T, F]: ...
    @overload
    def solve(
        self: FloatingBase[tuple[*Ds, N, N], NoneTape, F],
        b: Tensor[tuple[*Ds, N, K], TapeOfRhs, F],
        /,
    ) -> Tensor[tuple[*Ds, N, K], TapeOfRhs, F]: ...
    def solve(self, b: Tensor[Any, Any, Any], /) -> Tensor[Any, Any, Any]:
        """Return the solutions of systems of linear equations.

            a @ x = b,  for x = a.solve(b)

        Shape: ``(N, N), (N) -> (N)``; ``(*Ds, N, N), (*Ds, N, K) -> (*Ds, N, K)``.
        Derivative: ``h = a.T.solve(g)`` for `b`, with the cotangent `g`; ``-h @ x.T`` for `a`.

        Raises:
            ArgumentValueError: if a matrix is singular.
            ShapeError: if the matrices are not square, or `b` does not fit them.
            DTypeError: if the dtypes differ or are not floating.

        Source: array API, ``linalg.solve``; Giles (2008), section 2.3.1.

        >>> import tapetensor as tt
        >>> (tt.eye(2) * 4.0).solve(tt.ones((2,)))
        Tensor([0.25, 0.25], shape=(2,), dtype=float32, NoneTape)
        """
        check_square("solve", self)
        check_tensor("solve", "the right operand", b)
        check_same_dtype("solve", (self, b))
        shape, other = self._array.shape, b._array.shape
        is_vector = len(shape) == 2 and len(other) == 1
        if other[-1 if is_vector else -2 :][:1] != shape[-1:] or len(other) < 2 - is_vector:
            raise refusal(lambda: rules.solve("solve", sized(shape), sized(other)))
        return apply(linear_algebra.solve, (self, b))

    def slogdet(
        self: FloatingBase[tuple[*Ds, N, N], T, F],
    ) -> tuple[Tensor[tuple[*Ds], NoneTape, F], Tensor[tuple[*Ds], T, F]]:
        """Return the sign of the determinant of square matrices, and the logarithm of its size.

            det(x) = sign * exp(logarithm)

        Of a singular matrix the sign is 0 and the logarithm minus infinity.

        Shape: ``(*Ds, N, N) -> (*Ds), (*Ds)``.
        Derivative: ``x.inv().T`` for the logarithm, which needs a matrix that is not singular; none
            for the sign, which is plain.

        Raises:
            ShapeError: if the matrices are not square.
            DTypeError: if the dtype is not floating.
            ArgumentValueError: in the backward pass, if one is singular.

        Source: array API, ``linalg.slogdet``; Giles (2008), section 2.2.4.

        >>> import tapetensor as tt
        >>> sign, logarithm = (tt.eye(2) * -1.0).slogdet()
        >>> sign.item(), logarithm.item()
        (1.0, 0.0)
        """
        check_square("slogdet", self)
        sign, logarithm = _parts(linear_algebra.slogdet, self, ((..., 0), (..., 1)))
        return sign.detach(), logarithm

    def eigh(
        self: FloatingBase[tuple[*Ds, N, N], T, F],
    ) -> tuple[Tensor[tuple[*Ds, N], T, F], Tensor[tuple[*Ds, N, N], T, F]]:
        """Return the eigenvalues of symmetric matrices, ascending, and their vectors, as columns.

            x @ vectors = vectors * values

        Of a matrix that is not symmetric it takes the symmetric part, as `cholesky` does. The sign
        of each vector is LAPACK's choice.

        Shape: ``(*Ds, N, N) -> (*Ds, N), (*Ds, N, N)``.
        Derivative: symmetric. That of the vectors divides by the differences of eigenvalues: it is
            infinite or NaN where two are equal. That of the values alone has no such condition.

        Raises:
            ShapeError: if the matrices are not square.
            DTypeError: if the dtype is not floating.

        Source: array API, ``linalg.eigh``; Giles (2008), section 3.1.

        >>> import tapetensor as tt
        >>> values, vectors = tt.from_numpy([[2.0, 1.0], [1.0, 2.0]], shape=(2, 2)).eigh()
        >>> values
        Tensor([1., 3.], shape=(2,), dtype=float32, NoneTape)
        """
        check_square("eigh", self)
        values, vectors = _parts(
            linear_algebra.eigh, self, ((..., 0, _ALL), (..., slice(1, None), _ALL))
        )
        return values, vectors

    def qr(
        self: FloatingBase[tuple[*Ds, M, N], T, F],
    ) -> tuple[Tensor[tuple[*Ds, M, Any], T, F], Tensor[tuple[*Ds, Any, N], T, F]]:
        """Return orthonormal columns and the upper triangle that makes matrices of them.

            x = q @ r

        The signs are LAPACK's choice: the diagonal of ``r`` may be negative.

        Shape: ``(*Ds, M, N) -> (*Ds, M, K), (*Ds, K, N)`` with the smaller of `M` and `N` for `K`.
        Derivative: needs the first `K` columns of the matrix to be independent.

        Raises:
            ShapeError: if there are fewer than two axes.
            DTypeError: if the dtype is not floating.
            ArgumentValueError: in the backward pass, if columns depend on each other.

        Source: array API, ``linalg.qr``; Seeger et al. (2017), "Auto-differentiating linear
            algebra".

        >>> import tapetensor as tt
        >>> q, r = tt.ones((4, 1)).qr()
        >>> (q @ r).shape
        (4, 1)
        """
        rows = _check_matrices("qr", self)
        q, r = _parts(
            linear_algebra.qr, self, ((..., slice(rows), _ALL), (..., slice(rows, None), _ALL))
        )
        return q, r.transpose()

    def svd(
        self: FloatingBase[tuple[*Ds, M, N], T, F],
    ) -> tuple[
        Tensor[tuple[*Ds, M, Any], T, F],
        Tensor[tuple[*Ds, Any], T, F],
        Tensor[tuple[*Ds, Any, N], T, F],
    ]:
        """Return the reduced singular value decomposition: columns, values, rows.

            x = (u * values) @ rows

        The values descend; the sign of each pair of vectors is LAPACK's choice. numpy's and
        PyTorch's is the full one unless ``full_matrices=False``.

        Shape: ``(*Ds, M, N) -> (*Ds, M, K), (*Ds, K), (*Ds, K, N)`` with the smaller of `M` and `N`
            for `K`.
        Derivative: that of the vectors divides by the differences of the squares of the values, and
            by the values if the matrices are not square: it is infinite or NaN where two are equal,
            or one is 0. That of the values alone has no such condition.

        Raises:
            ShapeError: if there are fewer than two axes.
            DTypeError: if the dtype is not floating.

        Source: array API, ``linalg.svd`` with ``full_matrices=False``; Seeger et al. (2017).

        >>> import tapetensor as tt
        >>> u, values, rows = tt.from_numpy([[3.0, 0.0], [0.0, -4.0]], shape=(2, 2)).svd()
        >>> values
        Tensor([4., 3.], shape=(2,), dtype=float32, NoneTape)
        """
        rows = _check_matrices("svd", self)
        u, values, v = _parts(
            linear_algebra.svd,
            self,
            ((..., slice(rows), _ALL), (..., rows, _ALL), (..., slice(rows + 1, None), _ALL)),
        )
        return u, values, v.transpose()

    def pinv(self: FloatingBase[tuple[*Ds, M, N], T, F]) -> Tensor[tuple[*Ds, N, M], T, F]:
        """Return the pseudoinverse: ``x.pinv() @ b`` is the shortest least-squares solution.

        Singular values up to ``max(M, N) * eps`` of the largest count as 0.

        Shape: ``(*Ds, M, N) -> (*Ds, N, M)``.
        Derivative: that where the rank stays as it is; where it changes there is none.

        Raises:
            ShapeError: if there are fewer than two axes.
            DTypeError: if the dtype is not floating.

        Source: array API, ``linalg.pinv``; Golub & Pereyra (1973), "The differentiation of
            pseudo-inverses and nonlinear least squares problems whose variables separate".

        >>> import tapetensor as tt
        >>> tt.ones((4, 1)).pinv()
        Tensor([[0.25, 0.25, 0.25, 0.25]], shape=(1, 4), dtype=float32, NoneTape)
        """
        _check_matrices("pinv", self)
        # Rounding may have made smaller ones of nothing.
        share = max(self._array.shape[-2:]) * float(np.finfo(self._array.dtype).eps)
        return apply(linear_algebra.pinv, (self,), (share,))


def _triangle(kernel: Kernel, x: TensorBase[S, T, D], k: object) -> Tensor[S, T, D]:
    op = kernel.__name__
    if x._array.ndim < 2:
        raise AxisError(f"{op}: needs two axes, the shape is {x._array.shape}")
    return apply(kernel, (x,), (as_int(op, "k", k),))


def check_square(op: str, x: TensorBase[Any, Any, Any]) -> None:
    """Raise ShapeError unless the last two axes are square matrices."""
    check_floating(op, x)
    shape = x._array.shape
    if len(shape) < 2 or shape[-1] != shape[-2]:
        raise refusal(lambda: rules.side_of_squares(op, sized(shape)))


_ALL = slice(None)


def _check_matrices(op: str, x: TensorBase[Any, Any, Any]) -> int:
    """Return how many rows the matrices have."""
    check_floating(op, x)
    shape: tuple[int, ...] = x._array.shape
    check_matrices(op, shape)
    return shape[-2]


def _parts(
    kernel: Kernel, x: TensorBase[Any, Any, Any], indices: tuple[Any, ...]
) -> list[Tensor[Any, Any, Any]]:
    """Return the parts of what a kernel gives as one array."""
    whole = apply(kernel, (x,))
    return [apply(indexing.getitem, (whole,), (index,)) for index in indices]
