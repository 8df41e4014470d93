"""hodu's guide makes optimizers of lists of tensors, and of one's own."""

from __future__ import annotations

from typing import Any
from typing import Literal as L

import numpy as np
import pytest
from typing_extensions import override

import tapetensor as tt
from tapetensor import Tensor1D, optim
from tapetensor.testing import check_optimizer
from tapetensor.typing import Array

w: Tensor1D[L[2]] = tt.ones((2,))
b: Tensor1D[L[2]] = tt.zeros((2,))


def loss() -> tt.Gradients:
    return (w.trace() * w + b).sum().backward()


optim.Sgd([w, b], 0.25).step(loss())
optim.Adam({"w": w, "b": b}, lr=0.1).step(loss())
assert list(optim.Sgd({"w": w, "b": b}).parameters()) == ["w", "b"]
with pytest.raises(tt.ArgumentTypeError):
    optim.Sgd([1.0])  # E: incompatible type


class Own(optim.Optimizer):
    def __init__(self, model: optim.optimizer.Parameters, update: Any) -> None:
        super().__init__(model, 0.1, update, [optim.State("mean")], 0.0, False)

    @override
    def _options(self, count: int) -> tuple[Any, ...]:
        return (self.lr,)


def right(out: Array, p: Array, g: Array, mean: Array, scratch: Any, lr: float) -> None:
    mean += 0.5 * (g - mean)
    out[...] = p - lr * mean


def formula(p: Array, g: Array, state: dict[str, Array], step: int) -> Array:
    before = state.get("mean", np.zeros_like(p))
    state["mean"] = before + 0.5 * (g - before)
    return np.asarray(p - 0.1 * state["mean"])


def too_few(out: Array, p: Array, g: Array, lr: float) -> None:
    out[...] = p - lr * g


def nothing(out: Array, p: Array, g: Array, mean: Array, scratch: Any, lr: float) -> None:
    p = p - lr * g


def returning(out: Array, p: Array, g: Array, mean: Array, scratch: Any, lr: float) -> Array:
    return p - lr * g


def in_place(out: Array, p: Array, g: Array, mean: Array, scratch: Any, lr: float) -> None:
    p -= lr * g
    out[...] = p


def late(out: Array, p: Array, g: Array, mean: Array, scratch: Any, lr: float) -> None:
    out[...] = p
    out -= lr * g


check_optimizer(lambda tensors: Own(tensors, right), formula, rng=np.random.default_rng(0))
WRONG: list[tuple[Any, str]] = [
    (too_few, "is given out, parameter, gradient, 1 of state, scratch, 1 that"),
    (nothing, "writes nothing to its argument out"),
    (returning, "returns ndarray"),
    (in_place, "writes to the parameter"),
    (late, "reads the gradient after"),
]
for update, words in WRONG:
    before = w.numpy().copy()
    with pytest.raises((tt.ArgumentTypeError, tt.ArgumentValueError), match=words):
        Own([w, b], update).step(loss())
    assert (w.numpy() == before).all()
