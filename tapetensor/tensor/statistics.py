"""The mean and measures of spread."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Literal, Never, TypeAlias, overload

from tapetensor.arguments import as_number, normalize_axes
from tapetensor.errors import ArgumentValueError
from tapetensor.kernels import reductions
from tapetensor.tape import Kernel
from tapetensor.tensor.base import FloatingBase, TensorBase, check_floating
from tapetensor.tensor.reductions import reduce
from tapetensor.tensor.signatures import average, same_signature
from tapetensor.typing import B, D, Ds, F, K, M, N, S, T

if TYPE_CHECKING:
    from tapetensor.tensor.tensor import Tensor

One: TypeAlias = Literal[1]


class Statistics(TensorBase[S, T, D]):
    """The mean, the length, the variance and the standard deviation.

    All take `axis` and `keepdims` as the reductions do.
    """

    __slots__ = ()

    @same_signature(average)
    def mean(
        self: TensorBase[S, T, D],
        axis: int | tuple[int, ...] | None = None,
        keepdims: bool = False,
        **elsewhere: Never,
    ) -> Tensor[Any, Any, Any]:
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
        return reduce(reductions.mean, self, axis, keepdims, elsewhere)

    @same_signature(average)
    def norm(
        self: TensorBase[S, T, D],
        axis: int | tuple[int, ...] | None = None,
        keepdims: bool = False,
        **elsewhere: Never,
    ) -> Tensor[Any, Any, Any]:
        """Return the Euclidean length; 0 for no elements.

            sqrt(sum(x**2))

        Shape: ``(*Ds, N) -> (*Ds)`` for ``axis=-1``.
        Derivative: ``x / norm(x)``; 0 where all elements are 0, as derivatives of higher order are:
            that of a squared length is right for ``x.square().sum()``.

        Raises:
            DTypeError: if the dtype is not floating.

        Source: array API, ``vector_norm``.

        >>> import tapetensor as tt
        >>> tt.from_numpy([3.0, 4.0], shape=(2,)).norm()
        Tensor(5., shape=(), dtype=float32, NoneTape)
        """
        check_floating("norm", self)
        return reduce(reductions.norm, self, axis, keepdims, elsewhere)

    @overload
    def var(
        self: FloatingBase[S, T, F],
        axis: None = None,
        keepdims: Literal[False] = False,
        correction: float = 0,
    ) -> Tensor[tuple[()], T, F]: ...
    @overload
    def var(
        self: FloatingBase[tuple[*Ds, N], T, F],
        axis: Literal[-1],
        keepdims: Literal[False] = False,
        correction: float = 0,
    ) -> Tensor[tuple[*Ds], T, F]: ...
    @overload
    def var(
        self: FloatingBase[tuple[*Ds, N], T, F],
        axis: Literal[-1],
        keepdims: Literal[True],
        correction: float = 0,
    ) -> Tensor[tuple[*Ds, One], T, F]: ...
    @overload
    def var(
        self: FloatingBase[tuple[N, *Ds], T, F],
        axis: Literal[0],
        keepdims: Literal[False] = False,
        correction: float = 0,
    ) -> Tensor[tuple[*Ds], T, F]: ...
    @overload
    def var(
        self: FloatingBase[tuple[N, *Ds], T, F],
        axis: Literal[0],
        keepdims: Literal[True],
        correction: float = 0,
    ) -> Tensor[tuple[One, *Ds], T, F]: ...
    @overload
    def var(
        self: FloatingBase[tuple[B, N, *Ds], T, F],
        axis: Literal[1],
        keepdims: Literal[False] = False,
        correction: float = 0,
    ) -> Tensor[tuple[B, *Ds], T, F]: ...
    @overload
    def var(
        self: FloatingBase[tuple[B, N, *Ds], T, F],
        axis: Literal[1],
        keepdims: Literal[True],
        correction: float = 0,
    ) -> Tensor[tuple[B, One, *Ds], T, F]: ...
    @overload
    def var(
        self: FloatingBase[tuple[*Ds, M, N], T, F],
        axis: Literal[-2],
        keepdims: Literal[False] = False,
        correction: float = 0,
    ) -> Tensor[tuple[*Ds, N], T, F]: ...
    @overload
    def var(
        self: FloatingBase[tuple[*Ds, M, N], T, F],
        axis: Literal[-2],
        keepdims: Literal[True],
        correction: float = 0,
    ) -> Tensor[tuple[*Ds, One, N], T, F]: ...
    @overload
    def var(
        self: FloatingBase[tuple[B, M, N, *Ds], T, F],
        axis: Literal[2],
        keepdims: Literal[False] = False,
        correction: float = 0,
    ) -> Tensor[tuple[B, M, *Ds], T, F]: ...
    @overload
    def var(
        self: FloatingBase[tuple[B, M, N, *Ds], T, F],
        axis: Literal[2],
        keepdims: Literal[True],
        correction: float = 0,
    ) -> Tensor[tuple[B, M, One, *Ds], T, F]: ...
    @overload
    def var(
        self: FloatingBase[tuple[B, M, N, K, *Ds], T, F],
        axis: Literal[3],
        keepdims: Literal[False] = False,
        correction: float = 0,
    ) -> Tensor[tuple[B, M, N, *Ds], T, F]: ...
    @overload
    def var(
        self: FloatingBase[tuple[B, M, N, K, *Ds], T, F],
        axis: Literal[3],
        keepdims: Literal[True],
        correction: float = 0,
    ) -> Tensor[tuple[B, M, N, One, *Ds], T, F]: ...
    @overload
    def var(
        self: FloatingBase[tuple[*Ds, M, N, K], T, F],
        axis: Literal[-3],
        keepdims: Literal[False] = False,
        correction: float = 0,
    ) -> Tensor[tuple[*Ds, N, K], T, F]: ...
    @overload
    def var(
        self: FloatingBase[tuple[*Ds, M, N, K], T, F],
        axis: Literal[-3],
        keepdims: Literal[True],
        correction: float = 0,
    ) -> Tensor[tuple[*Ds, One, N, K], T, F]: ...
    @overload
    def var(
        self: FloatingBase[S, T, F],
        axis: tuple[int, ...] | None = None,
        keepdims: bool = False,
        correction: float = 0,
    ) -> Tensor[Any, T, F]: ...
    def var(
        self,
        axis: int | tuple[int, ...] | None = None,
        keepdims: bool = False,
        correction: float = 0,
        **elsewhere: Never,
    ) -> Tensor[Any, Any, Any]:
        """Return the variance.

            sum((x - mean(x))**2) / (n - correction)

        Shape: ``(*Ds, N) -> (*Ds)`` for ``axis=-1``.
        Derivative: ``2 * (x - mean(x)) / (n - correction)``.

        Args:
            axis: the axes to reduce.
            keepdims: whether reduced axes stay with size 1.
            correction: 0 for the variance of a population, 1 for the unbiased estimate from a
                sample; >= 0 and less than the number of elements.

        Raises:
            DTypeError: if the dtype is not floating.
            ArgumentValueError: if `correction` leaves nothing to divide by.

        >>> import tapetensor as tt
        >>> tt.from_numpy([1.0, 3.0], shape=(2,)).var()
        Tensor(1., shape=(), dtype=float32, NoneTape)
        """
        return _spread_measure(reductions.var, self, axis, keepdims, correction, elsewhere)

    @overload
    def std(
        self: FloatingBase[S, T, F],
        axis: None = None,
        keepdims: Literal[False] = False,
        correction: float = 0,
        eps: float = 0,
    ) -> Tensor[tuple[()], T, F]: ...
    @overload
    def std(
        self: FloatingBase[tuple[*Ds, N], T, F],
        axis: Literal[-1],
        keepdims: Literal[False] = False,
        correction: float = 0,
        eps: float = 0,
    ) -> Tensor[tuple[*Ds], T, F]: ...
    @overload
    def std(
        self: FloatingBase[tuple[*Ds, N], T, F],
        axis: Literal[-1],
        keepdims: Literal[True],
        correction: float = 0,
        eps: float = 0,
    ) -> Tensor[tuple[*Ds, One], T, F]: ...
    @overload
    def std(
        self: FloatingBase[tuple[N, *Ds], T, F],
        axis: Literal[0],
        keepdims: Literal[False] = False,
        correction: float = 0,
        eps: float = 0,
    ) -> Tensor[tuple[*Ds], T, F]: ...
    @overload
    def std(
        self: FloatingBase[tuple[N, *Ds], T, F],
        axis: Literal[0],
        keepdims: Literal[True],
        correction: float = 0,
        eps: float = 0,
    ) -> Tensor[tuple[One, *Ds], T, F]: ...
    @overload
    def std(
        self: FloatingBase[tuple[B, N, *Ds], T, F],
        axis: Literal[1],
        keepdims: Literal[False] = False,
        correction: float = 0,
        eps: float = 0,
    ) -> Tensor[tuple[B, *Ds], T, F]: ...
    @overload
    def std(
        self: FloatingBase[tuple[B, N, *Ds], T, F],
        axis: Literal[1],
        keepdims: Literal[True],
        correction: float = 0,
        eps: float = 0,
    ) -> Tensor[tuple[B, One, *Ds], T, F]: ...
    @overload
    def std(
        self: FloatingBase[tuple[*Ds, M, N], T, F],
        axis: Literal[-2],
        keepdims: Literal[False] = False,
        correction: float = 0,
        eps: float = 0,
    ) -> Tensor[tuple[*Ds, N], T, F]: ...
    @overload
    def std(
        self: FloatingBase[tuple[*Ds, M, N], T, F],
        axis: Literal[-2],
        keepdims: Literal[True],
        correction: float = 0,
        eps: float = 0,
    ) -> Tensor[tuple[*Ds, One, N], T, F]: ...
    @overload
    def std(
        self: FloatingBase[tuple[B, M, N, *Ds], T, F],
        axis: Literal[2],
        keepdims: Literal[False] = False,
        correction: float = 0,
        eps: float = 0,
    ) -> Tensor[tuple[B, M, *Ds], T, F]: ...
    @overload
    def std(
        self: FloatingBase[tuple[B, M, N, *Ds], T, F],
        axis: Literal[2],
        keepdims: Literal[True],
        correction: float = 0,
        eps: float = 0,
    ) -> Tensor[tuple[B, M, One, *Ds], T, F]: ...
    @overload
    def std(
        self: FloatingBase[tuple[B, M, N, K, *Ds], T, F],
        axis: Literal[3],
        keepdims: Literal[False] = False,
        correction: float = 0,
        eps: float = 0,
    ) -> Tensor[tuple[B, M, N, *Ds], T, F]: ...
    @overload
    def std(
        self: FloatingBase[tuple[B, M, N, K, *Ds], T, F],
        axis: Literal[3],
        keepdims: Literal[True],
        correction: float = 0,
        eps: float = 0,
    ) -> Tensor[tuple[B, M, N, One, *Ds], T, F]: ...
    @overload
    def std(
        self: FloatingBase[tuple[*Ds, M, N, K], T, F],
        axis: Literal[-3],
        keepdims: Literal[False] = False,
        correction: float = 0,
        eps: float = 0,
    ) -> Tensor[tuple[*Ds, N, K], T, F]: ...
    @overload
    def std(
        self: FloatingBase[tuple[*Ds, M, N, K], T, F],
        axis: Literal[-3],
        keepdims: Literal[True],
        correction: float = 0,
        eps: float = 0,
    ) -> Tensor[tuple[*Ds, One, N, K], T, F]: ...
    @overload
    def std(
        self: FloatingBase[S, T, F],
        axis: tuple[int, ...] | None = None,
        keepdims: bool = False,
        correction: float = 0,
        eps: float = 0,
    ) -> Tensor[Any, T, F]: ...
    def std(
        self,
        axis: int | tuple[int, ...] | None = None,
        keepdims: bool = False,
        correction: float = 0,
        eps: float = 0,
        **elsewhere: Never,
    ) -> Tensor[Any, Any, Any]:
        """Return the standard deviation.

            sqrt(sum((x - mean(x))**2) / (n - correction) + eps)

        Shape: ``(*Ds, N) -> (*Ds)`` for ``axis=-1``.
        Derivative: ``(x - mean(x)) / ((n - correction) * std(x))``; 0 where all are equal.

        Args:
            axis: the axes to reduce.
            keepdims: whether reduced axes stay with size 1.
            correction: as for `var`.
            eps: added under the root, >= 0.

        Raises:
            DTypeError: if the dtype is not floating.
            ArgumentValueError: if `correction` leaves nothing to divide by, or `eps` is negative.

        >>> import tapetensor as tt
        >>> tt.from_numpy([1.0, 3.0], shape=(2,)).std()
        Tensor(1., shape=(), dtype=float32, NoneTape)
        """
        under_root = as_number("std", "eps", eps, at_least=0)
        return _spread_measure(
            reductions.std, self, axis, keepdims, correction, elsewhere, under_root
        )


def _spread_measure(
    kernel: Kernel,
    x: TensorBase[Any, Any, Any],
    axis: object,
    keepdims: object,
    correction: float,
    elsewhere: dict[str, Never],
    *options: float,
) -> Tensor[Any, Any, Any]:
    op = kernel.__name__
    check_floating(op, x)
    axes = normalize_axes(op, axis, x._array.shape)
    count = math.prod([x._array.shape[one] for one in axes])
    number = as_number(op, "correction", correction)
    if not 0 <= number < count:
        raise ArgumentValueError(
            f"{op}: correction must be >= 0 and less than the {count} elements that are reduced, "
            f"got {correction!r}"
        )
    return reduce(kernel, x, axes, keepdims, elsewhere, (number, *options))
