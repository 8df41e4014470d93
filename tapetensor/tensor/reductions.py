"""Reductions over axes, quantiles among them; softmax, and normalization."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal, Never, overload

import numpy as np

from tapetensor.arguments import as_flag, as_number, normalize_axes, normalize_axis
from tapetensor.arguments.spellings import no_such_argument
from tapetensor.arrays.array import Array
from tapetensor.arrays.libraries import to_numpy
from tapetensor.arrays.stand_ins import run_check
from tapetensor.errors import (
    ArgumentValueError,
    DTypeError,
    ShapeError,
    TapeTensorError,
    cut_traceback,
)
from tapetensor.kernels import normalization, reductions
from tapetensor.tape import Kernel, NoneTape
from tapetensor.tape.history import next_id
from tapetensor.tensor.apply import apply
from tapetensor.tensor.base import FloatingBase, TensorBase, check_floating, rewrap
from tapetensor.tensor.signatures import average, position, reduction, same_signature
from tapetensor.typing import D, Ds, F, N, S, T

if TYPE_CHECKING:
    from tapetensor.tensor.tensor import Tensor


class Reductions(TensorBase[S, T, D]):
    """Reductions, quantiles among them.

    All take `axis` (None for all axes, an int, a tuple of ints; negative counts from the back) and
    `keepdims` (leave a reduced axis in the shape with size 1), and raise `AxisError` for an axis
    that is not there.
    """

    __slots__ = ()

    @same_signature(reduction)
    def sum(
        self: TensorBase[S, T, D],
        axis: int | tuple[int, ...] | None = None,
        keepdims: bool = False,
        **elsewhere: Never,
    ) -> Tensor[Any, Any, Any]:
        """Return the sum of the elements; 0 for none.

        In the dtype of `self`; numpy's sum of small integers is int64.

        Shape: ``(*Ds, N) -> (*Ds)`` for ``axis=-1``.
        Derivative: 1.

        Raises:
            DTypeError: for a bool tensor; convert it first.
            ArgumentValueError: if a sum of integers leaves the dtype.

        >>> import tapetensor as tt
        >>> tt.ones((2, 3)).sum(axis=-1)
        Tensor([3., 3.], shape=(2,), dtype=float32, NoneTape)
        """
        if self._array.dtype.kind == "b":
            raise DTypeError("sum: not defined for dtype bool; count with x.astype(np.int64).sum()")
        check_total_fits("sum", np.sum, self, axis)
        return reduce(reductions.sum, self, axis, keepdims, elsewhere)

    @same_signature(reduction)
    def prod(
        self: TensorBase[S, T, D],
        axis: int | tuple[int, ...] | None = None,
        keepdims: bool = False,
        **elsewhere: Never,
    ) -> Tensor[Any, Any, Any]:
        """Return the product of the elements; 1 for none.

        In the dtype of `self`; numpy's product of small integers is int64.

        Shape: ``(*Ds, N) -> (*Ds)`` for ``axis=-1``.
        Derivative: the product of the other elements, also where there are zeros.

        Raises:
            DTypeError: for a bool tensor; convert it first.
            ArgumentValueError: if a product of integers leaves the dtype.

        Source: array API, ``prod``.

        >>> import tapetensor as tt
        >>> x = tt.from_numpy([2.0, 0.0, 5.0], shape=(3,))
        >>> x.trace().prod().backward()[x]
        Tensor([ 0., 10.,  0.], shape=(3,), dtype=float32, NoneTape)
        """
        if self._array.dtype.kind == "b":
            raise DTypeError("prod: not defined for dtype bool; write x.astype(np.int64).prod()")
        check_total_fits("prod", np.prod, self, axis)
        return reduce(reductions.prod, self, axis, keepdims, elsewhere)

    @same_signature(reduction)
    def max(
        self: TensorBase[S, T, D],
        axis: int | tuple[int, ...] | None = None,
        keepdims: bool = False,
        **elsewhere: Never,
    ) -> Tensor[Any, Any, Any]:
        """Return the largest element.

        Shape: ``(*Ds, N) -> (*Ds)`` for ``axis=-1``.
        Derivative: 1 for the largest, 0 for others; ties share it equally.

        Raises:
            ShapeError: if there is no element to choose from.

        >>> import tapetensor as tt
        >>> tt.from_numpy([1.0, 3.0], shape=(2,)).max()
        Tensor(3., shape=(), dtype=float32, NoneTape)
        """
        return reduce(reductions.max, self, axis, keepdims, elsewhere)

    @same_signature(reduction)
    def min(
        self: TensorBase[S, T, D],
        axis: int | tuple[int, ...] | None = None,
        keepdims: bool = False,
        **elsewhere: Never,
    ) -> Tensor[Any, Any, Any]:
        """Return the smallest element.

        Shape: ``(*Ds, N) -> (*Ds)`` for ``axis=-1``.
        Derivative: 1 for the smallest, 0 for others; ties share it equally.

        Raises:
            ShapeError: if there is no element to choose from.

        >>> import tapetensor as tt
        >>> tt.from_numpy([1.0, 3.0], shape=(2,)).min()
        Tensor(1., shape=(), dtype=float32, NoneTape)
        """
        return reduce(reductions.min, self, axis, keepdims, elsewhere)

    @same_signature(position)
    def argmax(
        self: Reductions[Any, Any, Any],
        axis: int | tuple[int, ...] | None = None,
        **elsewhere: Never,
    ) -> Tensor[Any, NoneTape, np.int64]:
        """Return the position of the first largest element, of all or along one axis.

        Without an axis it is the position in ``x.flatten()``, as numpy's and PyTorch's; the class
        of every row of logits is ``logits.argmax(axis=-1)``. NaN counts as larger than numbers.

        Shape: ``S -> ()``; ``(*Ds, N) -> (*Ds)`` for ``axis=-1``.
        Derivative: none.

        Args:
            axis: None for all elements, or an int; negative counts from the back.

        Raises:
            AxisError: if there is no such axis.
            ShapeError: if there is no element to choose from.

        >>> import tapetensor as tt
        >>> tt.from_numpy([[1.0, 3.0]], shape=(1, 2)).argmax(axis=-1)
        Tensor([1], shape=(1,), dtype=int64, NoneTape)
        """
        return _position("argmax", np.argmax, self, axis, elsewhere)

    @same_signature(position)
    def argmin(
        self: Reductions[Any, Any, Any],
        axis: int | tuple[int, ...] | None = None,
        **elsewhere: Never,
    ) -> Tensor[Any, NoneTape, np.int64]:
        """Return the position of the first smallest element, of all or along one axis.

        Without an axis it is the position in ``x.flatten()``. NaN counts as smaller than all
        numbers.

        Shape: ``S -> ()``; ``(*Ds, N) -> (*Ds)`` for ``axis=-1``.
        Derivative: none.

        Args:
            axis: None for all elements, or an int; negative counts from the back.

        Raises:
            AxisError: if there is no such axis.
            ShapeError: if there is no element to choose from.

        >>> import tapetensor as tt
        >>> tt.from_numpy([[1.0, 3.0]], shape=(1, 2)).argmin()
        Tensor(0, shape=(), dtype=int64, NoneTape)
        """
        return _position("argmin", np.argmin, self, axis, elsewhere)

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
        check_floating("median", self)
        return reduce(reductions.median, self, axis, keepdims, elsewhere)

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
        check_floating("quantile", self)
        share = as_number("quantile", "q", q, at_least=0, at_most=1)
        return reduce(reductions.quantile, self, axis, keepdims, elsewhere, (share,))


def _position(
    op: str,
    search: Callable[..., Any],
    x: TensorBase[Any, Any, Any],
    axis: object,
    elsewhere: dict[str, Never],
) -> Tensor[Any, NoneTape, np.int64]:
    if elsewhere:
        raise no_such_argument(op, elsewhere)
    shape = x._array.shape
    along = None if axis is None else normalize_axis(op, axis, shape)
    if (x._array.size if along is None else shape[along]) == 0:
        what = "a tensor" if along is None else f"axis {axis}"
        raise ShapeError(f"{op}: {what} of shape {shape} is empty")
    positions = search(x._array, axis=along).astype(np.int64)
    result: Tensor[Any, NoneTape, np.int64] = rewrap(x, positions, next_id(), None)
    return result


def check_total_fits(
    op: str,
    total: Callable[..., Any],
    x: TensorBase[Any, Any, Any],
    axis: int | tuple[int, ...] | None,
) -> None:
    """Refuse a sum or product that the integer dtype does not hold: it would wrap in silence."""
    if x._array.dtype.kind in "iu":
        axes = normalize_axes(op, axis, x._array.shape)
        # The cumulative functions of numpy take one axis, and no tuple.
        one = axes[0] if axes and len(axes) == 1 else axes
        run_check(_refuse_overflow, x._array, op, total, one)


def _refuse_overflow(values: Array, op: str, total: Callable[..., Any], axes: Any) -> None:
    limits, array = np.iinfo(values.dtype), to_numpy(values)
    low, high = limits.min, limits.max
    # float64 is exact as far as 32 bits go; what lies beyond need not be. NaN is an infinity times
    # 0, which is 0 in integers.
    with np.errstate(all="ignore"):
        totals = np.asarray(total(array, axis=axes, dtype=np.float64))
    doubt = 1e-3 if limits.bits == 64 else 0.0
    outside = totals[(totals < low * (1 + doubt)) | (totals > high * (1 + doubt))]
    if doubt and not outside.size and np.any(np.absolute(totals) > high * (1 - doubt)):
        # Next to the limits Python's integers know.
        totals = np.asarray(total(array.astype(object), axis=axes))
        outside = totals[(totals < low) | (totals > high)]
    if outside.size:
        wide = "np.float64" if doubt else "np.int64"
        raise ArgumentValueError(
            f"{op}: {values.dtype} does not hold {float(outside[0]):.15g}; write "
            f"x.astype({wide}).{op}(...)"
        )


def reduce(
    kernel: Kernel,
    x: TensorBase[Any, Any, Any],
    axis: object,
    keepdims: object,
    elsewhere: dict[str, Never],
    options: tuple[Any, ...] = (),
) -> Tensor[Any, Any, Any]:
    """Run a reduction; what it is given beside its arguments is called otherwise elsewhere."""
    try:
        if elsewhere:
            raise no_such_argument(kernel.__name__, elsewhere)
        axes = normalize_axes(kernel.__name__, axis, x._array.shape)
        as_flag(kernel.__name__, "keepdims", keepdims)
        return apply(kernel, (x,), (axes, keepdims, *options))
    except TapeTensorError as error:
        cut_traceback(error)
        raise


class Softmax(TensorBase[S, T, D]):
    """Softmax, logsumexp and normalization."""

    __slots__ = ()

    def softmax(self: FloatingBase[S, T, F], axis: int = -1, **elsewhere: Never) -> Tensor[S, T, F]:
        """Return exponentials divided by their sum along one axis.

            exp(x) / sum(exp(x))

        Shape: that of `self`.
        Derivative: ``y * (g - sum(g * y))`` for the cotangent ``g``.

        Args:
            axis: the axis that sums to 1.

        Raises:
            AxisError: if there is no such axis.
            DTypeError: if the dtype is not floating.

        >>> import tapetensor as tt
        >>> tt.zeros((4,)).softmax()
        Tensor([0.25, 0.25, 0.25, 0.25], shape=(4,), dtype=float32, NoneTape)
        """
        if elsewhere:
            raise no_such_argument("softmax", elsewhere)
        check_floating("softmax", self)
        position = normalize_axis("softmax", axis, self._array.shape)
        return apply(reductions.softmax, (self,), (position,))

    def log_softmax(
        self: FloatingBase[S, T, F], axis: int = -1, **elsewhere: Never
    ) -> Tensor[S, T, F]:
        """Return the logarithm of the softmax along one axis, without overflow.

            x - log(sum(exp(x)))

        Shape: that of `self`.
        Derivative: ``g - softmax(x) * sum(g)`` for the cotangent ``g``.

        Args:
            axis: the axis that the softmax sums over.

        Raises:
            AxisError: if there is no such axis.
            DTypeError: if the dtype is not floating.

        >>> import tapetensor as tt
        >>> tt.zeros((1,)).log_softmax()
        Tensor([0.], shape=(1,), dtype=float32, NoneTape)
        """
        if elsewhere:
            raise no_such_argument("log_softmax", elsewhere)
        check_floating("log_softmax", self)
        position = normalize_axis("log_softmax", axis, self._array.shape)
        return apply(reductions.log_softmax, (self,), (position,))

    @same_signature(average)
    def logsumexp(
        self: TensorBase[S, T, D],
        axis: int | tuple[int, ...] | None = None,
        keepdims: bool = False,
        **elsewhere: Never,
    ) -> Tensor[Any, Any, Any]:
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
        return reduce(reductions.logsumexp, self, axis, keepdims, elsewhere)

    def normalize(
        self: FloatingBase[S, T, F], axis: int = -1, eps: float = 1e-5
    ) -> Tensor[S, T, F]:
        """Return the elements with mean 0 and variance 1 along one axis.

            (x - mean(x)) / sqrt(var(x) + eps)

        Shape: that of `self`.
        Derivative: ``(g - mean(g) - y * mean(g * y)) / sqrt(var(x) + eps)`` for the cotangent
            ``g``.

        Args:
            axis: the axis whose mean and (population) variance are taken.
            eps: added to the variance, >= 0.

        Raises:
            AxisError: if there is no such axis.
            ArgumentValueError: if `eps` is negative or not finite.
            DTypeError: if the dtype is not floating.

        >>> import tapetensor as tt
        >>> tt.from_numpy([1.0, 3.0], shape=(2,)).normalize(eps=0.0)
        Tensor([-1.,  1.], shape=(2,), dtype=float32, NoneTape)
        """
        check_floating("normalize", self)
        added = as_number("normalize", "eps", eps, at_least=0)
        options = (normalize_axis("normalize", axis, self._array.shape), added)
        return apply(normalization.normalize, (self,), options)
