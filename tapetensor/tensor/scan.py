"""Along one axis: the order of the elements, running totals, and recurrences."""

from __future__ import annotations

# Where an operand fits in more than one way (a dim may be Any) the overloads overlap; they give the
# same shape there, and the first that fits is taken.
# mypy: disable-error-code="overload-overlap"
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, Never, overload

import numpy as np

from tapetensor.arguments import as_flag, as_size, broadcasts_to, normalize_axis
from tapetensor.arguments.spellings import no_such_argument
from tapetensor.errors import refusal
from tapetensor.kernels import indexing, scan
from tapetensor.kernels.numerics.choice import order_of
from tapetensor.rules.broadcasting import check_coefficient, check_scanned
from tapetensor.rules.dims import Size, sized
from tapetensor.rules.indexing import check_count
from tapetensor.tape import Kernel, NoneTape
from tapetensor.tape.history import next_id
from tapetensor.tensor.apply import apply
from tapetensor.tensor.base import (
    FloatingBase,
    NumberBase,
    TensorBase,
    check_floating,
    check_numeric,
    check_tensor,
    rewrap,
)
from tapetensor.tensor.reductions import check_total_fits
from tapetensor.typing import B, D, Ds, F, K, M, N, P, R, S, T

if TYPE_CHECKING:
    from tapetensor.tensor.tensor import Joins, Tensor


