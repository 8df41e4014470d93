"""Dropout."""

from __future__ import annotations

from typing import Generic

import numpy as np

from tapetensor.arguments import as_number, as_size, check_rng
from tapetensor.nn.module import Module
from tapetensor.nn.views import is_training
from tapetensor.tensor import Tensor
from tapetensor.tensor.base import check_floating, check_tensor
from tapetensor.typing import F, N, S, T


class Dropout(Module):
    """Zero elements at random in training; the identity in inference.

        x * mask / (1 - p)

    `Tensor.dropout` as a layer: where the input owns a tape the model is being trained and a fresh
    mask is drawn, where it owns none the input is returned as it is. In what `inference` returned
    nothing is ever dropped.

    Shape: that of the input.
    Derivative: the same mask, scaled the same.

    Args:
        p: the probability of a zero, in [0, 1].
        rng: where the masks come from. Processes that are forked have copies of it in one state
            and draw the same masks: give each a child, ``drop.rng = rng.spawn(workers)[number]``.

    Raises:
        ArgumentValueError: if `p` lies outside [0, 1].

    Source: Srivastava et al. (2014), "Dropout: a simple way to prevent neural networks from
        overfitting".

    >>> import numpy as np
    >>> import tapetensor as tt
    >>> from tapetensor import nn
    >>> drop = nn.Dropout(0.5, rng=np.random.default_rng(0))
    >>> drop.forward(tt.ones((4,)))
    Tensor([1., 1., 1., 1.], shape=(4,), dtype=float32, NoneTape)
    >>> drop.forward(tt.ones((4,)).trace()).detach().numpy()
    array([2., 2., 2., 0.], dtype=float32)
    """

    p: float
    rng: np.random.Generator

    def __init__(self, p: float = 0.5, *, rng: np.random.Generator) -> None:
        self.p = as_number("Dropout", "p", p, at_least=0, at_most=1)
        check_rng("Dropout", rng)
        self.rng = rng

    def forward(self, x: Tensor[S, T, F]) -> Tensor[S, T, F]:
        """Return `x`, with elements dropped if it owns a tape."""
        return dropped(self, x, self.p, self.rng)


class DropoutOneIn(Module, Generic[N]):
    """Zero one element in `n` at random in training; the identity in inference.

    `Dropout` with ``p = 1 / n``, which the type says: ``DropoutOneIn[Literal[5]]``.

    Shape: that of the input.
    Derivative: the same mask, scaled the same.

    Args:
        n: one in how many, > 0.
        rng: where the masks come from.

    >>> from typing import Literal as L
    >>> import numpy as np
    >>> import tapetensor as tt
    >>> from tapetensor import nn
    >>> tt.build(nn.DropoutOneIn[L[5]], rng=np.random.default_rng(0))
    DropoutOneIn(n=5)
    """

    n: N
    rng: np.random.Generator

    def __init__(self, n: N, *, rng: np.random.Generator) -> None:
        self.n = as_size("DropoutOneIn", "n", n, low=1)
        check_rng("DropoutOneIn", rng)
        self.rng = rng

    def forward(self, x: Tensor[S, T, F]) -> Tensor[S, T, F]:
        """Return `x`, with elements dropped if it owns a tape."""
        return dropped(self, x, 1.0 / self.n, self.rng)


def dropped(
    module: Module, x: Tensor[S, T, F], p: float, rng: np.random.Generator
) -> Tensor[S, T, F]:
    """Return `x`, with elements dropped with probability `p` if the module trains on it."""
    layer = type(module).__name__
    check_tensor(layer, "the input", x)
    if p == 0.0 or not is_training(module, x):
        return x
    check_floating(layer, x)
    return x.dropout(p, rng=rng)
