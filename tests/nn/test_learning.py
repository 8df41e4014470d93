"""Whole models learn: a hand-written descent on `parameters()`, on data made up here."""

from __future__ import annotations

from typing import Any, NewType
from typing import Literal as L

import numpy as np

import tapetensor as tt
from tapetensor import Gradients, Tensor2D, nn
from tapetensor.typing import B, T

Batch = NewType("Batch", int)


class Net(nn.Module):
    hidden: nn.Linear[L[2], L[16]]
    norm: nn.BatchNorm1d[L[16]]
    drop: nn.Dropout = nn.options(p=0.1)
    out: nn.Linear[L[16], L[1]]

    def forward(self, x: Tensor2D[B, L[2], T]) -> Tensor2D[B, L[1], T]:
        h: Tensor2D[B, L[16], T] = self.norm.forward(self.hidden.forward(x))
        return self.out.forward(self.drop.forward(h.tanh()))


def descend(model: nn.Module, grads: Gradients, rate: float) -> None:
    """Write the new values over the old tensors' fields, as a user might."""
    for name, parameter in model.parameters().items():
        path, _, field = name.rpartition(".")
        owner = model.modules()[path] if path else model
        setattr(owner, field, (parameter - grads[parameter] * rate).detach())


def xor(rng: np.random.Generator) -> tuple[Tensor2D[Batch, L[2]], Tensor2D[Batch, L[1]]]:
    points = rng.uniform(-1.0, 1.0, (64, 2)).astype(np.float32)
    labels = (points[:, :1] * points[:, 1:] > 0).astype(np.float32)
    x: Any = tt.from_numpy(points)
    y: Any = tt.from_numpy(labels)
    return x, y


def test_the_loss_falls_and_inference_agrees(rng: np.random.Generator) -> None:
    model = tt.build(Net, rng=rng)
    x, y = xor(rng)

    losses = []
    for _ in range(300):
        loss = (model.forward(x.trace()) - y).square().mean()
        losses.append(loss.item())
        grads = loss.backward(wrt=model)
        assert set(grads) == {one.id for one in model.parameters().values()}
        descend(model, grads, 0.2)

    assert losses[-1] < losses[0] / 4
    right = (model.forward(x).numpy() > 0.5) == (y.numpy() > 0.5)
    assert right.mean() > 0.9