class Order(TensorBase[S, T, D]):
    """The order of the elements: NaN is larger than all numbers, and equal ones keep theirs."""

    __slots__ = ()

    def argsort(
        self: Order[tuple[*Ds, N], Any, D],
        axis: int = -1,
        *,
        descending: bool = False,
        **elsewhere: Never,
    ) -> Tensor[tuple[*Ds, N], NoneTape, np.int64]:
        """Return the positions that sort the elements along one axis; equal ones keep their order.

        The sorted elements are `sort`, the k largest `topk`; another tensor goes into the same
        order by ``y.take_along_axis(x.argsort(axis), axis)``. NaN is larger than all numbers.

        Shape: that of `self`.
        Derivative: none. `take_along_axis` has that of the sorted elements.

        Args:
            axis: the axis to sort along.
            descending: whether the largest comes first.

        Raises:
            AxisError: if there is no such axis.
            ArgumentTypeError: if `descending` is no bool.

        >>> import tapetensor as tt
        >>> tt.from_numpy([3.0, 1.0, 2.0], shape=(3,)).argsort()
        Tensor([1, 2, 0], shape=(3,), dtype=int64, NoneTape)
        """
        if elsewhere:
            raise no_such_argument("argsort", elsewhere)
        position = normalize_axis("argsort", axis, self._array.shape)
        is_descending = as_flag("argsort", "descending", descending)
        order = order_of(self._array, position, is_descending).astype(np.int64)
        result: Tensor[Any, NoneTape, np.int64] = rewrap(self, order, next_id(), None)
        return result

    def sort(
        self: Order[tuple[*Ds, N], T, D],
        axis: int = -1,
        *,
        descending: bool = False,
        **elsewhere: Never,
    ) -> Tensor[tuple[*Ds, N], T, D]:
        """Return the elements in order along one axis; NaN is larger than all numbers.

        Shape: that of `self`.
        Derivative: each element gets the cotangent of the place that it goes to; equal elements
            keep their order, so the first of them gets that of the first place.

        Args:
            axis: the axis to sort along.
            descending: whether the largest comes first.

        Raises:
            AxisError: if there is no such axis.
            ArgumentTypeError: if `descending` is no bool.

        Source: array API, ``sort``.

        >>> import tapetensor as tt
        >>> tt.from_numpy([3.0, 1.0, 2.0], shape=(3,)).sort(descending=True)
        Tensor([3., 2., 1.], shape=(3,), dtype=float32, NoneTape)
        """
        if elsewhere:
            raise no_such_argument("sort", elsewhere)
        position = normalize_axis("sort", axis, self._array.shape)
        options = (position, as_flag("sort", "descending", descending))
        return apply(indexing.sort, (self,), options)

    @overload
    def topk(
        self: Order[tuple[*Ds, N], T, D], k: K, axis: Literal[-1] = -1, *, largest: bool = True
    ) -> tuple[Tensor[tuple[*Ds, K], T, D], Tensor[tuple[*Ds, K], NoneTape, np.int64]]: ...
    @overload
    def topk(
        self: Order[tuple[N, *Ds], T, D], k: K, axis: Literal[0], *, largest: bool = True
    ) -> tuple[Tensor[tuple[K, *Ds], T, D], Tensor[tuple[K, *Ds], NoneTape, np.int64]]: ...
    @overload
    def topk(
        self: Order[tuple[B, N, *Ds], T, D], k: K, axis: Literal[1], *, largest: bool = True
    ) -> tuple[Tensor[tuple[B, K, *Ds], T, D], Tensor[tuple[B, K, *Ds], NoneTape, np.int64]]: ...
    @overload
    def topk(
        self: Order[tuple[*Ds, N, M], T, D], k: K, axis: Literal[-2], *, largest: bool = True
    ) -> tuple[Tensor[tuple[*Ds, K, M], T, D], Tensor[tuple[*Ds, K, M], NoneTape, np.int64]]: ...
    @overload
    def topk(
        self: Order[tuple[B, M, P, *Ds], T, D],
        k: int,
        axis: Literal[2, 3, -3],
        *,
        largest: bool = True,
    ) -> tuple[Tensor[Any, T, D], Tensor[Any, NoneTape, np.int64]]: ...
    def topk(
        self, k: int, axis: int = -1, *, largest: bool = True, **elsewhere: Never
    ) -> tuple[Tensor[Any, Any, Any], Tensor[Any, NoneTape, np.int64]]:
        """Return the k largest elements along one axis, the largest first, and their positions.

        Of equal ones that which comes first; NaN is larger than all numbers.

        Shape: ``(*Ds, N) -> (*Ds, k), (*Ds, k)`` for ``axis=-1``.
        Derivative: the cotangent for the elements returned, 0 for the others.

        Args:
            k: how many, from 0 to the size of the axis.
            axis: the axis to choose along.
            largest: False for the k smallest, the smallest first.

        Raises:
            AxisError: if there is no such axis.
            ShapeError: if the axis has fewer elements than `k`.
            ArgumentTypeError: if `k` is no int or `largest` no bool.
            ArgumentValueError: if `k` is negative.

        >>> import tapetensor as tt
        >>> values, positions = tt.from_numpy([3.0, 1.0, 5.0], shape=(3,)).topk(2)
        >>> values
        Tensor([5., 3.], shape=(2,), dtype=float32, NoneTape)
        >>> positions
        Tensor([2, 0], shape=(2,), dtype=int64, NoneTape)
        """
        if elsewhere:
            raise no_such_argument("topk", elsewhere)
        shape = self._array.shape
        position = normalize_axis("topk", axis, shape)
        count = as_size("topk", "k", k)
        if count > shape[position]:
            asked = Size.of(count)
            raise refusal(lambda: check_count("topk", sized(shape), position, asked))
        order = order_of(self._array, position, as_flag("topk", "largest", largest))
        first = order[(slice(None),) * position + (slice(count),)].astype(np.int64)
        indices: Tensor[Any, NoneTape, np.int64] = rewrap(self, first, next_id(), None)
        values = apply(indexing.topk, (self, indices), (position,), keeps_dtype=False)
        return values, indices


