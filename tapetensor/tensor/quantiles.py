"""The median and other quantiles."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, Never, overload

from tapetensor.arguments import as_number
from tapetensor.arguments.spellings import no_such_argument
from tapetensor.kernels import reductions
from tapetensor.tensor.base import FloatingBase, TensorBase, check_floating
from tapetensor.tensor.reductions import reduce
from tapetensor.tensor.signatures import average, same_signature
from tapetensor.typing import D, Ds, F, N, S, T

if TYPE_CHECKING:
    from tapetensor.tensor.tensor import Tensor


class Quantiles(TensorBase[S, T, D]):
    """Quantiles, which take `axis` and `keepdims` as the reductions do."""

    __slots__ = ()

    @same_signature(average)
    def median(
        self: TensorBase[S, T, D],
        axis: int | tuple[int, ...] | None = None,
        keepdims: bool = False,
        **elsewhere: Never,
    ) -> Tensor[Any, Any, Any]:
        """Return the middle element in order; of an even number the mean of the middle two.

        Shape: ``(*Ds, N) -> (*Ds)`` for ``axis=-1``.
        Derivative: 1 for the middle element, or 1/2 for the middle two; of equal ones for those
            that come first in order. A slice with a NaN gives NaN, and the derivative goes to it.

        Raises:
            ShapeError: if there is no element to choose from.
            DTypeError: if the dtype is not floating.

        Source: numpy, ``median``.

        >>> import tapetensor as tt
        >>> tt.from_numpy([9.0, 1.0, 3.0, 2.0], shape=(4,)).median()
        Tensor(2.5, shape=(), dtype=float32, NoneTape)
        """
        if elsewhere:
            raise no_such_argument("median", elsewhere)
        check_floating("median", self)
        return reduce(reductions.median, self, axis, keepdims)

    @overload
    def quantile(
        self: FloatingBase[S, T, F], q: float, axis: None = None, keepdims: Literal[False] = False
    ) -> Tensor[tuple[()], T, F]: ...
    @overload
    def quantile(
        self: FloatingBase[tuple[*Ds, N], T, F],
        q: float,
        axis: Literal[-1],
        keepdims: Literal[False] = False,
    ) -> Tensor[tuple[*Ds], T, F]: ...
    @overload
    def quantile(
        self: FloatingBase[tuple[N, *Ds], T, F],
        q: float,
        axis: Literal[0],
        keepdims: Literal[False] = False,
    ) -> Tensor[tuple[*Ds], T, F]: ...
    @overload
    def quantile(
        self: FloatingBase[S, T, F],
        q: float,
        axis: int | tuple[int, ...] | None = None,
        keepdims: bool = False,
    ) -> Tensor[Any, T, F]: ...
    def quantile(
        self,
        q: float,
        axis: int | tuple[int, ...] | None = None,
        keepdims: bool = False,
        **elsewhere: Never,
    ) -> Tensor[Any, Any, Any]:
        """Return the element below which a share of the elements is, by linear interpolation.

            sorted[i] * (1 - f) + sorted[i + 1] * f,  for i + f = q * (n - 1)

        Shape: ``(*Ds, N) -> (*Ds)`` for ``axis=-1``.
        Derivative: ``1 - f`` and ``f`` for the two elements; of equal ones for those that come
            first in order. A slice with a NaN gives NaN, and the derivative goes to it.

        Args:
            q: the share, from 0 (the smallest element) to 1 (the largest).
            axis: None for all axes, an int, a tuple of ints; negative counts from the back.
            keepdims: whether reduced axes stay with size 1.

        Raises:
            AxisError: if there is no such axis.
            ShapeError: if there is no element to choose from.
            DTypeError: if the dtype is not floating.
            ArgumentValueError: if `q` is outside of [0, 1].

        Source: numpy, ``quantile`` with ``method="linear"``.

        >>> import tapetensor as tt
        >>> tt.from_numpy([4.0, 1.0, 2.0], shape=(3,)).quantile(0.75)
        Tensor(3., shape=(), dtype=float32, NoneTape)
        """
        if elsewhere:
            raise no_such_argument("quantile", elsewhere)
        check_floating("quantile", self)
        share = as_number("quantile", "q", q, at_least=0, at_most=1)
        return reduce(reductions.quantile, self, axis, keepdims, (share,))
