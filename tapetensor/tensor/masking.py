"""Keeping some elements of a tensor and putting a number in the place of the others."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tapetensor.arguments import as_int, as_number, check_rng
from tapetensor.errors import AxisError
from tapetensor.kernels import dropout as kernels
from tapetensor.kernels import masking
from tapetensor.kernels.numerics import masks
from tapetensor.tape import Kernel
from tapetensor.tensor.apply import apply
from tapetensor.tensor.base import FloatingBase, TensorBase, check_floating
from tapetensor.tensor.operands import as_scalar
from tapetensor.typing import D, Ds, F, M, N, S, T

if TYPE_CHECKING:
    from tapetensor.tensor.tensor import Tensor


class Masking(TensorBase[S, T, D]):
    """Triangles, NaNs and chance.

    All return a tensor with a new id; it owns the tape of `self`, which is then spent.
    """

    __slots__ = ()

    def tril(self: Masking[tuple[*Ds, M, N], T, D], k: int = 0) -> Tensor[tuple[*Ds, M, N], T, D]:
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
        return _triangle(masking.tril, self, k)

    def triu(self: Masking[tuple[*Ds, M, N], T, D], k: int = 0) -> Tensor[tuple[*Ds, M, N], T, D]:
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
        return _triangle(masking.triu, self, k)

    def nans_to(self: FloatingBase[S, T, F], number: float) -> Tensor[S, T, F]:
        """Return the elements with a number where they are NaN; infinities stay.

        Shape: that of `self`.
        Derivative: 1, and 0 where the element is NaN.

        Args:
            number: what stands in the place of a NaN.

        >>> import tapetensor as tt
        >>> tt.from_numpy([float("nan"), 2.0], shape=(2,)).nans_to(0.0)
        Tensor([0., 2.], shape=(2,), dtype=float32, NoneTape)
        """
        check_floating("nans_to", self)
        return apply(masking.nans_to, (self,), (as_scalar("nans_to", "number", number),))

    def dropout(
        self: FloatingBase[S, T, F], p: float, *, rng: np.random.Generator
    ) -> Tensor[S, T, F]:
        """Return the elements with zeros at random and the others scaled up, tape or no tape.

            x * mask / (1 - p)

        `tapetensor.nn.Dropout` is the layer, which leaves an input without a tape as it is.

        Shape: that of `self`.
        Derivative: the same mask, scaled the same.

        Args:
            p: the probability of a zero, in [0, 1].
            rng: where the mask comes from.

        Raises:
            ArgumentValueError: if `p` lies outside [0, 1].
            ArgumentTypeError: if `rng` is not a numpy generator.

        Source: Srivastava et al. (2014), "Dropout: a simple way to prevent neural networks from
            overfitting".

        >>> import numpy as np
        >>> import tapetensor as tt
        >>> tt.ones((4,)).dropout(0.5, rng=np.random.default_rng(0))
        Tensor([2., 2., 2., 0.], shape=(4,), dtype=float32, NoneTape)
        """
        check_floating("dropout", self)
        probability = as_number("dropout", "p", p, at_least=0, at_most=1)
        check_rng("dropout", rng)
        data = self.array
        mask = masks.scaled_mask(data.shape, probability, data.dtype, rng)
        return apply(kernels.dropout, (self,), (mask,))


def _triangle(kernel: Kernel, x: TensorBase[S, T, D], k: object) -> Tensor[S, T, D]:
    op = kernel.__name__
    if x.array.ndim < 2:
        raise AxisError(f"{op}: needs two axes, the shape is {x.array.shape}")
    return apply(kernel, (x,), (as_int(op, "k", k),))
