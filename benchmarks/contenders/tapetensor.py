"""tapetensor, eager: the library's own modules, losses and optimizer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

import tapetensor as tt
from benchmarks import problems
from benchmarks.contenders import Step, Steps
from benchmarks.problems import BETAS, EPS, LEARNING_RATE, Affine, Array
from tapetensor import NoneTape, OwnedTape, Tensor0D, Tensor1D, Tensor2D, losses, nn, optim
from tapetensor.typing import B, T

Rows: TypeAlias = Tensor2D[B, int, T]


class ReluMlp(nn.Module):
    """Affine layers with relu between them."""

    hidden: list[nn.Linear[int, int]]
    out: nn.Linear[int, int]

    def forward(self, x: Rows[B, T]) -> Rows[B, T]:
        """Return the logits."""
        for layer in self.hidden:
            x = layer.forward(x).relu()
        return self.out.forward(x)


class GeluMlp(nn.Module):
    """Affine layers with gelu (tanh) between them."""

    hidden: list[nn.Linear[int, int]]
    out: nn.Linear[int, int]

    def forward(self, x: Rows[B, T]) -> Rows[B, T]:
        """Return the prediction."""
        for layer in self.hidden:
            x = layer.forward(x).gelu(approximate="tanh")
        return self.out.forward(x)


def relu_mlp(problem: problems.Mlp) -> Step:
    """Return a training step on labels."""
    x, labels = _matrix(problem.x), _labels(problem.target)
    *hidden, out = [_linear(layer) for layer in problem.layers]
    model = ReluMlp(hidden=hidden, out=out)
    return _training_step(
        model, lambda: losses.cross_entropy(model.forward(x.trace()), labels)
    )


def gelu_mlp(problem: problems.Mlp) -> Step:
    """Return a training step on values."""
    x, target = _matrix(problem.x), _matrix(problem.target)
    *hidden, out = [_linear(layer) for layer in problem.layers]
    model = GeluMlp(hidden=hidden, out=out)
    return _training_step(model, lambda: losses.mse(model.forward(x.trace()), target))


def elementwise(problem: problems.Elementwise) -> Step:
    """Return the loss and its gradient."""
    x: Tensor1D[int] = tt.from_numpy(problem.x, problem.x.shape)

    def step() -> tuple[Any, ...]:
        bump = (-x.trace().square()).exp()
        loss = (x.trace().tanh() * x.trace().sigmoid() + bump).mean()
        value = loss.item()
        return value, loss.backward(wrt=x)[x].numpy()

    return step


def chain(problem: problems.Chain) -> Step:
    """Return the end of the chain and the gradient of its start."""
    x, factor, term = [
        tt.from_numpy(one, one.shape) for one in (problem.x, problem.factor, problem.term)
    ]
    cotangent = tt.ones((problem.x.size,))

    def step() -> tuple[Any, ...]:
        y: Any = x.trace()
        for _ in range(problem.pairs):
            y = y * factor + term
        return y.numpy(), y.backward(cotangent, wrt=x)[x].numpy()

    return step


def inference(problem: problems.Mlp) -> Step:
    """Return the logits."""
    x = _matrix(problem.x)
    *hidden, out = [_linear(layer) for layer in problem.layers]
    model = ReluMlp(hidden=hidden, out=out)

    def step() -> tuple[Any, ...]:
        return (model.forward(x).numpy(),)

    return step


def _training_step(model: nn.Module, loss_of: Callable[[], Tensor0D[OwnedTape]]) -> Step:
    optimizer = optim.Adam(model, lr=LEARNING_RATE, betas=BETAS, eps=EPS)

    def step() -> tuple[Any, ...]:
        loss = loss_of()
        value = loss.item()
        optimizer.step(loss.backward(wrt=model))
        return (value,)

    return step


def _linear(layer: Affine) -> nn.Linear[int, int]:
    out_features, in_features = layer.weight.shape
    module = nn.Linear(in_features, out_features, rng=np.random.default_rng(0))
    module.weight = _matrix(layer.weight)
    module.bias = tt.from_numpy(layer.bias, layer.bias.shape)
    return module


def _matrix(array: Array) -> Tensor2D[int, int]:
    return tt.from_numpy(array, array.shape)


def _labels(array: Array) -> Tensor1D[int, NoneTape, np.int64]:
    return tt.from_numpy(array, array.shape)


STEPS: Steps = {
    "W1": relu_mlp,
    "W2": relu_mlp,
    "W3": gelu_mlp,
    "W6": elementwise,
    "W7": chain,
    "W9a": inference,
    "W9b": inference,
}
