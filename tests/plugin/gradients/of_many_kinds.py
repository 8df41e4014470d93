"""Programs of many kinds: a line that loses a gradient is marked, and no other is reported."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol
from typing import Literal as L

import numpy as np

import tapetensor as tt
from tapetensor import Gradients, OwnedTape, Tensor0D, Tensor1D, Tensor2D, losses, nn, optim
from tapetensor.typing import B, N, T

rng = np.random.default_rng(0)
Batch = Tensor2D[L[3], L[4]]


class Net(nn.Module):
    a: nn.Linear[L[4], L[4]]
    b: nn.Linear[L[4], L[4]]
    temperature: Tensor0D = nn.parameter(nn.init.ones)

    def forward(self, x: Tensor2D[B, L[4], T]) -> Tensor2D[B, L[4], T]:
        return self.b.forward(self.a.forward(x).relu())

    def logits(self, x: Tensor2D[B, L[4], T]) -> Tensor2D[B, L[4], T]:
        return self.forward(x) * self.temperature


@dataclass
class Out:
    logits: Tensor2D[L[3], L[4], OwnedTape]
    reg: Tensor0D


class Pairing(NamedTuple):
    one: Tensor2D[L[3], L[4], OwnedTape]
    two: Tensor2D[L[3], L[4]]


class HasForward(Protocol):
    def forward(self, x: Tensor2D[B, L[4], T]) -> Tensor2D[B, L[4], T]: ...


def bound(model: Net, x: Batch, y: Batch) -> Gradients:
    f = model.forward
    return (f(x.trace()) - f(y)).square().mean().backward(wrt=model)  # E: gets no gradient here


def in_list(model: Net, x: Batch, y: Batch) -> Gradients:
    outs = {}
    outs["x"] = model(y)
    return (model(x.trace()) - outs["x"]).mean().backward(wrt=model)  # E: gets no gradient here


def mapped(model: Net, x: Batch, y: Batch) -> Gradients:
    negatives = list(map(model.forward, [y, y]))
    return (model(x.trace()) - negatives[0]).mean().backward(wrt=model)  # E: gets no gradient here


def data(model: Net, x: Batch) -> Gradients:
    out = Out(model(x.trace()), model.a.weight.square().sum())
    return (out.logits.mean() + out.reg).backward(wrt=model)  # E: gets no gradient here


def named(model: Net, x: Batch) -> Gradients:
    pair = Pairing(model(x.trace()), model(x))
    return (pair.one - pair.two).mean().backward(wrt=model)  # E: gets no gradient here


def bare(x: Batch) -> Gradients:
    w: Tensor2D[L[4], L[4]] = tt.normal((4, 4), rng=rng)
    b: Tensor1D[L[4]] = tt.zeros((4,))
    out = x.trace() @ w + b
    loss = out.square().mean() + 0.1 * w.square().sum()  # E: gets no gradient here
    return loss.backward(wrt=[w, b])


def bare_parameters(w: Tensor2D[L[4], L[4]], x: Batch) -> Tensor2D[L[4], L[4]]:
    loss = (x.trace() @ w.transpose()).mean()  # E: gets no gradient here
    grads = loss.backward()
    return grads[w]


def my_loss(p: Tensor2D[B, L[4], T], t: Tensor2D[B, L[4]]) -> Tensor0D[T]:
    return (p - t).square().mean()


def by_my_loss(model: Net, x: Batch) -> Gradients:
    return my_loss(model(x.trace()), model(x)).backward(wrt=model)  # E: gets no gradient here


def closure(model: Net) -> Callable[[Batch], Tensor0D[OwnedTape]]:
    def loss(x: Batch) -> Tensor0D[OwnedTape]:
        return model(x.trace()).mean() + model.a.weight.square().sum()  # E: gets no gradient here

    return loss


def partial(model: Net, x: Batch) -> Gradients:
    f = functools.partial(model.forward)
    return (model(x.trace()) - f(x)).mean().backward(wrt=model)  # E: gets no gradient here


def generic(model: HasForward, x: Batch) -> Tensor0D[OwnedTape]:
    return (model.forward(x.trace()) - model.forward(x)).mean()  # E: gets no gradient here


def starred(*terms: Tensor0D) -> Tensor0D:
    return sum(terms[1:], terms[0])


def with_star(model: Net, x: Batch) -> Gradients:
    reg = starred(model.a.weight.square().sum(), model.b.weight.square().sum())
    return (model(x.trace()).mean() + reg).backward(wrt=model)  # E: gets no gradient here


def layers(model: Net) -> Iterator[nn.Linear[L[4], L[4]]]:
    yield model.a
    yield model.b


def by_generator(model: Net, x: Batch) -> Gradients:
    loss = model(x.trace()).mean()
    for one in layers(model):
        loss = loss + one.weight.square().sum()  # E: gets no gradient here
    return loss.backward(wrt=model)


def by_modules(model: Net, x: Batch) -> Gradients:
    loss = model(x.trace()).mean()
    for one in model.modules().values():
        if isinstance(one, nn.Linear):
            loss = loss + one.weight.square().sum()  # E: gets no gradient here
    return loss.backward(wrt=model)


def sequential(x: Batch) -> Gradients:
    first: nn.Linear[L[4], L[4]] = nn.Linear(4, 4, rng=rng)
    model = nn.Sequential(first, nn.ReLU())
    loss = model(x.trace()).mean() + first.weight.square().sum()  # E: gets no gradient here
    return loss.backward(wrt=model)


def sequential_layers(x: Batch) -> Gradients:
    model = tt.build(nn.Sequential[nn.Linear[L[4], L[4]], nn.ReLU], rng=rng)
    # E: gets no gradient here
    loss = model(x.trace()).mean() + model.layers[0].weight.square().sum()
    return loss.backward(wrt=model)


def temperature(model: Net, x: Batch) -> Gradients:
    out = model(x.trace()) / model.temperature.exp()  # E: gets no gradient here
    return out.mean().backward(wrt=model)


def compiled(model: Net, x: Batch) -> Gradients:
    @tt.compile
    def step(x: Batch) -> Gradients:
        loss = model(x.trace()).mean()
        # E: gets no gradient here
        return (loss + model.a.weight.square().sum()).backward(wrt=model)

    return step(x)


def einsum(model: Net, x: Batch) -> Gradients:
    h = model(x.trace())
    z = tt.einsum("ij,kj->ik", h, model.a.weight.tanh())  # E: gets no gradient here
    return z.mean().backward(wrt=model)


def attention(model: Net, x: Batch) -> Gradients:
    q = model.a(x.trace())
    k = model.a(x)
    out = (q @ k.transpose()).softmax().mean()  # E: gets no gradient here
    return out.backward(wrt=model)


def where(model: Net, x: Batch) -> Gradients:
    out = tt.where(x > 0, model(x.trace()), model(x))  # E: gets no gradient here
    return out.mean().backward(wrt=model)


def anything(model: Any, x: Batch) -> Any:
    return model(x.trace()) + model.w.exp()


def split(model: Net, x: Batch) -> Gradients:
    value, tape = model(x.trace()).split_tape()
    loss = (value * model.temperature.exp()).put_tape(tape)  # E: gets no gradient here
    return loss.mean().backward(wrt=model)


class Aux(nn.Module):
    gate: nn.Linear[L[4], L[2]]
    out: nn.Linear[L[4], L[4]]

    def balance(self, x: Tensor2D[B, L[4]]) -> Tensor0D:
        return self.gate.forward(x).softmax().mean(axis=0).square().sum()

    def forward(self, x: Tensor2D[B, L[4], T]) -> Tensor2D[B, L[4], T]:
        return self.out.forward(x)


def aux(model: Aux, x: Batch) -> Gradients:
    loss = model(x.trace()).mean()
    return (loss + model.balance(x)).backward(wrt=model)  # E: gets no gradient here


def epochs(model: Net, batches: list[tuple[Batch, Batch]]) -> float:
    optimizer = optim.Adam(model, lr=0.1)
    total = 0.0
    for epoch in range(3):
        for x, y in batches:
            prediction = model.forward(x.trace())
            loss = losses.mse(prediction, y)
            if epoch > 1:
                # E: add: "model.a.weight" gets no gradient here
                loss = loss + 1e-3 * sum(
                    (w.square().sum() for w in (model.a.weight, model.b.weight)), tt.zeros(())
                )
            total += loss.item()
            optimizer.step(loss.backward(wrt=model))
    return total


def while_loop(model: Net, x: Batch) -> Gradients:
    steps = 0
    h = x
    while steps < 3:
        h = model(h)
        steps += 1
    return model(h.trace()).mean().backward(wrt=model)  # E: gets no gradient here


def spectral(model: Net, x: Batch) -> Gradients:
    u: Tensor1D[L[4]] = tt.ones((4,))
    v = model.a.weight.transpose() @ u
    sigma = u @ model.a.weight @ v
    w = model.a.weight / sigma
    return (x.trace() @ w).mean().backward(wrt=model)  # E: gets no gradient here


def mean_of(*values: Tensor0D[OwnedTape]) -> Tensor0D[OwnedTape]:
    total = values[0]
    for one in values[1:]:
        total = total + one
    return total / float(len(values))


def stack(model: Net, x: Batch) -> Gradients:
    rows = [model(x.trace()).mean()]
    rows.append(model(x.trace()).mean())
    # E: gets no gradient here
    z = tt.stack(rows).mean() + tt.stack([model(x).mean(), model(x).mean()]).mean()
    return z.backward(wrt=model)


def reinforce(policy: Net, value: Net, x: Batch) -> Gradients:
    baseline = value(x)
    advantage = 1.0 - baseline
    logp = policy(x.trace()).log_softmax()
    loss = -(logp * advantage).mean()
    return loss.backward(wrt=policy)


def actor_critic(net: Net, x: Batch) -> Gradients:
    advantage = 1.0 - net.b(x)
    logp = net.a(x.trace()).log_softmax()
    return (logp * advantage).mean().backward(wrt=net)  # E: gets no gradient here


def normalize(x: Tensor2D[B, N, T]) -> Tensor2D[B, N, T]:
    return x / x.with_empty_tape().square().sum(axis=1, keepdims=True).sqrt()


def simclr(model: Net, x: Batch, y: Batch) -> Gradients:
    z1, z2 = normalize(model(x.trace())), normalize(model(y))
    return (z1 @ z2.transpose()).mean().backward(wrt=model)  # E: gets no gradient here


def ppo(new: Net, old: Net, x: Batch) -> Gradients:
    ratio = (new(x.trace()).log_softmax() - old(x).log_softmax()).exp()
    return ratio.mean().backward(wrt=new)


def ppo_self(new: Net, x: Batch) -> Gradients:
    before = new(x).log_softmax().detach()
    ratio = (new(x.trace()).log_softmax() - before).exp()
    return ratio.mean().backward(wrt=new)


def ema(student: Net, teacher: Net, x: Batch) -> None:
    optimizer = optim.Adam(nn.Selection(student, without=["temperature"]), lr=0.1)
    for _ in range(3):
        loss = (student(x.trace()) - teacher(x)).square().mean()
        optimizer.step(loss.backward(wrt=student))
        new = teacher.parameters()
        for name, p in student.parameters().items():
            new[name] = new[name] * 0.9 + p * 0.1
        teacher.a.weight = teacher.a.weight * 0.9 + student.a.weight * 0.1


def ema_in_place(x: Batch) -> None:
    online = tt.build(Net, rng=rng)
    target = tt.build(Net, rng=rng)
    for _ in range(3):
        loss = (online(x.trace()) - target(x)).square().mean()
        loss.backward(wrt=online)
        target.a.weight = target.a.weight * 0.9 + online.a.weight * 0.1


def lr_by_norm(model: Net, x: Batch) -> None:
    grads = model(x.trace()).mean().backward(wrt=model)
    for p in model.parameters().values():
        g = grads[p]
        ratio = p.square().sum().sqrt() / g.square().sum().sqrt()
        print((p - 0.1 * ratio * g).shape)


def fgsm(model: Net, x: Batch, y: Batch) -> Batch:
    loss = losses.mse(model(x.trace()), y)
    g = loss.backward(wrt=[x])[x]
    return x + 0.1 * g.tanh()


def adversarial(model: Net, x: Batch, y: Batch) -> Gradients:
    adv = fgsm(model, x, y)
    loss = losses.mse(model(adv.trace()), y) + losses.mse(model(x.trace()), y)
    return loss.backward(wrt=model)


def trades(model: Net, x: Batch, adv: Batch) -> Gradients:
    clean = model(x)
    loss = losses.kl_div(model(adv.trace()), clean.softmax())
    return loss.backward(wrt=model)


def slope_of_a_plain_value(model: Net, x: Batch) -> Gradients:
    slope = tt.grad(lambda v: model.forward(v).sum(), x)
    loss = model.forward(x.trace()).mean()
    loss = loss + slope.square().mean()  # E: for "grad" at a plain value is not recorded
    return loss.backward(wrt=model)


def slope_of_a_traced_value(model: Net, x: Batch) -> Gradients:
    slope = tt.grad(lambda v: model.forward(v).sum(), x.trace())
    return (model.forward(x.trace()).mean() + slope.square().mean()).backward(wrt=model.a.weight)


def saliency(model: Net, x: Batch) -> Gradients:
    slope = tt.grad(lambda v: model.forward(v).sum(), x)
    print(slope.abs().mean().item())
    moved = (x + slope * 0.1).detach()
    return model.forward(moved.trace()).mean().backward(wrt=model)


def slope_of_a_teacher(model: Net, other: Net, x: Batch) -> Gradients:
    slope = tt.grad(lambda v: other.forward(v).sum(), x)
    return (model.forward(x.trace()) - slope).square().mean().backward(wrt=model)


def noise_scale(model: Net, x: Batch) -> Gradients:
    scale = x.square().mean().sqrt()
    h = x.trace() / scale
    return model(h).mean().backward(wrt=model)


def two_tasks(model: Net, x: Batch) -> Gradients:
    h = model.a(x.trace())
    one = model.b(h.with_empty_tape()).mean()
    other = h.square().mean()
    return (one + other).backward(wrt=model)


def early(model: Net, x: Batch) -> Tensor2D[L[3], L[4], OwnedTape] | None:
    h = model.a(x.trace())
    y = model.b(h.with_empty_tape())
    if y.mean().item() > 0:
        return None
    return h


def try_again(model: Net, x: Batch) -> Gradients:
    h = model.a(x.trace())
    try:
        out = model.b(h.with_empty_tape())
    except tt.ShapeError:
        out = h
    return out.mean().backward(wrt=model)


def rnn(model: Net, xs: list[Batch]) -> Gradients:
    h = model.a(xs[0].trace())
    outs = []
    for x in xs:
        h = model.b(h + x)
        h, out = h.with_empty_tape(), h
        outs.append(out)
    return tt.stack(outs).mean().backward(wrt=model)


def rnn_right(model: Net, xs: list[Batch]) -> Gradients:
    h = model.a(xs[0].trace())
    total = tt.zeros(()).trace()
    for x in xs:
        h = model.b(h + x)
        total = total + h.with_empty_tape().mean()
    return (total + h.mean() * 0.0).backward(wrt=model)


x: Batch = tt.normal((3, 4), rng=rng)
net, other = tt.build(Net, rng=rng), tt.build(Net, rng=rng)
reinforce(net, other, x)
ppo(net, other, x)
ppo_self(net, x)
ema(net, other, x)
ema_in_place(x)
adversarial(net, x, x)
trades(net, x, x)
slope_of_a_traced_value(net, x)
saliency(net, x)
slope_of_a_teacher(net, other, x)
noise_scale(net, x)
two_tasks(net, x)
