"""RMSprop."""

from __future__ import annotations

from typing import Any, final

from typing_extensions import override

from tapetensor.arguments import as_flag, as_number
from tapetensor.kernels.numerics import optimizers
from tapetensor.optim.group import State
from tapetensor.optim.optimizer import Optimizer, Parameters


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
    >>> class Line:
    ...     slope = tt.ones((1,))
    ...     def parameters(self):
    ...         return {"slope": self.slope}
    >>> line = Line()
    >>> optimizer = RMSprop(line, lr=0.25, alpha=0.0)
    >>> optimizer.step((tt.full((1,), 9.0).trace() * line.slope).sum().backward())
    >>> line.slope
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
