"""The mean, and the logarithm of a sum of exponentials."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, TypeAlias, overload

from tapetensor.kernels import reductions
from tapetensor.tensor.base import FloatingBase, TensorBase, check_floating
from tapetensor.tensor.reductions import reduce
from tapetensor.typing import B, D, Ds, F, K, M, N, S, T

if TYPE_CHECKING:
    from tapetensor.tensor.tensor import Tensor

One: TypeAlias = Literal[1]


class Averages(TensorBase[S, T, D]):
    """The mean and its smooth relative, which take `axis` and `keepdims` as the reductions do."""

    __slots__ = ()

    @overload
    def mean(
        self: FloatingBase[S, T, F], axis: None = None, keepdims: Literal[False] = False
    ) -> Tensor[tuple[()], T, F]: ...
    @overload
    def mean(
        self: FloatingBase[tuple[*Ds, N], T, F],
        axis: Literal[-1],
        keepdims: Literal[False] = False,
    ) -> Tensor[tuple[*Ds], T, F]: ...
    @overload
    def mean(
        self: FloatingBase[tuple[*Ds, N], T, F],
        axis: Literal[-1],
        keepdims: Literal[True],
    ) -> Tensor[tuple[*Ds, One], T, F]: ...
    @overload
    def mean(
        self: FloatingBase[tuple[N, *Ds], T, F],
        axis: Literal[0],
        keepdims: Literal[False] = False,
    ) -> Tensor[tuple[*Ds], T, F]: ...
    @overload
    def mean(
        self: FloatingBase[tuple[N, *Ds], T, F], axis: Literal[0], keepdims: Literal[True]
    ) -> Tensor[tuple[One, *Ds], T, F]: ...
    @overload
    def mean(
        self: FloatingBase[tuple[B, N, *Ds], T, F],
        axis: Literal[1],
        keepdims: Literal[False] = False,
    ) -> Tensor[tuple[B, *Ds], T, F]: ...
    @overload
    def mean(
        self: FloatingBase[tuple[B, N, *Ds], T, F],
        axis: Literal[1],
        keepdims: Literal[True],
    ) -> Tensor[tuple[B, One, *Ds], T, F]: ...
    @overload
    def mean(
        self: FloatingBase[tuple[*Ds, M, N], T, F],
        axis: Literal[-2],
        keepdims: Literal[False] = False,
    ) -> Tensor[tuple[*Ds, N], T, F]: ...
    @overload
    def mean(
        self: FloatingBase[tuple[*Ds, M, N], T, F],
        axis: Literal[-2],
        keepdims: Literal[True],
    ) -> Tensor[tuple[*Ds, One, N], T, F]: ...
    @overload
    def mean(
        self: FloatingBase[tuple[B, M, N, *Ds], T, F],
        axis: Literal[2],
        keepdims: Literal[False] = False,
    ) -> Tensor[tuple[B, M, *Ds], T, F]: ...
    @overload
    def mean(
        self: FloatingBase[tuple[B, M, N, *Ds], T, F],
        axis: Literal[2],
        keepdims: Literal[True],
    ) -> Tensor[tuple[B, M, One, *Ds], T, F]: ...
    @overload
    def mean(
        self: FloatingBase[tuple[B, M, N, K, *Ds], T, F],
        axis: Literal[3],
        keepdims: Literal[False] = False,
    ) -> Tensor[tuple[B, M, N, *Ds], T, F]: ...
    @overload
    def mean(
        self: FloatingBase[tuple[B, M, N, K, *Ds], T, F],
        axis: Literal[3],
        keepdims: Literal[True],
    ) -> Tensor[tuple[B, M, N, One, *Ds], T, F]: ...
    @overload
    def mean(
        self: FloatingBase[tuple[*Ds, M, N, K], T, F],
        axis: Literal[-3],
        keepdims: Literal[False] = False,
    ) -> Tensor[tuple[*Ds, N, K], T, F]: ...
    @overload
    def mean(
        self: FloatingBase[tuple[*Ds, M, N, K], T, F],
        axis: Literal[-3],
        keepdims: Literal[True],
    ) -> Tensor[tuple[*Ds, One, N, K], T, F]: ...
    @overload
    def mean(
        self: FloatingBase[S, T, F], axis: tuple[int, ...] | None = None, keepdims: bool = False
    ) -> Tensor[Any, T, F]: ...
    def mean(self, axis: Any = None, keepdims: bool = False) -> Tensor[Any, Any, Any]:
        """Return the arithmetic mean; NaN for no elements, with numpy's warning.

            sum(x) / n

        Shape: ``(*Ds, N) -> (*Ds)`` for ``axis=-1``.
        Derivative: ``1 / n``.

        Raises:
            DTypeError: if the dtype is not floating.

        >>> import tapetensor as tt
        >>> tt.from_numpy([1.0, 3.0], shape=(2,)).mean()
        Tensor(2., shape=(), dtype=float32, NoneTape)
        """
        check_floating("mean", self)
        return reduce(reductions.mean, self, axis, keepdims)

    @overload
    def logsumexp(
        self: FloatingBase[S, T, F], axis: None = None, keepdims: Literal[False] = False
    ) -> Tensor[tuple[()], T, F]: ...
    @overload
    def logsumexp(
        self: FloatingBase[tuple[*Ds, N], T, F],
        axis: Literal[-1],
        keepdims: Literal[False] = False,
    ) -> Tensor[tuple[*Ds], T, F]: ...
    @overload
    def logsumexp(
        self: FloatingBase[tuple[*Ds, N], T, F],
        axis: Literal[-1],
        keepdims: Literal[True],
    ) -> Tensor[tuple[*Ds, One], T, F]: ...
    @overload
    def logsumexp(
        self: FloatingBase[tuple[N, *Ds], T, F],
        axis: Literal[0],
        keepdims: Literal[False] = False,
    ) -> Tensor[tuple[*Ds], T, F]: ...
    @overload
    def logsumexp(
        self: FloatingBase[tuple[N, *Ds], T, F], axis: Literal[0], keepdims: Literal[True]
    ) -> Tensor[tuple[One, *Ds], T, F]: ...
    @overload
    def logsumexp(
        self: FloatingBase[tuple[B, N, *Ds], T, F],
        axis: Literal[1],
        keepdims: Literal[False] = False,
    ) -> Tensor[tuple[B, *Ds], T, F]: ...
    @overload
    def logsumexp(
        self: FloatingBase[tuple[B, N, *Ds], T, F],
        axis: Literal[1],
        keepdims: Literal[True],
    ) -> Tensor[tuple[B, One, *Ds], T, F]: ...
    @overload
    def logsumexp(
        self: FloatingBase[tuple[*Ds, M, N], T, F],
        axis: Literal[-2],
        keepdims: Literal[False] = False,
    ) -> Tensor[tuple[*Ds, N], T, F]: ...
    @overload
    def logsumexp(
        self: FloatingBase[tuple[*Ds, M, N], T, F],
        axis: Literal[-2],
        keepdims: Literal[True],
    ) -> Tensor[tuple[*Ds, One, N], T, F]: ...
    @overload
    def logsumexp(
        self: FloatingBase[tuple[B, M, N, *Ds], T, F],
        axis: Literal[2],
        keepdims: Literal[False] = False,
    ) -> Tensor[tuple[B, M, *Ds], T, F]: ...
    @overload
    def logsumexp(
        self: FloatingBase[tuple[B, M, N, *Ds], T, F],
        axis: Literal[2],
        keepdims: Literal[True],
    ) -> Tensor[tuple[B, M, One, *Ds], T, F]: ...
    @overload
    def logsumexp(
        self: FloatingBase[tuple[B, M, N, K, *Ds], T, F],
        axis: Literal[3],
        keepdims: Literal[False] = False,
    ) -> Tensor[tuple[B, M, N, *Ds], T, F]: ...
    @overload
    def logsumexp(
        self: FloatingBase[tuple[B, M, N, K, *Ds], T, F],
        axis: Literal[3],
        keepdims: Literal[True],
    ) -> Tensor[tuple[B, M, N, One, *Ds], T, F]: ...
    @overload
    def logsumexp(
        self: FloatingBase[tuple[*Ds, M, N, K], T, F],
        axis: Literal[-3],
        keepdims: Literal[False] = False,
    ) -> Tensor[tuple[*Ds, N, K], T, F]: ...
    @overload
    def logsumexp(
        self: FloatingBase[tuple[*Ds, M, N, K], T, F],
        axis: Literal[-3],
        keepdims: Literal[True],
    ) -> Tensor[tuple[*Ds, One, N, K], T, F]: ...
    @overload
    def logsumexp(
        self: FloatingBase[S, T, F], axis: tuple[int, ...] | None = None, keepdims: bool = False
    ) -> Tensor[Any, T, F]: ...
    def logsumexp(self, axis: Any = None, keepdims: bool = False) -> Tensor[Any, Any, Any]:
        """Return the logarithm of the sum of exponentials, without overflow.

            log(sum(exp(x)))

        Shape: ``(*Ds, N) -> (*Ds)`` for ``axis=-1``.
        Derivative: ``softmax(x)``.

        Raises:
            DTypeError: if the dtype is not floating.

        Source: Blanchard, Higham & Higham (2021), "Accurately computing the log-sum-exp and
            softmax functions".

        >>> import tapetensor as tt
        >>> tt.full((4,), 1000.0).logsumexp()
        Tensor(1001.3863, shape=(), dtype=float32, NoneTape)
        """
        check_floating("logsumexp", self)
        return reduce(reductions.logsumexp, self, axis, keepdims)
