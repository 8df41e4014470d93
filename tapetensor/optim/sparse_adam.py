"""Adam for tables of which a step reads few rows."""

from __future__ import annotations

from typing import final

from typing_extensions import override

from tapetensor.arguments import as_number
from tapetensor.optim.adam import AdaptiveMoments
from tapetensor.optim.given import Takes
from tapetensor.optim.optimizer import Parameters


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
