"""Stochastic gradient descent, and steps scaled by the squares of gradients: Adagrad, RMSprop."""

from __future__ import annotations

from typing import Any, final

from typing_extensions import override

from tapetensor.arguments import as_flag, as_number
from tapetensor.errors import ArgumentValueError
from tapetensor.kernels.numerics import optimizers
from tapetensor.optim.group import State, Takes
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
    >>> slope = tt.ones((1,))
    >>> optimizer = Sgd([slope], lr=0.5)
    >>> optimizer.step((tt.ones((1,)).trace() * slope).sum().backward())
    >>> slope
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
    >>> slope = tt.ones((1,))
    >>> optimizer = Adagrad([slope], lr=0.25)
    >>> optimizer.step((tt.full((1,), 9.0).trace() * slope).sum().backward())
    >>> slope
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


@final
class RMSprop(Optimizer):
    """Steps scaled by a running mean of the square of the gradient.

        g = gradient + weight_decay * p
        s = alpha * s + (1 - alpha) * g**2
        a = alpha * a + (1 - alpha) * g                 centered, else a = 0
        v = momentum * v + g / (sqrt(s - a**2) + eps)
        p = p - lr * v

    With decoupled decay ``g = gradient``, and a step also subtracts ``lr * weight_decay * p``.
    By default it is PyTorch's: `s` starts at 0, and `eps` stands outside the root. In TensorFlow
    and dfdx `s` starts at 1, and `eps` stands inside, which makes the first steps smaller:
    ``RMSprop(model, alpha=0.9, initial_square=1.0, eps_inside_root=True)``.

    Args:
        model: a module or another object with ``parameters()``, a list of tensors, or a dict of
            tensors by name.
        lr: the learning rate, >= 0.
        alpha: the share of the running means that a step keeps, in [0, 1).
        eps: the floor under the root, >= 0, in units of the gradient (inside the root, of its
            square).
        momentum: >= 0.
        centered: whether to scale by the estimated variance.
        weight_decay: the factor of the L2 penalty's gradient, >= 0.
        decoupled_weight_decay: whether the decay acts on the parameter directly.
        initial_square: where `s` starts, >= 0.
        eps_inside_root: whether `eps` is added before the root is taken.
        check_finite: whether a gradient with a NaN or an infinity raises an error and updates
            nothing. If False, the step is taken, as in PyTorch.

    Raises:
        ArgumentValueError: if a number is outside its range, or the model has no parameters.
        ArgumentTypeError: if an argument is of the wrong kind.

    Source: Tieleman & Hinton (2012), "Neural networks for machine learning", lecture 6.5; centered:
        Graves (2013), "Generating sequences with recurrent neural networks", equations 38 to 45.

    >>> import tapetensor as tt
    >>> from tapetensor.optim import RMSprop
    >>> slope = tt.ones((1,))
    >>> optimizer = RMSprop([slope], lr=0.25, alpha=0.0)
    >>> optimizer.step((tt.full((1,), 9.0).trace() * slope).sum().backward())
    >>> slope
    Tensor([0.75], shape=(1,), dtype=float32, NoneTape)
    """

    def __init__(
        self,
        model: Parameters,
        lr: float = 1e-2,
        alpha: float = 0.99,
        eps: float = 1e-8,
        momentum: float = 0.0,
        centered: bool = False,
        weight_decay: float = 0.0,
        *,
        decoupled_weight_decay: bool = False,
        initial_square: float = 0.0,
        eps_inside_root: bool = False,
        check_finite: bool = False,
    ) -> None:
        self._alpha = as_number("RMSprop", "alpha", alpha, at_least=0, below=1)
        self._eps = as_number("RMSprop", "eps", eps, at_least=0)
        self._momentum = as_number("RMSprop", "momentum", momentum, at_least=0)
        self._is_centered = as_flag("RMSprop", "centered", centered)
        self._is_eps_inside = as_flag("RMSprop", "eps_inside_root", eps_inside_root)
        states = (
            State("squares", as_number("RMSprop", "initial_square", initial_square, at_least=0)),
            # What is not used stays at zero, memory that the system never has to provide.
            State("mean", is_used=self._is_centered),
            State("velocity", is_used=self._momentum > 0),
        )
        decay = (weight_decay, decoupled_weight_decay)
        kernel = optimizers.rmsprop
        super().__init__(model, lr, kernel, states, *decay, check_finite=check_finite)

    @override
    def _options(self, count: int) -> tuple[Any, ...]:
        return (
            self._lr,
            self._alpha,
            self._eps,
            self._momentum,
            self._is_centered,
            self._is_eps_inside,
            *self._decay(self._lr),
        )
