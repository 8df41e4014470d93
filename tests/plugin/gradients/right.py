"""Right programs, of which nothing is reported: teachers, constants, what is frozen, or traced."""

from __future__ import annotations

import copy
from typing import Literal as L

import numpy as np

import tapetensor as tt
from tapetensor import (
    Gradients,
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
Target = Tensor2D[L[3], L[2]]


class Mlp(nn.Module):
    hidden: nn.Linear[L[4], L[4]]
    out: nn.Linear[L[4], L[2]]

    def forward(self, x: Tensor2D[B, L[4], T]) -> Tensor2D[B, L[2], T]:
        return self.out.forward(self.hidden.forward(x).relu())

    def targets(self, x: Tensor2D[B, L[4]]) -> Tensor2D[B, L[2]]:
        return self.forward(x).detach()


class Pair(nn.Module):
    """A student and its teacher, in one module."""

    online: Mlp
    target: Mlp

    def loss(self, a: Batch, b: Batch) -> Tensor0D[OwnedTape]:
        return (self.online.forward(a.trace()) - self.target.forward(b)).square().mean()


class Frozen(nn.Module):
    backbone: nn.Sequential[nn.Linear[L[4], L[4]], nn.ReLU]
    head: nn.Linear[L[4], L[2]]

    def forward(self, x: Tensor2D[B, L[4]]) -> Tensor2D[B, L[2], OwnedTape]:
        return self.head.forward(self.backbone.forward(x).trace())


class Normed(nn.Module):
    weight: Tensor1D[L[4]] = nn.parameter(nn.init.ones)
    mean: Tensor1D[L[4]] = nn.buffer(nn.init.zeros)
    variance: Tensor1D[L[4]] = nn.buffer(nn.init.ones)

    def forward(self, x: Tensor2D[B, L[4], T]) -> Tensor2D[B, L[4], T]:
        return (x - self.mean.square()) / (self.variance + 1e-5).sqrt() * self.weight

    def pruned(self, x: Tensor2D[B, L[4], T]) -> Tensor2D[B, L[4], T]:
        mask = (self.weight.abs() > 0.1).astype(np.float32)
        return x * self.weight * mask

    def either(self, x: Tensor2D[B, L[4], T]) -> Tensor2D[B, L[4], T]:
        if x.owns_tape:
            return x * self.weight.retaped(x.tape_type).exp()
        return x * self.weight.exp()


def distilled(student: Mlp, teacher: Mlp, x: Batch) -> Gradients:
    loss = losses.mse(student.forward(x.trace()), teacher.forward(x))
    return loss.backward(wrt=student)


def distilled_by_hand(student: Mlp, teacher: Mlp, x: Batch) -> Gradients:
    soft = teacher.forward(x).softmax()
    loss = (student.forward(x.trace()) - soft).square().mean() * teacher.out.bias.square().sum()
    return loss.backward(wrt=student)


def own_targets(model: Mlp, x: Batch, y: Batch) -> Gradients:
    """Give what the same model computes as the target of a loss."""
    labels = model.forward(y)
    loss = losses.mse(model.forward(x.trace()), labels)
    loss = loss + losses.mse(model.forward(y.trace()), target=model.forward(x))
    return loss.backward(wrt=model)


def bootstrapped(model: Mlp, x: Batch, following: Batch, reward: Target) -> Gradients:
    target = reward + 0.9 * model.forward(following).detach()
    error = model.forward(x.trace()) - target
    other = model.forward(x.trace()) - model.targets(following)
    return (error.square().mean() + other.square().mean()).backward(wrt=model)


def two_models(a: Mlp, b: Mlp, x: Batch) -> Tensor0D[OwnedTape]:
    return (a.forward(x.trace()) + b.forward(x)).square().mean()


def momentum_teacher(x: Batch, y: Target) -> None:
    student = tt.build(Mlp, rng=rng)
    teacher = copy.deepcopy(student)
    optimizer = optim.Adam(student, lr=0.1)
    for _ in range(3):
        loss = (student.forward(x.trace()) - teacher.forward(x)).square().mean()
        loss = loss + losses.mse(student.forward(x.trace()), y)
        optimizer.step(loss.backward(wrt=student))


def born_again(x: Batch) -> None:
    teacher = tt.build(Mlp, rng=rng)
    for _ in range(3):
        student = tt.build(Mlp, rng=rng)
        loss = (student.forward(x.trace()) - teacher.forward(x)).square().mean()
        loss.backward(wrt=student)
        teacher = student


def made(seed: int) -> Mlp:
    return tt.build(Mlp, rng=np.random.default_rng(seed))


def two_of_a_kind(x: Batch) -> Gradients:
    first, second = made(0), made(1)
    return (first.forward(x.trace()) - second.forward(x)).square().mean().backward(wrt=first)


def ensemble(x: Batch) -> None:
    models = [tt.build(Mlp, rng=rng) for _ in range(3)]
    teachers = {"one": tt.build(Mlp, rng=rng), "other": tt.build(Mlp, rng=rng)}
    loss = (models[0].forward(x.trace()) - models[1].forward(x)).square().mean()
    loss.backward(wrt=models[0])
    for model in models:
        for teacher in teachers.values():
            out = model.forward(x.trace()) - teacher.forward(x)
            out.square().mean().backward(wrt=model)
    for i in range(3):
        for j in range(3):
            if i != j:
                out = models[i].forward(x.trace()) - models[j].forward(x)
                out.square().mean().backward(wrt=models[i])


def frozen_backbone(model: Mlp, x: Batch, y: Target) -> Gradients:
    features = model.hidden.forward(x).relu()
    loss = losses.mse(model.out.forward(features.trace()), y)
    return loss.backward(wrt=model.out)


def frozen_by_optimizer(model: Mlp, x: Batch, y: Target) -> None:
    optimizer = optim.Sgd(model.out, lr=0.1)
    features = model.hidden.forward(x)
    loss = losses.mse(model.out.forward(features.trace()), y)
    optimizer.step(loss.backward())


def frozen_by_selection(model: Mlp, x: Batch, y: Target) -> None:
    trained = nn.Selection(model, without=["hidden"])
    optimizer = optim.Sgd(trained, lr=0.1)
    scale = model.hidden.weight.abs().mean()
    loss = losses.mse(model.forward(x.trace()) * scale, y)
    optimizer.step(loss.backward(wrt=trained))
    only = nn.Selection(model, only=["out"])
    loss = losses.mse(model.forward(x.trace()) * scale, y)
    loss.backward(wrt=only)
    loss = losses.mse(model.forward(x.trace()) * scale, y)
    optimizer.step(loss.backward(wrt=optimizer))


def adapted(model: Pair, x: Batch) -> Gradients:
    out = model.target.forward(x) + model.online.forward(x.trace())
    return out.square().mean().backward(wrt=model.online)


def by_the_input(model: Mlp, x: Batch) -> Batch:
    t = x.trace()
    h = model.hidden.forward(x)
    loss = model.forward(t).mean() + (h.trace() * 2.0).mean()
    grads = loss.backward(wrt=[x, h])
    return grads[x]


def traced_penalty(model: Mlp, x: Batch, y: Target) -> Gradients:
    loss = losses.mse(model.forward(x.trace()), y)
    loss = loss + model.hidden.weight.trace().square().sum()
    loss = loss + model.out.weight.retaped(OwnedTape).abs().sum()
    for parameter in model.parameters().values():
        loss = loss + parameter.trace().square().sum()
    loss += sum((one.trace().abs().sum() for one in model.parameters().values()), x.trace().sum())
    return loss.backward(wrt=model)


def of_either_kind(model: Mlp, loss: Tensor0D[T]) -> Tensor0D[T]:
    return loss + model.hidden.weight.retaped(loss.tape_type).square().sum()


def weights_as_operands(model: Mlp, x: Batch) -> Gradients:
    h = model.hidden.forward(x.trace()) @ model.hidden.weight
    return (h + model.hidden.bias).mean().backward(wrt=model)


def metrics(model: Mlp, x: Batch, y: Target) -> float:
    loss = losses.mse(model.forward(x.trace()), y)
    shown = loss.with_empty_tape() + model.hidden.weight.square().sum()
    norm = model.hidden.weight.square().sum().sqrt().item()
    right = (model.forward(x).argmax(-1) == y.argmax(-1)).astype(np.float32).mean()
    print(shown.item(), norm, right.item(), (loss.detach() + right).item())
    loss.backward(wrt=model)
    return norm


def scaled_by_a_number(model: Mlp, x: Batch) -> Gradients:
    norm = float(model.hidden.weight.square().sum())
    spectral = model.hidden.weight.detach().square().sum()
    h = model.forward(x.trace()) * (1.0 / norm) * spectral
    return h.mean().backward(wrt=model)


def proximal(model: Mlp, x: Batch, y: Target) -> None:
    old = {name: one.detach() for name, one in model.parameters().items()}
    start = model.hidden.weight.detach() * 1.0
    loss = losses.mse(model.forward(x.trace()), y)
    loss = loss + (model.hidden.weight.trace() - start).square().sum()
    for name, one in model.parameters().items():
        loss = loss + (one.trace() - old[name]).square().sum()
    loss.backward(wrt=model)


def by_hand(model: Mlp, x: Batch, y: Target) -> None:
    for _ in range(3):
        loss = losses.mse(model.forward(x.trace()), y)
        grads = loss.backward(wrt=model)
        model.hidden.weight = model.hidden.weight - 0.1 * grads[model.hidden.weight]
        model.out.bias = model.out.bias - 0.1 * grads[model.out.bias]


def without_a_model(x: Batch) -> Tensor2D[L[4], L[2]]:
    w: Tensor2D[L[4], L[2]] = tt.normal((4, 2), rng=rng)
    for _ in range(3):
        grads = (x.trace() @ w).square().mean().backward(wrt=[w])
        w = w - 0.1 * grads[w]
    return w


def constants(model: Mlp, x: Batch) -> Gradients:
    scale: Tensor1D[L[2]] = tt.ones((2,))
    noise = tt.normal((3, 4), rng=rng).exp() * 0.1
    out = model.forward(x.trace() + noise) * scale.exp()
    return out.mean().backward(wrt=model)


def masked(model: Mlp, x: Batch) -> Gradients:
    keep = model.forward(x) > 0
    best = model.forward(x).argmax(-1)
    out = tt.where(keep, model.forward(x.trace()), 0.0)
    weights = (best == 0).astype(np.float32).reshape((3, 1))
    return (out * weights).mean().backward(wrt=model)


def state_detached(cell: nn.Linear[L[4], L[4]], xs: list[Batch]) -> None:
    state: Batch = tt.zeros((3, 4))
    for x in xs:
        out = cell.forward(x.trace() + state).tanh()
        state = out.detach()
        out.mean().backward(wrt=cell)


def chosen(model: Mlp, teacher: Mlp, x: Batch, *, self_taught: bool) -> Gradients:
    target = model.forward(x).detach() if self_taught else teacher.forward(x)
    return (model.forward(x.trace()) - target).square().mean().backward(wrt=model)


def gan(generator: Mlp, critic: Mlp, z: Batch, real: Batch) -> None:
    fake: Batch = tt.concat((generator.forward(z), generator.forward(z)), axis=1)
    ones: Target = tt.ones((3, 2))
    zeros: Target = tt.zeros((3, 2))
    bce = losses.binary_cross_entropy_with_logits
    loss = bce(critic.forward(real.trace()), ones) + bce(critic.forward(fake.trace()), zeros)
    loss.backward(wrt=critic)
    made = generator.forward(z.trace())
    tricked = bce(critic.forward(tt.concat((made.with_empty_tape(), made), axis=1)), ones)
    tricked.backward(wrt=generator)


class Net:
    """An object of one's own that is no module, and holds two."""

    def __init__(self) -> None:
        self.student = tt.build(Mlp, rng=rng)
        self.teacher = tt.build(Mlp, rng=rng)
        self.target = copy.deepcopy(self.student)

    def loss(self, x: Batch) -> Tensor0D[OwnedTape]:
        loss = (self.student.forward(x.trace()) - self.teacher.forward(x)).square().mean()
        return loss + (self.student.forward(x.trace()) - self.target.forward(x)).square().mean()


class Holding(nn.Module):
    inner: Mlp

    def __init__(self, inner: Mlp) -> None:
        self.inner = inner

    def forward(self, x: Tensor2D[B, L[4], T]) -> Tensor2D[B, L[2], T]:
        return self.inner.forward(x)


def steps_of_one_part_of_what_is_asked_for(x: Batch, given: Mlp) -> None:
    model, other = tt.build(Mlp, rng=rng), tt.build(Mlp, rng=rng)
    holding, same, several = Holding(model), model, [model, other]
    of_model = optim.Sgd(model, lr=0.1)
    of_part = optim.Sgd(model.hidden, lr=0.1)
    of_tensors = optim.Sgd([model.out.bias, other.out.bias], lr=0.1)
    of_given = optim.Sgd(given, lr=0.1)
    of_model.step(holding.forward(x.trace()).mean().backward(wrt=holding))
    of_model.step(same.forward(x.trace()).mean().backward(wrt=same))
    of_part.step(model.forward(x.trace()).mean().backward(wrt=model))
    of_given.step(given.forward(x.trace()).mean().backward(wrt=given))
    loss = model.forward(x.trace()).mean() + other.forward(x.trace()).mean()
    of_tensors.step(loss.backward(wrt=[model.out.bias, other.out.bias]))
    for one in several:
        optim.Sgd(one, lr=0.1).step(one.forward(x.trace()).mean().backward(wrt=one))


x: Batch = tt.normal((3, 4), rng=rng)
steps_of_one_part_of_what_is_asked_for(x, tt.build(Mlp, rng=rng))
y: Target = tt.normal((3, 2), rng=rng)
reward: Target = tt.ones((3, 2))
model, other = made(0), made(1)
pair = tt.build(Pair, rng=rng)
frozen = tt.build(Frozen, rng=rng)
distilled(model, other, x)
distilled_by_hand(model, other, x)
own_targets(model, x, x)
bootstrapped(model, x, x, reward)
two_models(model, other, x).backward(wrt=model)
momentum_teacher(x, y)
born_again(x)
two_of_a_kind(x)
ensemble(x)
frozen_backbone(model, x, y)
frozen_by_optimizer(model, x, y)
frozen_by_selection(model, x, y)
frozen.forward(x).mean().backward(wrt=frozen.head)
pair.loss(x, x).backward(wrt=pair.online)
adapted(pair, x)
by_the_input(model, x)
traced_penalty(model, x, y)
of_either_kind(model, model.forward(x.trace()).mean()).backward(wrt=model)
weights_as_operands(model, x)
metrics(model, x, y)
scaled_by_a_number(model, x)
proximal(model, x, y)
by_hand(model, x, y)
without_a_model(x)
constants(model, x)
masked(model, x)
chosen(model, other, x, self_taught=True)
gan(model, other, x, x)
Net().loss(x).backward()
