"""Functions that see one axis as a whole and keep the shape: softmax, order, sums."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tapetensor.arguments import as_flag, as_number, normalize_axis
from tapetensor.kernels import normalization, reductions, scan
from tapetensor.tape import NoneTape
from tapetensor.tape.ids import next_id
from tapetensor.tensor.apply import apply
from tapetensor.tensor.base import (
    FloatingBase,
    NumberBase,
    TensorBase,
    check_floating,
    check_not_spent,
    check_numeric,
    rewrap,
)
from tapetensor.typing import D, Ds, F, N, R, S, T

if TYPE_CHECKING:
    from tapetensor.tensor.tensor import Tensor


class Softmax(TensorBase[S, T, D]):
    """Softmax, its logarithm, normalization, sorting and cumulative sums.

    The results own the tape of `self`, which is then spent.
    """

    __slots__ = ()

    def softmax(self: FloatingBase[S, T, F], axis: int = -1) -> Tensor[S, T, F]:
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
        check_floating("softmax", self)
        return apply(
            reductions.softmax,
            (self,),
            (normalize_axis("softmax", axis, self.array.shape),),
        )

    def log_softmax(self: FloatingBase[S, T, F], axis: int = -1) -> Tensor[S, T, F]:
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
        check_floating("log_softmax", self)
        return apply(
            reductions.log_softmax,
            (self,),
            (normalize_axis("log_softmax", axis, self.array.shape),),
        )

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
        options = (normalize_axis("normalize", axis, self.array.shape), added)
        return apply(normalization.normalize, (self,), options)

    def argsort(
        self: Softmax[tuple[*Ds, N], Any, D], axis: int = -1, *, descending: bool = False
    ) -> Tensor[tuple[*Ds, N], NoneTape, np.int64]:
        """Return the positions that sort the elements along one axis; equal ones keep their order.

        The sorted elements are ``x.take_along_axis(x.argsort(axis), axis)``, and the positions of
        the k largest along the last axis ``x.argsort(descending=True)[..., :k]``. NaN is larger
        than all numbers.

        Shape: that of `self`.
        Derivative: none; nothing is moved. `take_along_axis` has that of the sorted elements.

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
        check_not_spent("argsort", self)
        data = self.array
        position = normalize_axis("argsort", axis, data.shape)
        if as_flag("argsort", "descending", descending):
            # Backwards there and back again, so that equal elements keep their order here too.
            backwards = (slice(None),) * position + (slice(None, None, -1),)
            order = np.argsort(data[backwards], axis=position, kind="stable")[backwards]
            order = data.shape[position] - 1 - order
        else:
            order = np.argsort(data, axis=position, kind="stable")
        result: Tensor[Any, NoneTape, np.int64] = rewrap(
            self, order.astype(np.int64), next_id(), None
        )
        return result

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

        >>> import tapetensor as tt
        >>> tt.arange(4).cumulative_sum(axis=0)
        Tensor([0, 1, 3, 6], shape=(4,), dtype=int64, NoneTape)
        """
        check_numeric("cumulative_sum", self)
        position = normalize_axis("cumulative_sum", axis, self.array.shape)
        return apply(scan.cumulative_sum, (self,), (position,))
