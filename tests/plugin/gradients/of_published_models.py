"""Published models and games of several networks: the lines that lose a gradient are marked."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Generic, TypeVar
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
from tapetensor.typing import B, M, T

rng = np.random.default_rng(0)
Batch = Tensor2D[L[3], L[4]]


class Block(nn.Module):
    norm: nn.LayerNorm[L[4]]
    fc: nn.Linear[L[4], L[4]]

    def forward(self, x: Tensor2D[B, L[4], T]) -> Tensor2D[B, L[4], T]:
        return self.fc.forward(self.norm.forward(x.with_empty_tape())) + x


class Gpt(nn.Module):
    tokens: nn.Embedding[L[5], L[4]]
    places: nn.Embedding[L[9], L[4]]
    blocks: list[Block] = nn.repeat(2)
    norm: nn.LayerNorm[L[4]]
    cls: Tensor1D[L[4]] = nn.parameter(nn.init.ones)

    def embed(self, ids: Tensor1D[M, T, np.int64]) -> Tensor2D[M, L[4], T]:
        (m,) = ids.shape
        # E: gets no gradient here
        return self.tokens.forward(ids) + self.places.forward(tt.arange(m))

    def forward(self, ids: Tensor1D[M, T, np.int64]) -> Tensor2D[M, L[5], T]:
        x = self.embed(ids)
        for block in self.blocks:
            x = block.forward(x)
        x = self.norm.forward(x)
        head = self.tokens.weight.transpose()
        return x @ head  # E: gets no gradient here

    def with_class(self, ids: Tensor1D[M, T, np.int64]) -> Tensor2D[M, L[4], T]:
        x = self.tokens.forward(ids)
        shape = x.shape
        return x + self.cls.broadcast_to(shape)  # E: gets no gradient here

    def regularized(self, loss: Tensor0D[OwnedTape]) -> Tensor0D[OwnedTape]:
        for block in self.blocks:
            loss = loss + block.fc.weight.square().sum()
        return loss


def train(
    model: Gpt, ids: Tensor1D[L[3], NoneTape, np.int64], y: Tensor1D[L[3], NoneTape, np.int64]
) -> None:
    optimizer = optim.AdamW(model, lr=0.1)
    loss = losses.cross_entropy(model.forward(ids.trace()), y)
    loss = model.regularized(loss)  # E: gets no gradient here
    optimizer.step(loss.backward(wrt=model))


class Ae(nn.Module):
    """Tied autoencoder."""

    weight: Tensor2D[L[4], L[2]] = nn.parameter(nn.init.ones)

    def encode(self, x: Tensor2D[B, L[4], T]) -> Tensor2D[B, L[2], T]:
        return x @ self.weight

    def forward(self, x: Tensor2D[B, L[4], T]) -> Tensor2D[B, L[4], T]:
        code = self.encode(x)
        return code @ self.weight.transpose()  # E: gets no gradient here


class Lstm(nn.Module):
    gates: nn.Linear[L[8], L[4]]
    h0: Tensor2D[L[3], L[4]] = nn.parameter(nn.init.zeros)

    def forward(self, xs: list[Tensor2D[L[3], L[4], T]]) -> Tensor2D[L[3], L[4], T]:
        h = xs[0] + self.h0.tanh()  # E: gets no gradient here
        for x in xs[1:]:
            h = self.gates.forward(tt.concat((x, h), axis=1))
        return h


class Critic(nn.Module):
    fc: nn.Linear[L[4], L[1]]

    def forward(self, x: Tensor2D[B, L[4], T]) -> Tensor2D[B, L[1], T]:
        return self.fc.forward(x)


class Generator(nn.Module):
    fc: nn.Linear[L[4], L[4]]

    def forward(self, z: Tensor2D[B, L[4], T]) -> Tensor2D[B, L[4], T]:
        return self.fc.forward(z).tanh()


def wgan(critic: Critic, generator: Generator, real: Batch, z: Batch) -> None:
    optimizer = optim.RMSprop(critic, lr=0.1)
    fake = generator.forward(z)
    # E: gets no gradient here
    loss = critic.forward(fake).mean() - critic.forward(real.trace()).mean()
    optimizer.step(loss.backward(wrt=critic))
    g = optim.Adam(generator, lr=0.1)
    g.step((-critic.forward(generator.forward(z.trace()))).mean().backward(wrt=generator))


def wgan_lost_generator(critic: Critic, generator: Generator, z: Batch) -> Gradients:
    fake = generator.forward(z)
    # E: gets no gradient here
    return (-critic.forward(fake.trace())).mean().backward(wrt=generator)


def gan_right(critic: Critic, generator: Generator, real: Batch, z: Batch) -> None:
    fake = generator.forward(z).detach()
    loss = critic.forward(fake.trace()).mean() - critic.forward(real.trace()).mean()
    loss.backward(wrt=critic)
    fake2 = generator.forward(z)
    loss = critic.forward(fake2.trace()).mean() - critic.forward(real.trace()).mean()
    loss.backward(wrt=critic)


class Dqn(nn.Module):
    fc: nn.Linear[L[4], L[2]]

    def forward(self, x: Tensor2D[B, L[4], T]) -> Tensor2D[B, L[2], T]:
        return self.fc.forward(x)


def dqn(online: Dqn, target: Dqn, s: Batch, s2: Batch, r: Tensor1D[L[3]]) -> Gradients:
    best = target.forward(s2).max(axis=1)
    q = online.forward(s.trace()).max(axis=1)
    return losses.mse(q, r + 0.9 * best).backward(wrt=online)


def double_dqn(online: Dqn, target: Dqn, s: Batch, s2: Batch) -> Gradients:
    picks = (online.forward(s2).argmax(axis=1) == 0).astype(np.float32)
    best = target.forward(s2).max(axis=1) * picks
    td = online.forward(s.trace()).max(axis=1) - best
    return td.square().mean().backward(wrt=online)


def semi(online: Dqn, s: Batch, s2: Batch) -> Gradients:
    # E: gets no gradient here
    td = online.forward(s.trace()).max(axis=1) - 0.9 * online.forward(s2).max(axis=1)
    return td.square().mean().backward(wrt=online)


State = TypeVar("State")


class Loop(Generic[State]):
    def __init__(self, step: Callable[[State], State]) -> None:
        self.step = step

    def run(self, state: State, n: int) -> State:
        for _ in range(n):
            state = self.step(state)
        return state


def recursion(model: Dqn, x: Batch, depth: int) -> Tensor2D[L[3], L[2]]:
    if depth == 0:
        return model.forward(x)
    return recursion(model, x, depth - 1)


def by_recursion(model: Dqn, x: Batch) -> Gradients:
    # E: gets no gradient here
    return (model.forward(x.trace()) - recursion(model, x, 2)).mean().backward(wrt=model)


def scores(model: Dqn, x: Tensor2D[B, L[4], T]) -> Tensor2D[B, L[2], T]:
    h = model.fc.forward(x)
    return h / model.fc.weight.square().sum().sqrt()  # E: gets no gradient here


def ensemble_decay(models: list[Dqn], x: Batch) -> list[Gradients]:
    grads = []
    for model in models:
        # E: gets no gradient here
        loss = model.forward(x.trace()).mean() + model.fc.weight.square().sum()
        grads.append(loss.backward(wrt=model))
    return grads


class Multi(nn.Module):
    parts: dict[str, nn.Linear[L[4], L[4]]]

    def forward(self, x: Tensor2D[B, L[4], T]) -> Tensor2D[B, L[4], T]:
        h = self.parts["a"].forward(x)
        return h * self.parts["a"].bias.exp()  # E: gets no gradient here


def noise_contrastive(model: Dqn, x: Batch, others: list[Batch]) -> Gradients:
    positive = model.forward(x.trace()).mean()
    negatives = [model.forward(one).mean() for one in others]
    loss = positive - sum(negatives, tt.zeros(())) / float(len(others))  # E: gets no gradient here
    return loss.backward(wrt=model)


def early_return(model: Dqn, x: Batch, *, decay: float) -> Tensor0D[OwnedTape]:
    loss = model.forward(x.trace()).mean()
    if decay == 0.0:
        return loss
    return loss + decay * model.fc.weight.square().sum()  # E: gets no gradient here


x: Batch = tt.normal((3, 4), rng=rng)
student = tt.build(Dqn, rng=rng)
teacher = tt.build(Dqn, rng=rng)
optimizer = optim.Adam(student, lr=0.1)
for _ in range(2):
    out = student.forward(x.trace())
    loss = (out - teacher.forward(x)).square().mean()
    optimizer.step(loss.backward(wrt=student))
    out = student.forward(x.trace())
    loss = (out - student.forward(x)).square().mean()  # E: gets no gradient here
    with contextlib.suppress(tt.MissingGradientError):
        optimizer.step(loss.backward(wrt=student))
w = tt.normal((4, 2), rng=rng)
with contextlib.suppress(tt.MissingGradientError):
    (x.trace() @ w.tanh()).mean().backward(wrt=[w])  # E: gets no gradient here


def uses_global() -> None:
    # E: gets no gradient here
    loss = student.forward(x.trace()).mean() + student.fc.weight.square().sum()
    optimizer.step(loss.backward())


critic, generator = tt.build(Critic, rng=rng), tt.build(Generator, rng=rng)
gan_right(critic, generator, x, x)
dqn(student, teacher, x, x, tt.ones((3,)))
double_dqn(student, teacher, x, x)
