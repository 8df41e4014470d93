"""The mean, and the logarithm of a sum of exponentials."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tapetensor.kernels import reductions
from tapetensor.tensor.base import TensorBase, check_floating
from tapetensor.tensor.reductions import reduce
from tapetensor.tensor.signatures import average, same_signature
from tapetensor.typing import D, S, T

if TYPE_CHECKING:
    from tapetensor.tensor.tensor import Tensor


class Averages(TensorBase[S, T, D]):
    """The mean and its smooth relative, which take `axis` and `keepdims` as the reductions do."""

    __slots__ = ()

    @same_signature(average)
    def mean(
        self: TensorBase[S, T, D], axis: Any = None, keepdims: bool = False
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
        return reduce(reductions.mean, self, axis, keepdims)

    @same_signature(average)
    def logsumexp(
        self: TensorBase[S, T, D], axis: Any = None, keepdims: bool = False
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
        return reduce(reductions.logsumexp, self, axis, keepdims)
