"""Whole numbers next to the elements, and their signs; the shape stays."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tapetensor.kernels import elementwise
from tapetensor.tensor.apply import apply
from tapetensor.tensor.base import (
    FloatingBase,
    NumberBase,
    TensorBase,
    check_floating,
    check_numeric,
)
from tapetensor.typing import D, F, R, S, T

if TYPE_CHECKING:
    from tapetensor.tensor.tensor import Tensor


class Rounding(TensorBase[S, T, D]):
    """Functions that go in steps, element by element.

    The derivative is 0, at the steps as well. NaN stays NaN, infinities stay.
    """

    __slots__ = ()

    def floor(self: FloatingBase[S, T, F]) -> Tensor[S, T, F]:
        """Return the largest whole numbers that are not above the elements.

        Shape: that of `self`.
        Derivative: 0.

        Raises:
            DTypeError: if the dtype is not floating.

        Source: array API, ``floor``.

        >>> import tapetensor as tt
        >>> tt.from_numpy([-1.5, 2.5], shape=(2,)).floor()
        Tensor([-2.,  2.], shape=(2,), dtype=float32, NoneTape)
        """
        check_floating("floor", self)
        return apply(elementwise.floor, (self,))

    def ceil(self: FloatingBase[S, T, F]) -> Tensor[S, T, F]:
        """Return the smallest whole numbers that are not below the elements.

        Shape: that of `self`.
        Derivative: 0.

        Raises:
            DTypeError: if the dtype is not floating.

        Source: array API, ``ceil``.

        >>> import tapetensor as tt
        >>> tt.from_numpy([-1.5, 2.5], shape=(2,)).ceil()
        Tensor([-1.,  3.], shape=(2,), dtype=float32, NoneTape)
        """
        check_floating("ceil", self)
        return apply(elementwise.ceil, (self,))

    def round(self: FloatingBase[S, T, F]) -> Tensor[S, T, F]:
        """Return the nearest whole numbers; halfway between two, the even one.

        Shape: that of `self`.
        Derivative: 0.

        Raises:
            DTypeError: if the dtype is not floating.

        Source: array API, ``round``.

        >>> import tapetensor as tt
        >>> tt.from_numpy([1.5, 2.5], shape=(2,)).round()
        Tensor([2., 2.], shape=(2,), dtype=float32, NoneTape)
        """
        check_floating("round", self)
        return apply(elementwise.round, (self,))

    def trunc(self: FloatingBase[S, T, F]) -> Tensor[S, T, F]:
        """Return the whole numbers next to the elements on the way to 0.

        Shape: that of `self`.
        Derivative: 0.

        Raises:
            DTypeError: if the dtype is not floating.

        Source: array API, ``trunc``.

        >>> import tapetensor as tt
        >>> tt.from_numpy([-1.5, 2.5], shape=(2,)).trunc()
        Tensor([-1.,  2.], shape=(2,), dtype=float32, NoneTape)
        """
        check_floating("trunc", self)
        return apply(elementwise.trunc, (self,))

    def sign(self: NumberBase[S, T, R]) -> Tensor[S, T, R]:
        """Return -1 for elements below 0, 1 for those above, 0 for 0.

        Shape: that of `self`.
        Derivative: 0.

        Raises:
            DTypeError: for a bool tensor.

        Source: array API, ``sign``.

        >>> import tapetensor as tt
        >>> tt.from_numpy([-1.5, 2.5], shape=(2,)).sign()
        Tensor([-1.,  1.], shape=(2,), dtype=float32, NoneTape)
        """
        check_numeric("sign", self)
        return apply(elementwise.sign, (self,))
