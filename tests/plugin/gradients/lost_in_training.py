"""Training functions, and the top level of a script, that lose a part of a gradient."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Literal as L

import numpy as np

import tapetensor as tt
from tapetensor import (
    Gradients,
    NoneTape,
    OwnedTape,
    Tensor0D,
    Tensor1D,
    Tensor2D,
    losses,
    nn,
    optim,
)
from tapetensor.typing import B, T

rng = np.random.default_rng(0)


class Mlp(nn.Module):
    hidden: nn.Linear[L[4], L[4]]
    out: nn.Linear[L[4], L[2]]

    def forward(self, x: Tensor2D[B, L[4], T]) -> Tensor2D[B, L[2], T]:
        return self.out.forward(self.hidden.forward(x).relu())

    def penalty(self) -> Tensor0D:
        return self.hidden.weight.square().sum() + self.out.weight.square().sum()

    @property
    def size(self) -> Tensor0D:
        return self.hidden.weight.abs().sum()


class Tied(nn.Module):
    embed: nn.Embedding[L[5], L[4]]
    body: nn.Linear[L[4], L[4]]


class Critic(nn.Module):
    layer: nn.Linear[L[4], L[1]]

    def forward(self, x: Tensor2D[B, L[4], T]) -> Tensor2D[B, L[1], T]:
        return self.layer.forward(x)


Batch = Tensor2D[L[3], L[4]]
Target = Tensor2D[L[3], L[2]]


def weight_decay(model: Mlp, x: Batch, y: Target) -> Gradients:
    # E: add: "model.hidden.weight" gets no gradient here, for "square" on a plain value is not
    # E: recorded; write model.hidden.weight.retaped(OwnedTape)
    # E: or model.hidden.weight.detach() for a constant  [module-gradient]
    loss = losses.mse(model.forward(x.trace()), y) + model.hidden.weight.square().sum()
    return loss.backward(wrt=model)


def weight_decay_in_steps(model: Mlp, x: Batch, y: Target) -> Gradients:
    loss = losses.mse(model.forward(x.trace()), y)
    decay = 0.1 * model.hidden.weight.square().sum()
    loss = loss + decay  # E: add: "model.hidden.weight" gets no gradient here
    return loss.backward(wrt=model)


def augmented(model: Mlp, x: Batch, y: Target) -> Tensor0D[OwnedTape]:
    loss = losses.mse(model.forward(x.trace()), y)
    loss += model.out.weight.abs().sum()  # E: add: "model.out.weight" gets no gradient here
    return loss


def decay_in_a_loop(model: Mlp, x: Batch, y: Target) -> Gradients:
    loss = losses.mse(model.forward(x.trace()), y)
    for layer in (model.hidden, model.out):
        loss = loss + layer.weight.square().sum()  # E: add: "model.hidden.weight" gets no gradient
    return loss.backward(wrt=model)


def decay_of_all(model: Mlp, x: Batch, y: Target) -> Gradients:
    loss = losses.mse(model.forward(x.trace()), y)
    for parameter in model.parameters().values():
        loss = loss + parameter.square().sum()  # E: add: "parameter" gets no gradient
    return loss.backward(wrt=model)


def decay_by_name(model: Mlp, x: Batch, y: Target) -> Gradients:
    total: Tensor0D = tt.zeros(())
    for name, parameter in model.parameters().items():
        if name.endswith("weight"):
            total = total + parameter.square().sum()
    loss = losses.mse(model.forward(x.trace()), y)
    return (loss + 0.1 * total).backward(wrt=model)  # E: add: "parameter" gets no


def decay_by_sum(model: Mlp, x: Batch, y: Target) -> Gradients:
    loss = losses.mse(model.forward(x.trace()), y)
    weights = [model.hidden.weight, model.hidden.weight]
    # E: add: "model.hidden.weight" gets no gradient here
    loss = loss + sum((one.square().sum() for one in weights), tt.zeros(()))
    return loss.backward(wrt=model)


def decay_by_method(model: Mlp, x: Batch, y: Target) -> Gradients:
    loss = losses.mse(model.forward(x.trace()), y)
    return (loss + model.penalty()).backward(wrt=model)  # E: add: "model.hidden.weight" gets no


def decay_by_property(model: Mlp, x: Batch, y: Target) -> Gradients:
    loss = losses.mse(model.forward(x.trace()), y)
    return (loss + model.size).backward(wrt=model)  # E: add: "model.hidden.weight" gets no gradient


def squared(weight: Tensor2D[B, L[4]]) -> Tensor0D:
    return weight.square().sum()


def decay_by_function(model: Mlp, x: Batch, y: Target) -> Gradients:
    loss = losses.mse(model.forward(x.trace()), y)
    loss = loss + squared(model.hidden.weight)  # E: add: "model.hidden.weight" gets no gradient
    return loss.backward(wrt=model)


def with_decay(loss: Tensor0D[OwnedTape], model: Mlp) -> Tensor0D[OwnedTape]:
    return loss + model.hidden.weight.square().sum()


def decay_in_a_function(model: Mlp, x: Batch, y: Target) -> Gradients:
    loss = losses.mse(model.forward(x.trace()), y)
    # E: with_decay: "model.hidden.weight" gets no gradient here, for "square" on a plain value is
    # E: not recorded by "add" on line
    return with_decay(loss, model).backward(wrt=model)


def decay_by_local_function(model: Mlp, x: Batch, y: Target) -> Gradients:
    def penalty() -> Tensor0D:
        return model.hidden.weight.square().sum()

    strength: Callable[[], Tensor0D] = lambda: model.out.bias.abs().sum()  # noqa: E731
    loss = losses.mse(model.forward(x.trace()), y)
    loss = loss + penalty()  # E: add: "model.hidden.weight" gets no gradient here
    loss = loss + strength()  # E: add: "model.out.bias" gets no gradient here
    return loss.backward(wrt=model)


def decay_of_one_kind(model: Mlp, x: Batch, y: Target, *, lasso: bool) -> Gradients:
    weight = model.hidden.weight
    penalty = weight.abs().sum() if lasso else weight.square().sum()
    loss = losses.mse(model.forward(x.trace()), y)
    return (loss + penalty).backward(wrt=model)  # E: add: "model.hidden.weight" gets no gradient


def decay_in_branches(model: Mlp, x: Batch, y: Target, *, lasso: bool) -> Gradients:
    if lasso:
        penalty = model.hidden.weight.abs().sum()
    else:
        penalty = tt.zeros(())
    loss = losses.mse(model.forward(x.trace()), y)
    return (loss + penalty).backward(wrt=model)  # E: add: "model.hidden.weight" gets no gradient


def decay_in_a_tuple(model: Mlp, x: Batch, y: Target) -> Gradients:
    terms = (losses.mse(model.forward(x.trace()), y), model.hidden.weight.square().sum())
    loss, penalty = terms
    return (loss + penalty).backward(wrt=model)  # E: add: "model.hidden.weight" gets no gradient


def tied_weights(model: Tied, ids: Tensor1D[L[3], NoneTape, np.int64]) -> Gradients:
    h = model.body.forward(model.embed.forward(ids.trace()))
    logits = h @ model.embed.weight.transpose()  # E: matmul: "model.embed.weight" gets no gradient
    return logits.square().mean().backward(wrt=model)


def tied_elsewhere(model: Tied, x: Batch) -> Tensor0D[OwnedTape]:
    h = model.body.forward(x.trace())
    return (h @ model.embed.weight.transpose()).mean()  # E: matmul: "model.embed.weight" gets no


def siamese(model: Mlp, a: Batch, b: Batch) -> Gradients:
    # E: subtract: "model" gets no gradient here, for a layer on a plain value is not recorded
    # E: write model.forward(b.retaped(OwnedTape)), or model.forward(b).detach() for a constant
    return (model.forward(a.trace()) - model.forward(b)).square().mean().backward(wrt=model)


def siamese_called(model: Mlp, a: Batch, b: Batch) -> Tensor0D[OwnedTape]:
    one, other = model(a.trace()), model(b)
    return (one - other).square().mean()  # E: subtract: "model" gets no gradient here


def contrastive(model: Mlp, anchor: Batch, near: Batch, far: Batch) -> Gradients:
    a = model.forward(anchor.trace())
    n = model.forward(near)
    f = model.forward(far)
    close = (a.with_empty_tape() - n).square().mean()  # E: subtract: "model" gets no gradient here
    apart = (a - f).square().mean()  # E: subtract: "model" gets no gradient here
    return (close - apart).relu().backward(wrt=model)


def gan(critic: Critic, real: Batch, fake: Batch) -> Gradients:
    ones: Tensor2D[L[3], L[1]] = tt.ones((3, 1))
    zeros: Tensor2D[L[3], L[1]] = tt.zeros((3, 1))
    bce = losses.binary_cross_entropy_with_logits
    on_real = losses.binary_cross_entropy_with_logits(critic.forward(real.trace()), ones)
    on_fake = losses.binary_cross_entropy_with_logits(critic.forward(fake.detach()), zeros)
    loss = on_real + on_fake  # E: add: "critic" gets no gradient here
    grads = loss.backward(wrt=critic)
    # E: add: "critic" gets no gradient here
    other = bce(critic.forward(real.trace()), ones) + bce(critic.forward(fake), zeros)
    other.backward(wrt=critic)
    return grads


def late_tape(model: Mlp, x: Batch) -> Gradients:
    h = model.hidden.forward(x)
    # E: trace: "model.hidden" gets no gradient here, for a layer on a plain value is not recorded,
    # E: and a tape that comes after it is too late; write model.hidden.forward(x.retaped(OwnedTape)
    out = model.hidden.forward(h.trace())
    return out.square().mean().backward(wrt=model)


def late_tape_for_all(model: Mlp, x: Batch) -> Gradients:
    h = model.hidden.forward(x)
    loss = model.out.forward(h.trace()).mean()  # E: trace: "model.hidden" gets no gradient here
    return loss.backward(wrt=model)


def with_optimizer(x: Batch, y: Target) -> None:
    model = tt.build(Mlp, rng=rng)
    optimizer = optim.Sgd(model, lr=0.1)
    for _ in range(2):
        loss = losses.mse(model.forward(x.trace()), y)
        loss = loss + model.penalty()  # E: add: "model.hidden.weight" gets no gradient here
        optimizer.step(loss.backward())


class Trainer:
    def __init__(self, model: Mlp) -> None:
        self.model = model
        self.optimizer = optim.Sgd(model, lr=0.1)

    def loss(self, x: Batch, y: Target) -> Tensor0D[OwnedTape]:
        loss = losses.mse(self.model.forward(x.trace()), y)
        return loss + self.model.penalty()  # E: add: "self.model.hidden.weight" gets no gradient

    def step(self, x: Batch, y: Target) -> None:
        grads = self.loss(x, y).backward(wrt=self.model)
        self.optimizer.step(grads)


def gate(model: Mlp, x: Batch) -> Gradients:
    scale = (-model.out.bias).exp()
    y = model.forward(x.trace()) * scale  # E: multiply: "model.out.bias" gets no gradient here
    return y.mean().backward(wrt=model)


def accumulated(model: Mlp, x: Batch, y: Target) -> Gradients:
    grads = losses.mse(model.forward(x.trace()), y).backward(wrt=model)
    loss = losses.mse(model.forward(x.trace(grads)), y)
    return (loss + model.penalty()).backward(wrt=model)  # E: add: "model.hidden.weight" gets no


def asked_for_alone(model: Mlp, x: Batch) -> Tensor2D[L[4], L[4]]:
    h = x.trace() @ model.hidden.weight.square()  # E: matmul: "model.hidden.weight" gets no
    return h.sum().backward()[model.hidden.weight]


def concatenated(model: Mlp, a: Batch, b: Batch) -> Gradients:
    # E: concat: "model" gets no gradient here
    both = tt.concat((model.forward(a.trace()), model.forward(b)))
    return both.square().mean().backward(wrt=model)


def checkpointed(model: Mlp, x: Batch) -> Gradients:
    h = tt.checkpoint(model.hidden.forward, x.trace())
    loss = h.mean() + model.hidden.weight.square().sum()  # E: add: "model.hidden.weight" gets no
    return loss.backward(wrt=model)


def of_a_list(models: list[Mlp], x: Batch, y: Target) -> Tensor0D[OwnedTape]:
    total = losses.mse(models[0].forward(x.trace()), y)
    return total + models[0].penalty()  # E: add: "models[0].hidden.weight" gets no


def optimizers_of_two_models(x: Batch) -> None:
    model, critic = tt.build(Mlp, rng=rng), tt.build(Critic, rng=rng)
    of_model, of_critic = optim.Sgd(model, lr=0.1), optim.Sgd(critic, lr=0.1)
    loss = model.forward(x.trace()).mean() + critic.forward(x.trace()).mean()
    twin, third = loss.share(), loss.share()
    of_model.step(loss.backward(wrt=model))
    with contextlib.suppress(tt.UnusedParametersError):
        # E: Sgd.step: these are the gradients by "model", of which Sgd updates nothing: none of its
        # E: write backward(wrt=...) with the model that Sgd was made for  [module-gradient]
        of_critic.step(twin.backward(wrt=model))
    grads = third.backward(wrt=critic)
    of_critic.step(grads)
    with contextlib.suppress(tt.UnusedParametersError):
        of_model.step(grads)  # E: Sgd.step: these are the gradients by "critic"
    again = model.forward(x.trace()).mean()
    with contextlib.suppress(tt.UnusedParametersError):
        of_model.step(again.backward(wrt=again))  # E: Sgd.step: these are the gradients by other
    noise: Batch = tt.normal((3, 4), rng=rng)
    with contextlib.suppress(tt.UnusedParametersError):
        # E: Sgd.step: these are the gradients by "noise"
        of_model.step(model.forward(noise.trace()).mean().backward(wrt=noise))


x: Batch = tt.normal((3, 4), rng=rng)
y: Target = tt.normal((3, 2), rng=rng)
model = tt.build(Mlp, rng=rng)
optimizers_of_two_models(x)
tied = tt.build(Tied, rng=rng)
ids: Tensor1D[L[3], NoneTape, np.int64] = tt.arange(3)
with contextlib.suppress(tt.MissingGradientError):
    loss = losses.mse(model.forward(x.trace()), y)
    loss = loss + model.hidden.weight.square().sum()  # E: add: "model.hidden.weight" gets no
    loss.backward(wrt=model)
for step in (weight_decay, weight_decay_in_steps, augmented, decay_in_a_loop, decay_of_all):
    with contextlib.suppress(tt.MissingGradientError):
        step(model, x, y)