class Scans(TensorBase[S, T, D]):
    """Running totals, products and extremes, and differences, along one axis."""

    __slots__ = ()

    @overload
    def diff(
        self: NumberBase[tuple[*Ds, Any], T, R], axis: Literal[-1] = -1
    ) -> Tensor[tuple[*Ds, Any], T, R]: ...
    @overload
    def diff(self: NumberBase[S, T, R], axis: int) -> Tensor[Any, T, R]: ...
    def diff(self, axis: int = -1) -> Tensor[Any, Any, Any]:
        """Return the differences of neighbours along one axis.

            y[t] = x[t + 1] - x[t]

        Shape: the axis is shorter by one; of no elements there are none.
        Derivative: an element gets the cotangent of the difference that it ends, less that of the
            one that it begins.

        Args:
            axis: the axis to look along.

        Raises:
            AxisError: if there is no such axis.
            DTypeError: for a bool tensor.

        Source: array API, ``diff``.

        >>> import tapetensor as tt
        >>> tt.from_numpy([1.0, 3.0, 2.0], shape=(3,)).diff()
        Tensor([ 2., -1.], shape=(2,), dtype=float32, NoneTape)
        """
        return _along(scan.diff, self, axis)

    def cumulative_sum(self: NumberBase[S, T, R], axis: int) -> Tensor[S, T, R]:
        """Return the sums of the elements so far along one axis.

            y[t] = x[0] + ... + x[t]

        Shape: that of `self`.
        Derivative: the sum of the cotangents from ``t`` on.

        Args:
            axis: the axis to add along.

        Raises:
            AxisError: if there is no such axis.
            DTypeError: for a bool tensor.
            ArgumentValueError: if a sum of integers leaves the dtype.

        >>> import tapetensor as tt
        >>> tt.arange(4).cumulative_sum(axis=0)
        Tensor([0, 1, 3, 6], shape=(4,), dtype=int64, NoneTape)
        """
        check_numeric("cumulative_sum", self)
        position = normalize_axis("cumulative_sum", axis, self._array.shape)
        check_total_fits("cumulative_sum", np.cumsum, self, position)
        return apply(scan.cumulative_sum, (self,), (position,))

    def cumulative_prod(self: NumberBase[S, T, R], axis: int) -> Tensor[S, T, R]:
        """Return the products of the elements so far along one axis.

            y[t] = x[0] * ... * x[t]

        Shape: that of `self`.
        Derivative: by each factor the product of the others, summed over the products that it is
            in; also where there are zeros.

        Args:
            axis: the axis to multiply along.

        Raises:
            AxisError: if there is no such axis.
            DTypeError: for a bool tensor.
            ArgumentValueError: if a product of integers leaves the dtype.

        Source: array API, ``cumulative_prod``.

        >>> import tapetensor as tt
        >>> tt.from_numpy([1.0, 2.0, 3.0], shape=(3,)).cumulative_prod(axis=0)
        Tensor([1., 2., 6.], shape=(3,), dtype=float32, NoneTape)
        """
        check_numeric("cumulative_prod", self)
        position = normalize_axis("cumulative_prod", axis, self._array.shape)
        check_total_fits("cumulative_prod", np.cumprod, self, position)
        return apply(scan.cumulative_prod, (self,), (position,))

    def cumulative_max(self: NumberBase[S, T, R], axis: int) -> Tensor[S, T, R]:
        """Return the largest of the elements so far along one axis.

            y[t] = max(x[0], ..., x[t])

        Shape: that of `self`.
        Derivative: an element gets the cotangents of the places where it is the largest so far; of
            equal ones the last. NaN is the largest from its place on.

        Args:
            axis: the axis to look along.

        Raises:
            AxisError: if there is no such axis.
            DTypeError: for a bool tensor.

        >>> import tapetensor as tt
        >>> tt.from_numpy([1.0, 3.0, 2.0], shape=(3,)).cumulative_max(axis=0)
        Tensor([1., 3., 3.], shape=(3,), dtype=float32, NoneTape)
        """
        return _along(scan.cumulative_max, self, axis)

    def cumulative_min(self: NumberBase[S, T, R], axis: int) -> Tensor[S, T, R]:
        """Return the smallest of the elements so far along one axis.

            y[t] = min(x[0], ..., x[t])

        Shape: that of `self`.
        Derivative: an element gets the cotangents of the places where it is the smallest so far; of
            equal ones the last. NaN is the smallest from its place on.

        Args:
            axis: the axis to look along.

        Raises:
            AxisError: if there is no such axis.
            DTypeError: for a bool tensor.

        >>> import tapetensor as tt
        >>> tt.from_numpy([2.0, 1.0, 3.0], shape=(3,)).cumulative_min(axis=0)
        Tensor([2., 1., 1.], shape=(3,), dtype=float32, NoneTape)
        """
        return _along(scan.cumulative_min, self, axis)

    def cumulative_logsumexp(self: FloatingBase[S, T, F], axis: int) -> Tensor[S, T, F]:
        """Return the logarithms of the sums of exponentials so far along one axis.

            y[t] = ln(e**x[0] + ... + e**x[t])

        No exponential leaves the range of the dtype.

        Shape: that of `self`.
        Derivative: ``e**(x[s] - y[t])`` by ``x[s]``, summed over the ``t`` from ``s`` on; NaN for
            several minus infinities at the beginning.

        Args:
            axis: the axis to add along.

        Raises:
            AxisError: if there is no such axis.
            DTypeError: if the dtype is not floating.

        >>> import tapetensor as tt
        >>> tt.zeros((2,)).cumulative_logsumexp(axis=0)
        Tensor([0.       , 0.6931472], shape=(2,), dtype=float32, NoneTape)
        """
        check_floating("cumulative_logsumexp", self)
        return _along(scan.cumulative_logsumexp, self, axis)


