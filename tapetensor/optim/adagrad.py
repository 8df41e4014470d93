"""Adagrad."""

from __future__ import annotations

from typing import Any, final

from typing_extensions import override

from tapetensor.arguments import as_number
from tapetensor.kernels.numerics import optimizers
from tapetensor.optim.given import Takes
from tapetensor.optim.group import State
from tapetensor.optim.optimizer import Optimizer, Parameters


@final
class Adagrad(Optimizer):
    """Steps scaled by the root of the sum of all squared gradients so far.

        g = gradient + weight_decay * p
        s = s + g**2
        p = p - lr / (1 + (t - 1) * lr_decay) * g / (sqrt(s) + eps)

    With decoupled decay ``g = gradient``, and a step takes ``lr * weight_decay * p`` as well, with
    the learning rate of that step. As PyTorch's, `t` counts the steps in which the parameter had a
    gradient. Of the table of an ``nn.Embedding(..., sparse=True)`` a step without decay updates the
    rows that were read alone.

    Args:
        model: a module or another object with ``parameters()``, a list of tensors, or a dict of
            tensors by name.
        lr: the learning rate, >= 0.
        lr_decay: how fast it falls, >= 0, per step.
        weight_decay: the factor of the L2 penalty's gradient, >= 0.
        initial_accumulator_value: where `s` starts, >= 0.
        eps: the floor under the root, >= 0, in units of the gradient.
        decoupled_weight_decay: whether the decay acts on the parameter directly.
        check_finite: whether a gradient with a NaN or an infinity raises an error and updates
            nothing. If False, the step is taken, as in PyTorch.

    Raises:
        ArgumentValueError: if a number is outside its range, or the model has no parameters.
        ArgumentTypeError: if an argument is of the wrong kind.

    Source: Duchi, Hazan & Singer (2011), "Adaptive subgradient methods for online learning and
        stochastic optimization", figure 1.

    >>> import tapetensor as tt
    >>> from tapetensor.optim import Adagrad
    >>> class Line:
    ...     slope = tt.ones((1,))
    ...     def parameters(self):
    ...         return {"slope": self.slope}
    >>> line = Line()
    >>> optimizer = Adagrad(line, lr=0.25)
    >>> optimizer.step((tt.full((1,), 9.0).trace() * line.slope).sum().backward())
    >>> line.slope
    Tensor([0.75], shape=(1,), dtype=float32, NoneTape)
    """

    def __init__(
        self,
        model: Parameters,
        lr: float = 1e-2,
        lr_decay: float = 0.0,
        weight_decay: float = 0.0,
        initial_accumulator_value: float = 0.0,
        eps: float = 1e-10,
        *,
        decoupled_weight_decay: bool = False,
        check_finite: bool = False,
    ) -> None:
        self._lr_decay = as_number("Adagrad", "lr_decay", lr_decay, at_least=0)
        start = as_number(
            "Adagrad", "initial_accumulator_value", initial_accumulator_value, at_least=0
        )
        self._eps = as_number("Adagrad", "eps", eps, at_least=0)
        decay = (weight_decay, decoupled_weight_decay)
        states = (State("squares", start),)
        kernel = optimizers.adagrad
        super().__init__(model, lr, kernel, states, *decay, check_finite=check_finite)

    @override
    def _options(self, count: int) -> tuple[Any, ...]:
        lr = self._lr / (1 + (count - 1) * self._lr_decay)
        return lr, self._eps, *self._decay(lr)

    @override
    def _takes(self) -> Takes:
        return "whole" if self._weight_decay else "either"
