"""Right programs with several handles, states and networks, of which nothing is reported."""

from __future__ import annotations

import copy
import functools
from collections.abc import Iterator
from typing import Literal as L
from typing import NamedTuple

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
Batch = Tensor2D[L[3], L[4]]
Traced = Tensor2D[L[3], L[4], OwnedTape]


class Net(nn.Module):
    a: nn.Linear[L[4], L[4]]
    b: nn.Linear[L[4], L[4]]
    heads: list[nn.Linear[L[4], L[4]]] = nn.repeat(3)

    def forward(self, x: Tensor2D[B, L[4], T]) -> Tensor2D[B, L[4], T]:
        return self.b.forward(self.a.forward(x).relu())

    def unet(self, x: Tensor2D[B, L[4], T]) -> Tensor2D[B, L[4], T]:
        skips = []
        for head in self.heads:
            x = head.forward(x)
            skips.append(x.with_empty_tape())
        for head in self.heads:
            x = head.forward(x + skips.pop())
        return x

    def all_heads(self, x: Tensor2D[B, L[4], T]) -> Tensor2D[B, L[4], T]:
        h = self.a.forward(x)
        outs = [head.forward(h.with_empty_tape()) for head in self.heads]
        total = h
        for one in outs:
            total = total + one
        return total

    def by_calls_that_are_not_followed(self, x: Traced) -> Traced:
        parts = [head.forward(x.share()) for head in self.heads]
        total = functools.reduce(lambda one, other: one + other.share(), parts, parts[0].share())
        widest = max(parts, key=lambda one: one.shape[0])
        sums = self.a.forward(total) + self.b.forward(widest)
        return tt.stack([sums, self.b.forward(next(iter([x.share()])))]).sum(axis=0)

    def dense(self, x: Tensor2D[B, L[4], T]) -> Tensor2D[B, L[4], T]:
        for head in self.heads:
            skip = x.with_empty_tape()
            x = head.forward(x) + skip
        return x

    def uncertainty(self, x: Tensor2D[B, L[4], T]) -> Tensor2D[B, L[4]]:
        h = self.a.forward(x)
        return h.with_empty_tape().detach()

    def gated(self, x: Tensor2D[B, L[4], T]) -> Tensor2D[B, L[4], T]:
        h = self.a.forward(x)
        gate, h = h.with_empty_tape().sigmoid(), h
        return h * gate

    def kernel(self, x: Batch, tape: type[T]) -> Tensor2D[L[3], L[4], T]:
        return x * self.a.bias.retaped(tape).exp()

    def predicted(self, x: Batch, like: Batch) -> Batch:
        tape = like.tape_type
        y = self.kernel(x, NoneTape) + self.b.bias.exp()
        return y + self.kernel(x, tape) + self.b.bias.exp()

    def picked(self, x: Tensor2D[B, L[4], T]) -> Tensor2D[B, L[4], T]:
        best = self.a.weight.abs().sum(axis=1).argmax(-1)
        keep = self.a.weight.abs() > 0.1
        norm = self.a.weight.square().sum().item()
        h = self.a.forward(x) * (1.0 / norm)
        return h * keep.astype(np.float32).sum(axis=0) + float(best.item())


class Vq(nn.Module):
    encoder: nn.Linear[L[4], L[4]]
    codes: nn.Embedding[L[8], L[4]]

    def forward(self, x: Tensor2D[L[3], L[4], OwnedTape]) -> Tensor0D[OwnedTape]:
        z = self.encoder.forward(x)
        value = z.detach()
        table = self.codes.weight
        distances = value @ table.transpose()
        index = distances.argmax(axis=1)
        quantized = self.codes.forward(index)
        straight = z.with_empty_tape() + (quantized - value).detach()
        commitment = losses.mse(z, quantized)
        codebook = losses.mse(self.codes.forward(index.trace()), value)
        return straight.square().mean() + commitment + codebook


class Trainer:
    def __init__(self, model: Net) -> None:
        self.model = model
        self.ema = copy.deepcopy(model)
        self.optimizer = optim.Adam(model, lr=0.1)
        self.last: Tensor2D[L[3], L[4]] | None = None

    def step(self, x: Batch) -> float:
        target = self.ema.forward(x)
        loss = (self.model.forward(x.trace()) - target).square().mean()
        value = loss.item()
        self.optimizer.step(loss.backward(wrt=self.model))
        self.last = target
        return value


def consensus(models: list[Net], x: Batch) -> Tensor0D[OwnedTape]:
    reference = models[0].forward(x)
    total = (models[1].forward(x.trace()) - reference).square().mean()
    for one in models[2:]:
        total = total + (one.forward(x.trace()) - reference).square().mean()
    return total


def two_optimizers(net: Net, x: Batch) -> None:
    first, second = optim.Adam(net.a, lr=0.1), optim.Adam(net.b, lr=0.1)
    first.step((net.a.forward(x.trace()) * net.b.forward(x)).mean().backward())
    second.step((net.b.forward(x.trace()) * net.a.forward(x)).mean().backward(wrt=net.b))


def kept(net: Net, x: Batch, store: list[Traced]) -> Tensor0D[OwnedTape]:
    h = net.a.forward(x.trace())
    out = net.b.forward(h.with_empty_tape()).mean()
    store.append(h)
    return out


def in_dict(net: Net, x: Batch) -> dict[str, Traced]:
    h = net.a.forward(x.trace())
    out = net.b.forward(h.with_empty_tape())
    return {"h": h, "out": out}


def yields(net: Net, x: Batch) -> Iterator[Traced]:
    h = net.a.forward(x.trace())
    yield net.b.forward(h.with_empty_tape())
    yield h


