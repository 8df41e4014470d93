"""Gradients that are lost by way of methods, functions, loops and parts of published models."""

from __future__ import annotations

import contextlib
import functools
from dataclasses import dataclass
from typing import Generic, NamedTuple, TypeVar
from typing import Literal as L

import numpy as np
from typing_extensions import override

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
Rows = Tensor2D[B, L[4], T]
Ids = Tensor1D[M, T, np.int64]


def softplus_of(weight: Tensor1D[L[4], T]) -> Tensor1D[L[4], T]:
    return weight.softplus()


def positive(weight: Tensor1D[L[4]]) -> Tensor1D[L[4]]:
    kept = weight.abs()
    return kept + 1.0


class Scaled(nn.Module):
    weight: Tensor1D[L[4]] = nn.parameter(nn.init.ones)
    shift: Tensor1D[L[4]] = nn.parameter(nn.init.zeros)
    layer: nn.Linear[L[4], L[4]]

    def scale(self) -> Tensor1D[L[4]]:
        return self.weight.exp()

    @property
    def width(self) -> Tensor1D[L[4]]:
        return self.weight.square()

    @staticmethod
    def squashed(one: Tensor1D[L[4]]) -> Tensor1D[L[4]]:
        return one.tanh()

    def penalty(self) -> Tensor0D:
        total = tt.zeros(())
        for one in (self.weight, self.shift):
            total += one.square().sum()
        return total

    def encode(self, x: Rows[B, T]) -> Rows[B, T]:
        return self.layer.forward(x) * self.weight

    def scaled(self, x: Batch, tape: type[T]) -> Rows[L[3], T]:
        return x * self.weight.retaped(tape).exp()

    def by_kind_of_tape(self, x: Batch) -> Rows[L[3], OwnedTape]:
        return self.scaled(x, OwnedTape) + self.shift.exp()  # E: add: "self.shift" gets no gradient

    def by_method(self, x: Rows[B, T]) -> Rows[B, T]:
        return x * self.scale()  # E: multiply: "self.weight" gets no gradient here

    def by_property(self, x: Rows[B, T]) -> Rows[B, T]:
        return x * self.width  # E: multiply: "self.weight" gets no gradient here

    def by_static_method(self, x: Rows[B, T]) -> Rows[B, T]:
        return x + self.squashed(self.shift)  # E: add: "self.shift" gets no gradient here

    def by_function(self, x: Rows[B, T]) -> Rows[B, T]:
        x = x * softplus_of(self.weight)  # E: multiply: "self.weight" gets no gradient here
        return x * positive(self.weight)  # E: multiply: "self.weight" gets no gradient here

    def by_local_function(self, x: Rows[B, T]) -> Rows[B, T]:
        def gate(one: Tensor1D[L[4]]) -> Tensor1D[L[4]]:
            return one.sigmoid() * self.shift

        return x * gate(self.weight)  # E: multiply: "self.weight" gets no gradient here

    def by_name_twice(self, x: Rows[B, T], *, hard: bool) -> Rows[B, T]:
        gate = self.weight.sigmoid()
        if hard:
            gate = gate * 2.0
        return x * gate  # E: multiply: "self.weight" gets no gradient here

    def by_walrus(self, x: Rows[B, T]) -> Rows[B, T]:
        if (gate := self.weight.sigmoid()).ndim:
            x = x * gate  # E: multiply: "self.weight" gets no gradient here
        return x

    def by_tuple(self, x: Rows[B, T]) -> Rows[B, T]:
        gate, bias = self.weight.sigmoid(), self.shift
        return x * gate + bias  # E: multiply: "self.weight" gets no gradient here

    def by_try(self, x: Rows[B, T]) -> Rows[B, T]:
        try:
            gate = self.weight.sigmoid()
        except ValueError:
            gate = self.weight.tanh()
        return x * gate  # E: multiply: "self.weight" gets no gradient here

    def by_condition(self, x: Rows[B, T], *, hard: bool) -> Rows[B, T]:
        return x * (self.weight if hard else self.weight.sigmoid())  # E: multiply: "self.weight"

    def by_match(self, x: Rows[B, T], kind: str) -> Rows[B, T]:
        match kind:
            case "exp":
                gate = self.weight.exp()
            case _:
                gate = self.weight
        return x * gate  # E: multiply: "self.weight" gets no gradient here

    def by_dict(self, x: Rows[B, T]) -> Rows[B, T]:
        gates = {"a": self.weight.sigmoid(), "b": self.weight.tanh()}
        return x * gates["a"]  # E: multiply: "self.weight" gets no gradient here

    def cured_too_late(self, x: Rows[B, T]) -> Rows[B, T]:
        gate = self.weight.exp().retaped(x.tape_type)  # E: retaped: "self.weight" gets no gradient
        return x * gate

    def own_forward(self, a: Rows[B, OwnedTape], b: Rows[B, NoneTape]) -> Tensor0D[OwnedTape]:
        one = self.encode(a)
        other = self.encode(b)
        return (one - other).square().mean()  # E: subtract: "self" gets no gradient here

    def loss(self, x: Rows[B, NoneTape], y: Rows[B, NoneTape]) -> Tensor0D[OwnedTape]:
        loss = losses.mse(self.encode(x.trace()), y)
        return loss + 0.1 * self.penalty()  # E: add: "self.weight" gets no gradient here

    def chain(self, x: Rows[B, NoneTape]) -> Rows[B, OwnedTape]:
        h = self.layer.forward(x)
        return self.layer.forward(h.trace())  # E: trace: "self.layer" gets no gradient here


