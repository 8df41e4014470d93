"""Rectifiers: what is positive passes, what is not is bent."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, overload

from tapetensor.arguments import as_number, broadcasts_to
from tapetensor.errors import ShapeError
from tapetensor.kernels import elementwise
from tapetensor.tape import NoneTape
from tapetensor.tensor.apply import apply
from tapetensor.tensor.base import FloatingBase, TensorBase, check_floating, check_tensor
from tapetensor.tensor.operands import TapeOfRhs
from tapetensor.typing import D, Ds, F, N, S, T

if TYPE_CHECKING:
    from tapetensor.tensor.tensor import Joins, Tensor


class Rectifiers(TensorBase[S, T, D]):
    """Functions of one tensor that pass what is positive and bend what is not."""

    __slots__ = ()

    def leaky_relu(self: FloatingBase[S, T, F], negative_slope: float = 0.01) -> Tensor[S, T, F]:
        """Return the elements with the negative ones made small.

            x  if x > 0  else  slope * x

        Shape: that of `self`.
        Derivative: 1 above 0, `negative_slope` below and at 0.

        Args:
            negative_slope: the factor of what is not positive, finite.

        Raises:
            ArgumentValueError: if `negative_slope` is not finite.

        Source: Maas, Hannun & Ng (2013), "Rectifier nonlinearities improve neural network acoustic
            models".

        >>> import tapetensor as tt
        >>> tt.from_numpy([-4.0, 2.0], shape=(2,)).leaky_relu(0.25)
        Tensor([-1.,  2.], shape=(2,), dtype=float32, NoneTape)
        """
        check_floating("leaky_relu", self)
        slope = as_number("leaky_relu", "negative_slope", negative_slope)
        return apply(elementwise.leaky_relu, (self,), (slope,))

    @overload
    def prelu(
        self: FloatingBase[S, T, F], slope: Joins[S, T, F] | Joins[tuple[()], T, F]
    ) -> Tensor[S, T, F]: ...
    @overload
    def prelu(
        self: FloatingBase[S, NoneTape, F],
        slope: Tensor[S, TapeOfRhs, F] | Tensor[tuple[()], TapeOfRhs, F],
    ) -> Tensor[S, TapeOfRhs, F]: ...
    @overload
    def prelu(
        self: FloatingBase[tuple[*Ds, N], T, F], slope: Joins[tuple[N], T, F]
    ) -> Tensor[tuple[*Ds, N], T, F]: ...
    @overload
    def prelu(
        self: FloatingBase[tuple[*Ds, N], NoneTape, F], slope: Tensor[tuple[N], TapeOfRhs, F]
    ) -> Tensor[tuple[*Ds, N], TapeOfRhs, F]: ...
    def prelu(self, slope: Tensor[Any, Any, Any]) -> Tensor[Any, Any, Any]:
        """Return the elements with the negative ones multiplied by slopes that can be trained.

            x  if x > 0  else  slope * x

        Shape: that of `self`, to which that of `slope` broadcasts: one slope, one for each place
            along the last axis, one for each element.
        Derivative: 1 above 0, `slope` below and at 0; for `slope`, `x` where it is not positive,
            summed over what was broadcast.

        Args:
            slope: a tensor.

        Raises:
            ShapeError: if `slope` does not broadcast to the shape of `self`.
            DTypeError: if the dtypes differ or are not floating.

        Source: He et al. (2015), "Delving deep into rectifiers".

        >>> import tapetensor as tt
        >>> tt.from_numpy([-4.0, 2.0], shape=(2,)).prelu(tt.full((), 0.25))
        Tensor([-1.,  2.], shape=(2,), dtype=float32, NoneTape)
        """
        check_tensor("prelu", "the slope", slope)
        check_floating("prelu", self)
        if not broadcasts_to(slope._array.shape, self._array.shape):
            raise ShapeError(
                f"prelu: slopes of shape {slope._array.shape} do not broadcast to the elements of "
                f"shape {self._array.shape}"
            )
        return apply(elementwise.prelu, (self, slope))

    def elu(self: FloatingBase[S, T, F], alpha: float = 1.0) -> Tensor[S, T, F]:
        """Return the exponential linear unit.

            x  if x > 0  else  alpha * (e**x - 1)

        Shape: that of `self`.
        Derivative: 1 above 0, ``alpha * e**x`` below and at 0.

        Args:
            alpha: minus the limit for ever smaller elements, finite.

        Raises:
            ArgumentValueError: if `alpha` is not finite.

        Source: Clevert, Unterthiner & Hochreiter (2015), "Fast and accurate deep network learning
            by exponential linear units (ELUs)".

        >>> import tapetensor as tt
        >>> tt.from_numpy([-1000.0, 2.0], shape=(2,)).elu()
        Tensor([-1.,  2.], shape=(2,), dtype=float32, NoneTape)
        """
        return apply(elementwise.elu, (self,), (as_number("elu", "alpha", alpha),))
