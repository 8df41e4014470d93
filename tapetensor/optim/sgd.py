"""Stochastic gradient descent."""

from __future__ import annotations

from typing import Any, final

from typing_extensions import override

from tapetensor.arguments import as_flag, as_number
from tapetensor.errors import ArgumentValueError
from tapetensor.kernels.numerics import optimizers
from tapetensor.optim.given import Takes
from tapetensor.optim.group import State
from tapetensor.optim.optimizer import Optimizer, Parameters


@final
class Sgd(Optimizer):
    """Stochastic gradient descent with momentum.

        g = gradient + weight_decay * p
        v = momentum * v + (1 - dampening) * g
        p = p - lr * v                      classic
        p = p - lr * (g + momentum * v)     Nesterov

    With decoupled decay ``g = gradient``, and a step takes ``lr * weight_decay * p`` as well.
    As PyTorch's: the velocity starts with the first gradient, undampened, and carries no learning
    rate. Of the table of an ``nn.Embedding(..., sparse=True)`` a step without momentum and without
    decay updates the rows that were read alone; with one of the two every row moves.

    Args:
        model: a module or another object with ``parameters()``, a list of tensors, or a dict of
            tensors by name.
        lr: the learning rate, >= 0.
        momentum: >= 0.
        nesterov: whether to look ahead along the velocity; needs momentum.
        weight_decay: the factor of the L2 penalty's gradient, >= 0.
        decoupled_weight_decay: whether the decay acts on the parameter directly.
        dampening: the part of each later gradient that does not go into the velocity, in [0, 1].
        check_finite: whether a gradient with a NaN or an infinity raises an error and updates
            nothing. If False, the step is taken, as in PyTorch.

    Raises:
        ArgumentValueError: if a number is outside its range, there is Nesterov without momentum or
            with dampening, dampening without momentum, or the model has no parameters.
        ArgumentTypeError: if an argument is of the wrong kind.

    Source: Sutskever, Martens, Dahl & Hinton (2013), "On the importance of initialization and
        momentum in deep learning".

    >>> import tapetensor as tt
    >>> from tapetensor.optim import Sgd
    >>> class Line:
    ...     slope = tt.ones((1,))
    ...     def parameters(self):
    ...         return {"slope": self.slope}
    >>> line = Line()
    >>> optimizer = Sgd(line, lr=0.5)
    >>> optimizer.step((tt.ones((1,)).trace() * line.slope).sum().backward())
    >>> line.slope
    Tensor([0.5], shape=(1,), dtype=float32, NoneTape)
    """

    def __init__(
        self,
        model: Parameters,
        lr: float = 1e-2,
        momentum: float = 0.0,
        nesterov: bool = False,
        weight_decay: float = 0.0,
        decoupled_weight_decay: bool = False,
        *,
        dampening: float = 0.0,
        check_finite: bool = False,
    ) -> None:
        self._momentum = as_number("Sgd", "momentum", momentum, at_least=0)
        self._nesterov = as_flag("Sgd", "nesterov", nesterov)
        if self._nesterov and self._momentum == 0:
            raise ArgumentValueError(
                f"Sgd: nesterov=True needs momentum > 0, got momentum={momentum!r}"
            )
        self._dampening = as_number("Sgd", "dampening", dampening, at_least=0, at_most=1)
        if self._dampening and (self._nesterov or not self._momentum):
            raise ArgumentValueError(
                "Sgd: dampening needs momentum > 0, and nesterov=False, got "
                f"momentum={momentum!r} and nesterov={nesterov!r}"
            )
        kernel = optimizers.momentum_sgd if self._momentum else optimizers.sgd
        states = [State("velocity")] if self._momentum else []
        decay = (weight_decay, decoupled_weight_decay)
        super().__init__(model, lr, kernel, states, *decay, check_finite=check_finite)

    @override
    def _options(self, count: int) -> tuple[Any, ...]:
        share = 1.0 if count == 1 else 1.0 - self._dampening
        momentum = (self._momentum, share, self._nesterov) if self._momentum else ()
        return self._lr, *momentum, *self._decay(self._lr)

    @override
    def _takes(self) -> Takes:
        return "whole" if self._momentum or self._weight_decay else "either"