class Wider(Scaled):
    extra: Tensor1D[L[4]] = nn.parameter(nn.init.ones)

    @override
    def scale(self) -> Tensor1D[L[4]]:
        return super().scale() * self.extra.exp()

    def forward(self, x: Rows[B, T]) -> Rows[B, T]:
        return x * self.scale()  # E: multiply: "self.weight" gets no gradient here


class WeightNorm(nn.Module):
    """Salimans & Kingma (2016): a direction and a length."""

    direction: Tensor2D[L[4], L[4]] = nn.parameter(nn.init.ones)
    length: Tensor1D[L[4]] = nn.parameter(nn.init.ones)

    def forward(self, x: Rows[B, T]) -> Rows[B, T]:
        norm = self.direction.square().sum(axis=0).sqrt()
        weight = self.direction / norm * self.length
        return x @ weight  # E: matmul: "self.direction" gets no gradient here, for "divide"


class LoRA(nn.Module):
    base: nn.Linear[L[4], L[4]]
    down: Tensor2D[L[4], L[2]] = nn.parameter(nn.init.ones)
    up: Tensor2D[L[2], L[4]] = nn.parameter(nn.init.zeros)

    def forward(self, x: Rows[B, T]) -> Rows[B, T]:
        handle = x.with_empty_tape()
        change = self.down @ self.up
        return self.base.forward(x) + handle @ change  # E: matmul: "self.down" gets no gradient


class Mixture(nn.Module):
    experts: list[nn.Linear[L[4], L[4]]] = nn.repeat(2)
    mixing: Tensor1D[L[2]] = nn.parameter(nn.init.ones)

    def forward(self, x: Rows[B, T]) -> Rows[B, T]:
        shares = self.mixing.softmax()
        total = x * 0.0
        for number, expert in enumerate(self.experts):
            # E: multiply: "self.mixing" gets no gradient here
            total = total + expert.forward(total.with_empty_tape()) * shares[number]
        return total

    def penalty(self) -> Tensor0D:
        return sum((one.weight.square().sum() for one in self.experts), tt.zeros(()))


class Positions(nn.Module):
    tokens: nn.Embedding[L[5], L[4]]
    places: Tensor2D[L[9], L[4]] = nn.parameter(nn.init.zeros)

    def forward(self, ids: Ids[L[3], T]) -> Tensor2D[L[3], L[4], T]:
        return self.tokens.forward(ids) + self.places[0:3]  # E: add: "self.places" gets no


class Prototypes(nn.Module):
    body: nn.Linear[L[4], L[4]]

    def distances(self, query: Batch, support: Batch) -> Tensor2D[L[3], L[4], OwnedTape]:
        centre = self.body.forward(support).mean(axis=0)
        return self.body.forward(query.trace()) - centre  # E: subtract: "self.body" gets no


class Vae(nn.Module):
    encoder: nn.Linear[L[4], L[2]]
    decoder: nn.Linear[L[2], L[4]]

    def loss(self, x: Batch) -> Tensor0D[OwnedTape]:
        mean = self.encoder.forward(x)
        noise: Tensor2D[L[3], L[2]] = tt.normal((3, 2), rng=rng)
        z = mean + noise
        # An encoder that is frozen looks the same here.
        rebuilt = losses.mse(self.decoder.forward(z.trace()), x)
        return rebuilt + mean.square().mean()  # E: add: "self.encoder" gets no gradient here


