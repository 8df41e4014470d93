"""Adam, with coupled and with decoupled weight decay, and on rows of tables."""

from __future__ import annotations

from typing import Any, final

from typing_extensions import override

from tapetensor.arguments import as_flag, as_number
from tapetensor.errors import ArgumentTypeError
from tapetensor.kernels.numerics import optimizers
from tapetensor.optim.group import State, Takes
from tapetensor.optim.optimizer import Optimizer, Parameters

# Discounted sums of gradients and of their squares: the moments, but for a factor.
_SUMS = (State("gradients"), State("squares"))


class AdaptiveMoments(Optimizer):
    """The common base of `Adam`, `AdamW` and `SparseAdam`."""

    def __init__(
        self,
        model: Parameters,
        lr: float,
        betas: tuple[float, float],
        eps: float,
        weight_decay: float,
        is_decoupled: bool,
        amsgrad: bool,
        check_finite: bool,
    ) -> None:
        op = type(self).__name__
        if not isinstance(betas, tuple | list) or len(betas) != 2:
            raise ArgumentTypeError(f"{op}: betas must be two numbers, (0.9, 0.999), got {betas!r}")
        self._betas = (
            as_number(op, "betas[0]", betas[0], at_least=0, below=1),
            as_number(op, "betas[1]", betas[1], at_least=0, below=1),
        )
        self._eps = as_number(op, "eps", eps, at_least=0)
        remembers = as_flag(op, "amsgrad", amsgrad)
        kernel = optimizers.amsgrad if remembers else optimizers.adam
        states = (*_SUMS, State("largest")) if remembers else _SUMS
        decay = (weight_decay, is_decoupled)
        super().__init__(model, lr, kernel, states, *decay, check_finite=check_finite)

    @override
    def _options(self, count: int) -> tuple[Any, ...]:
        scales = optimizers.adam_scales(count, self._lr, *self._betas, self._eps)
        return *scales, *self._betas, *self._decay(self._lr)


@final
class Adam(AdaptiveMoments):
    """Steps scaled by running means of the gradient and of its square.

        g = gradient + weight_decay * p
        m = beta1 * m + (1 - beta1) * g
        v = beta2 * v + (1 - beta2) * g**2
        p = p - lr * m / (1 - beta1**t) / (sqrt(v / (1 - beta2**t)) + eps)

    As in PyTorch, the decay is coupled: an L2 penalty that goes through the moments. `t` counts the
    steps.

    Args:
        model: a module or another object with ``parameters()``, a list of tensors, or a dict of
            tensors by name.
        lr: the learning rate, >= 0.
        betas: the shares of the running means that a step keeps, both in [0, 1).
        eps: the floor under the root, >= 0, in units of the gradient.
        weight_decay: the factor of the L2 penalty's gradient, >= 0.
        amsgrad: whether to use the largest `v` so far in the place of `v`, so that steps do not
            grow when large gradients are forgotten (Reddi, Kale & Kumar, 2018).
        check_finite: whether a gradient with a NaN or an infinity raises an error and updates
            nothing. If False, the step is taken, as in PyTorch.

    Raises:
        ArgumentValueError: if a number is outside its range, or the model has no parameters.
        ArgumentTypeError: if an argument is of the wrong kind.

    Source: Kingma & Ba (2015), "Adam: a method for stochastic optimization", algorithm 1.

    >>> import tapetensor as tt
    >>> from tapetensor.optim import Adam
    >>> slope = tt.ones((1,))
    >>> optimizer = Adam([slope], lr=0.25)
    >>> optimizer.step((tt.full((1,), 9.0).trace() * slope).sum().backward())
    >>> slope
    Tensor([0.75], shape=(1,), dtype=float32, NoneTape)
    """

    def __init__(
        self,
        model: Parameters,
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        *,
        amsgrad: bool = False,
        check_finite: bool = False,
    ) -> None:
        moments = (betas, eps, weight_decay, False, amsgrad)
        super().__init__(model, lr, *moments, check_finite)


