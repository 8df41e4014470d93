"""Softmax, its logarithm, the logarithm of its divisor, and normalization."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Never

from tapetensor.arguments import as_number, normalize_axis
from tapetensor.arguments.spellings import no_such_argument
from tapetensor.kernels import normalization, reductions
from tapetensor.tensor.apply import apply
from tapetensor.tensor.base import FloatingBase, TensorBase, check_floating
from tapetensor.tensor.reductions import reduce
from tapetensor.tensor.signatures import average, same_signature
from tapetensor.typing import D, F, S, T

if TYPE_CHECKING:
    from tapetensor.tensor.tensor import Tensor


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