class Settings(NamedTuple):
    decay: float


@dataclass
class Step:
    model: Scaled
    settings: Settings

    def __call__(self, x: Batch, y: Batch) -> Gradients:
        loss = losses.mse(self.model.encode(x.trace()), y)
        # E: add: "self.model.weight" gets no gradient here
        total = loss + self.settings.decay * self.model.weight.square().sum()
        return total.backward(wrt=self.model)


ModelT = TypeVar("ModelT", bound=Scaled)


class Runner(Generic[ModelT]):
    def __init__(self, model: ModelT) -> None:
        self.model = model

    def run(self, x: Batch) -> Tensor0D[OwnedTape]:
        out = self.model.encode(x.trace()).mean()
        return out + self.model.penalty()  # E: add: "self.model.weight" gets no gradient here


def elastic(model: Scaled, x: Batch, y: Batch, ratio: float = 0.5) -> Gradients:
    loss = losses.mse(model.encode(x.trace()), y)
    terms = [ratio * one.abs().sum() for one in model.parameters().values()]
    terms += [(1 - ratio) * one.square().sum() for one in model.parameters().values()]
    penalty = functools.reduce(lambda a, b: a + b, terms)
    return (loss + sum(terms, penalty)).backward(wrt=model)  # E: add: "one" gets no gradient here


def mixture_decay(model: Mixture, x: Batch) -> Gradients:
    out = model.forward(x.trace()).square().mean()
    return (out + model.penalty()).backward(wrt=model)  # E: add: "one.weight" gets no gradient


def cycle(f: Scaled, g: Scaled, x: Batch) -> Gradients:
    """CycleGAN: there and back, the way there without a tape."""
    there = f.encode(x)
    back = g.encode(there.trace())  # E: trace: "f" gets no gradient here
    return (back - x).square().mean().backward(wrt=[*f.parameters().values()])


def meta(model: Scaled, x: Batch, y: Batch) -> Gradients:
    """MAML: the inner step is taken without a tape."""
    inner = losses.mse(model.encode(x.trace()), y).backward(wrt=model)
    fast = model.weight - 0.1 * inner[model.weight]
    out = x.trace() * fast  # E: multiply: "model.weight" gets no gradient here
    return losses.mse(out, y).backward(wrt=model)


def two_steps(cell: Scaled, xs: list[Batch]) -> Gradients:
    """Backpropagation through time that begins at the last step only."""
    state: Batch = tt.zeros((3, 4))
    for x in xs:
        state = cell.encode(state + x)
    out = cell.encode(state.trace())  # E: trace: "cell" gets no gradient here
    return out.mean().backward(wrt=cell)


def triplet(model: Scaled, batch: tuple[Batch, Batch, Batch]) -> Tensor0D[OwnedTape]:
    anchor, near, far = batch
    a, n, f = model.encode(anchor.trace()), model.encode(near), model.encode(far)
    close = (a.with_empty_tape() - n).square().mean()  # E: subtract: "model" gets no gradient here
    return (close - (a - f).square().mean()).relu()  # E: subtract: "model" gets no gradient here


def main() -> None:
    model = tt.build(Scaled, rng=rng)
    optimizer = optim.Adam(model, lr=0.1)
    x: Batch = tt.ones((3, 4))
    for _ in range(2):
        loss = model.encode(x.trace()).mean() + model.penalty()  # E: add: "model.weight" gets no
        with contextlib.suppress(tt.MissingGradientError, tt.UnusedParametersError):
            optimizer.step(loss.backward(wrt=optimizer))


x: Batch = tt.normal((3, 4), rng=rng)
scaled, wider = tt.build(Scaled, rng=rng), tt.build(Wider, rng=rng)
main()
for method in (scaled.by_method, scaled.by_function, scaled.by_tuple, wider.forward):
    with contextlib.suppress(tt.MissingGradientError):
        method(x.trace()).mean().backward(wrt=scaled)
with contextlib.suppress(tt.MissingGradientError):
    elastic(scaled, x, x)
with contextlib.suppress(tt.MissingGradientError):
    meta(scaled, x, x)
with contextlib.suppress(tt.MissingGradientError):
    Step(scaled, Settings(0.1))(x, x)