@final
class AdamW(AdaptiveMoments):
    """Adam with decoupled weight decay.

        p = p - lr * weight_decay * p, and then as `Adam` without decay

    As in PyTorch, the decay does not go through the moments, and is scaled by the learning rate.

    Args:
        model: a module or another object with ``parameters()``, a list of tensors, or a dict of
            tensors by name.
        lr: the learning rate, >= 0.
        betas: the shares of the running means that a step keeps, both in [0, 1).
        eps: the floor under the root, >= 0, in units of the gradient.
        weight_decay: the share of the parameter that a step subtracts, in units of `lr`, >= 0.
        amsgrad: whether to use the largest `v` so far in the place of `v`.
        check_finite: whether a gradient with a NaN or an infinity raises an error and updates
            nothing. If False, the step is taken, as in PyTorch.

    Raises:
        ArgumentValueError: if a number is outside its range, or the model has no parameters.
        ArgumentTypeError: if an argument is of the wrong kind.

    Source: Loshchilov & Hutter (2019), "Decoupled weight decay regularization", algorithm 2.

    >>> import tapetensor as tt
    >>> from tapetensor.optim import AdamW
    >>> slope = tt.ones((1,))
    >>> optimizer = AdamW([slope], lr=0.25, weight_decay=1.0)
    >>> optimizer.step((tt.full((1,), 9.0).trace() * slope).sum().backward())
    >>> slope
    Tensor([0.5], shape=(1,), dtype=float32, NoneTape)
    """

    def __init__(
        self,
        model: Parameters,
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 1e-2,
        *,
        amsgrad: bool = False,
        check_finite: bool = False,
    ) -> None:
        moments = (betas, eps, weight_decay, True, amsgrad)
        super().__init__(model, lr, *moments, check_finite)


@final
class SparseAdam(AdaptiveMoments):
    """Adam on the rows that were read; other rows and their moments stay as they are.

        m[rows] = beta1 * m[rows] + (1 - beta1) * gradient[rows]
        v[rows] = beta2 * v[rows] + (1 - beta2) * gradient[rows]**2
        p[rows] = p[rows] - lr * m[rows] / (1 - beta1**t) / (sqrt(v[rows] / (1 - beta2**t)) + eps)

    The parameters are the tables of ``nn.Embedding(..., sparse=True)``, as in PyTorch, and other
    parameters get an optimizer of their own: a step takes of `grads` what belongs to it.

        tables = optim.SparseAdam([model.words.weight])
        rest = optim.Adam(model.head)

    It is not `Adam`, but for what every step reads. With `Adam` the moments of a row fade in the
    steps that do not read it, and go on moving it; here they wait for the next step that does. `t`
    counts all steps, so that a row that is read late is corrected as if it had been there from the
    beginning. `eps` stands where it does in `Adam`; PyTorch's `SparseAdam` adds it to the root
    before that is corrected, which is a larger floor at the first steps.

    Args:
        model: what has ``parameters()``, a list of tensors, or a dict of tensors by name.
        lr: the learning rate, >= 0.
        betas: what the running means keep per step that reads a row, both in [0, 1).
        eps: the floor under the root, > 0, in units of the gradient.
        check_finite: whether a step refuses a gradient with a NaN or an infinity and updates
            nothing; without it such a gradient is taken, as in PyTorch.

    Raises:
        ArgumentValueError: if a number is outside its range, or the model has no parameters.
        ArgumentTypeError: if an argument is of the wrong kind.
        UnusedParametersError: from `step`, if the gradient of a parameter is one of the whole: its
            layer is not sparse, something else has used the table, too, or a compiled function has
            computed it.

    >>> import numpy as np
    >>> import tapetensor as tt
    >>> from tapetensor import nn
    >>> from tapetensor.optim import SparseAdam
    >>> words = nn.Embedding(1000, 2, rng=np.random.default_rng(0), sparse=True)
    >>> before, optimizer = words.weight.numpy().copy(), SparseAdam(words, lr=0.1)
    >>> read = words.forward(tt.from_numpy(np.array([7, 7, 3])).trace())
    >>> optimizer.step(read.square().sum().backward(wrt=words))
    >>> np.flatnonzero((words.weight.numpy() != before).any(axis=1))
    array([3, 7])
    """

    def __init__(
        self,
        model: Parameters,
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        *,
        check_finite: bool = False,
    ) -> None:
        as_number("SparseAdam", "eps", eps, above=0)
        super().__init__(model, lr, betas, eps, 0.0, False, False, check_finite)

    @override
    def _takes(self) -> Takes:
        return "rows"