def _along(kernel: Kernel, x: TensorBase[Any, Any, Any], axis: int) -> Tensor[Any, Any, Any]:
    op = kernel.__name__
    check_numeric(op, x)
    return apply(kernel, (x,), (normalize_axis(op, axis, x._array.shape),))


@overload
def ssm_scan(
    x: Tensor[tuple[*Ds, M, N], T, R],
    a: Joins[tuple[*Ds, M, N], T, R] | Joins[tuple[N], T, R],
    b: Joins[tuple[*Ds, M, N], T, R] | Joins[tuple[N], T, R],
    /,
) -> Tensor[tuple[*Ds, M, N], T, R]: ...
@overload
def ssm_scan(
    x: Tensor[tuple[*Ds, M, N], NoneTape, R],
    a: Tensor[tuple[*Ds, M, N], T, R] | Tensor[tuple[N], T, R],
    b: Joins[tuple[*Ds, M, N], T, R] | Joins[tuple[N], T, R],
    /,
) -> Tensor[tuple[*Ds, M, N], T, R]: ...
@overload
def ssm_scan(
    x: Tensor[tuple[*Ds, M, N], NoneTape, R],
    a: Tensor[tuple[*Ds, M, N], NoneTape, R] | Tensor[tuple[N], NoneTape, R],
    b: Tensor[tuple[*Ds, M, N], T, R] | Tensor[tuple[N], T, R],
    /,
) -> Tensor[tuple[*Ds, M, N], T, R]: ...
def ssm_scan(
    x: Tensor[Any, Any, Any], a: Tensor[Any, Any, Any], b: Tensor[Any, Any, Any], /
) -> Tensor[Any, Any, Any]:
    """Run a linear recurrence along a sequence: the scan of a diagonal state-space model.

        h[..., t, n] = a[..., t, n] * h[..., t - 1, n] + b[..., t, n] * x[..., t, n]

    The state before the first step is 0, so ``a[..., 0, n]`` has no effect.

    Shape: ``(*Ds, length, channels)``, the same out; `a` and `b` have that shape too, or broadcast
        to it: ``(channels,)`` is one coefficient for all steps.
    Derivative: with ``G[t] = g[t] + a[t + 1] G[t + 1]`` for the cotangent ``g``, it is ``b G`` for
        `x`, ``G[t] h[t - 1]`` for `a` and ``x G`` for `b`, summed where they were broadcast.

    Args:
        x: the sequence, steps along the last axis but one.
        a: how much of the state each step keeps; beyond 1 in size the state may grow without bound.
        b: how much of the input each step adds.

    Raises:
        ShapeError: if `x` has fewer than two axes, or `a` or `b` do not broadcast to its shape.
        DTypeError: if the dtypes differ.

    Source: Gu & Dao (2023), "Mamba: linear-time sequence modeling with selective state spaces".

    >>> import tapetensor as tt
    >>> x = tt.ones((3, 1))
    >>> half = tt.full((1,), 0.5)
    >>> tt.ssm_scan(x, half, tt.ones((1,))).flatten()
    Tensor([1.  , 1.5 , 1.75], shape=(3,), dtype=float32, NoneTape)
    """
    check_tensor("ssm_scan", "x", x)
    check_tensor("ssm_scan", "a", a)
    check_tensor("ssm_scan", "b", b)
    check_numeric("ssm_scan", x)
    shape = x._array.shape
    check_scanned("ssm_scan", shape)
    for name, coefficient in (("a", a), ("b", b)):
        if not broadcasts_to(coefficient._array.shape, shape):
            own = sized(coefficient._array.shape)
            raise refusal(partial(check_coefficient, "ssm_scan", name, own, sized(shape)))
    return apply(scan.ssm_scan, (x, a, b))
