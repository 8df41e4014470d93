"""Systems of linear equations, and what matrices are made of."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, overload

from tapetensor.kernels import linear_algebra
from tapetensor.rules import products
from tapetensor.rules.dims import sized
from tapetensor.rules.refusals import refusal
from tapetensor.tape import NoneTape
from tapetensor.tensor.apply import apply
from tapetensor.tensor.base import (
    FloatingBase,
    TensorBase,
    check_floating,
    check_same_dtype,
    check_tensor,
)
from tapetensor.tensor.operands import TapeOfRhs
from tapetensor.typing import D, Ds, F, K, N, S, T

if TYPE_CHECKING:
    from tapetensor.tensor.tensor import Joins, Tensor


class Solving(TensorBase[S, T, D]):
    """Inverses, determinants, systems of equations, of the matrices in the last two axes.

    All need square matrices, and raise `ArgumentValueError` where numpy's LAPACK finds no answer.
    """

    __slots__ = ()

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
            raise refusal(lambda: products.solve("solve", sized(shape), sized(other)))
        return apply(linear_algebra.solve, (self, b))


def check_square(op: str, x: TensorBase[Any, Any, Any]) -> None:
    """Raise ShapeError unless the last two axes are square matrices."""
    check_floating(op, x)
    shape = x._array.shape
    if len(shape) < 2 or shape[-1] != shape[-2]:
        raise refusal(lambda: products.side_of_squares(op, sized(shape)))