def tape_apart(net: Net, x: Batch) -> Gradients:
    h = net.a.forward(x.trace())
    out = net.b.forward(h.with_empty_tape())
    value, tape = h.split_tape()
    print(value.mean().item())
    return (out.mean() + value.put_tape(tape).mean()).backward()


def explained(net: Net, x: Batch) -> Gradients:
    loss = net.forward(x.trace()).mean()
    with_l2 = loss.item() + net.a.weight.square().sum().item()
    print(with_l2)
    return loss.backward(wrt=net)


def penalty(weight: Tensor2D[L[4], L[4], T]) -> Tensor0D[T]:
    return weight.square().sum()


def with_traced_penalty(net: Net, x: Batch) -> Gradients:
    loss = net.forward(x.trace()).mean() + penalty(net.a.weight.trace())
    for layer in (net.a, net.b):
        loss = loss + penalty(layer.weight.trace())
    loss = loss + sum((penalty(h.weight.trace()) for h in net.heads), x.trace().sum())
    reported = penalty(net.a.weight)
    print(reported.item())
    return loss.backward(wrt=net)


def swapped(a: Net, b: Net, x: Batch) -> None:
    for _ in range(3):
        (a.forward(x.trace()) - b.forward(x)).mean().backward(wrt=a)
        a, b = b, a


def evaluated(net: Net, x: Batch, y: Batch) -> float:
    out = net.forward(x)
    loss = losses.mse(out, y) + net.a.weight.square().sum()
    return loss.item()


def gradient_penalty(net: Net, x: Batch, y: Batch) -> Gradients:
    inputs = tt.grad(lambda v: net.forward(v).sum(), x.trace())
    loss = losses.mse(net.forward(x.trace()), y) + inputs.square().mean()
    return loss.backward(wrt=net)


def least_squares(x: Batch, y: Tensor2D[L[3], L[2]]) -> None:
    w: Tensor2D[L[4], L[2]] = tt.zeros((4, 2))
    b: Tensor1D[L[2]] = tt.zeros((2,))
    velocity = tt.zeros((4, 2))
    for step in range(3):
        loss = losses.mse(x.trace() @ w + b, y)
        grads = loss.backward(wrt=[w, b])
        velocity = 0.9 * velocity + grads[w]
        w = w - 0.1 * velocity
        b = b - 0.1 * grads[b]
        centred = w - w.mean()
        print((x @ centred).mean().item(), step)


def saliency(net: Net, x: Batch) -> Batch:
    scaled = x * 2.0
    out = net.forward(scaled.trace()).max()
    return out.backward(wrt=[scaled])[scaled]


def normalized_input(net: Net, x: Batch) -> Tensor2D[L[4], L[4]]:
    mean, std = x.mean(axis=0), x.var(axis=0).sqrt()
    out = net.forward((x.trace() - mean) / std).mean()
    return out.backward(wrt=[net.a.weight])[net.a.weight]


def fine_tuned(net: Net, x: Batch, y: Batch) -> None:
    head: nn.Linear[L[4], L[4]] = nn.Linear(4, 4, rng=rng)
    optimizer = optim.Adam(head, lr=0.1)
    for _ in range(2):
        features = net.forward(x)
        loss = losses.mse(head.forward(features.trace()), y)
        optimizer.step(loss.backward(wrt=head))


def lagrangian(net: Net, multiplier: Net, x: Batch) -> Gradients:
    strength = multiplier.a.bias.exp().mean()
    loss = net.forward(x.trace()).mean() * strength
    return loss.backward(wrt=net)


def inverted(net: Net, x: Batch) -> Gradients:
    z = net.a.forward(x).detach()
    out = net.a.forward(z.trace()) + z
    return out.mean().backward(wrt=net)


def accumulating(net: Net, batches: list[Batch]) -> Gradients:
    grads = tt.Gradients()
    for x in batches:
        loss = net.forward(x.trace(grads)).mean()
        grads = loss.backward(wrt=net)
    return grads


class Link(NamedTuple):
    value: Traced
    next: Link | None = None


def linked(net: Net, x: Batch) -> list[Gradients]:
    link: Link | None = Link(net.forward(x.trace()), Link(net.forward(x.trace())))
    found = []
    while link is not None:
        found.append(link.value.mean().backward(wrt=net))
        link = link.next
    return found


def curriculum(net: Net, x: Batch) -> Gradients:
    difficulty = net.forward(x).square().mean(axis=1)
    order = difficulty.argsort()
    weights = (order < 2).astype(np.float32)
    weight = difficulty.detach().softmax()
    out = net.forward(x.trace()).mean(axis=1)
    return (out * weights * weight).sum().backward(wrt=net)


x: Batch = tt.normal((3, 4), rng=rng)
net, other = tt.build(Net, rng=rng), tt.build(Net, rng=rng)
for method in (
    net.unet,
    net.all_heads,
    net.by_calls_that_are_not_followed,
    net.dense,
    net.gated,
    net.picked,
):
    method(x.trace()).mean().backward()
net.predicted(x, x)
tt.build(Vq, rng=rng).forward(x.trace()).backward()
consensus([net, other], x).backward()
tape_apart(net, x)
explained(net, x)
with_traced_penalty(net, x)
swapped(net, other, x)
evaluated(net, x, x)
least_squares(x, tt.ones((3, 2)))
gradient_penalty(net, x, net.forward(x))
saliency(net, x)
normalized_input(net, x)
fine_tuned(net, x, x)
lagrangian(net, other, x)
inverted(net, x)
accumulating(net, [x, x])
linked(net, x)
curriculum(net, x)
