"""Dropout: zeros at random."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from typing_extensions import override

from tapetensor.arguments import as_number, check_rng
from tapetensor.kernels import elementwise as kernels
from tapetensor.kernels.numerics import choice
from tapetensor.tensor.apply import apply
from tapetensor.tensor.base import FloatingBase, TensorBase, check_floating
from tapetensor.typing import D, F, S, T

if TYPE_CHECKING:
    from tapetensor.tensor.tensor import Tensor


class Undropping(np.random.Generator):
    """A generator with which nothing is dropped; it draws as any other.

    The modules that `tapetensor.nn.inference` returns have it in place of their own.
    """

    drops = False

    @override
    def __reduce__(self) -> Any:
        """Be copied and pickled as one of this class."""
        return Undropping, (self.bit_generator,)


class Dropout(TensorBase[S, T, D]):
    """The op that draws from a random generator."""

    __slots__ = ()

    def dropout(
        self: FloatingBase[S, T, F], p: float, *, rng: np.random.Generator
    ) -> Tensor[S, T, F]:
        """Zero elements at random and scale up the others, if `self` owns a tape.

            x * mask / (1 - p)      for a tensor that owns a tape
            x                       for one without: the tensor itself, and nothing is drawn

        The tape says whether this is training, as for the layer `tapetensor.nn.Dropout`. To drop
        from plain values, multiply by a mask of your own. With the generator of a module that
        `tapetensor.nn.inference` returned nothing is dropped, either.

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
        >>> x = tt.ones((4,))
        >>> x.trace().dropout(0.5, rng=np.random.default_rng(0)).detach().numpy()
        array([2., 2., 2., 0.], dtype=float32)
        >>> x.dropout(0.5, rng=np.random.default_rng(0)) is x
        True
        """
        check_floating("dropout", self)
        probability = as_number("dropout", "p", p, at_least=0, at_most=1)
        check_rng("dropout", rng)
        if self.tape is None or not getattr(rng, "drops", True):
            result: Any = self
            return result  # type: ignore[no-any-return]  # a tensor is what TensorBase stands for
        data = self._array
        mask = choice.scaled_mask(data.shape, probability, data.dtype, rng)
        return apply(kernels.dropout, (self,), (mask,))
