"""Models of several parts, and handles that are lent in branches and loops."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from typing import Generic
from typing import Literal as L

import numpy as np

import tapetensor as tt
from tapetensor import Gradients, OwnedTape, Tensor0D, Tensor1D, Tensor2D, losses, nn
from tapetensor.typing import B, N, T

rng = np.random.default_rng(0)
Batch = Tensor2D[L[3], L[4]]


class Residual(nn.Module, Generic[N]):
    inner: nn.Linear[N, N]
    gain: Tensor1D[N] = nn.parameter(nn.init.ones)

    def forward(self, x: Tensor2D[B, N, T]) -> Tensor2D[B, N, T]:
        return self.inner.forward(x.with_empty_tape()) * self.gain + x


class Deep(nn.Module):
    stem: nn.Linear[L[4], L[4]]
    first: Residual[L[4]]
    second: Residual[L[4]]

    def forward(self, x: Tensor2D[B, L[4], T]) -> Tensor2D[B, L[4], T]:
        h = self.stem.forward(x)
        for block in (self.first, self.second):
            h = block.forward(h)
        return h

    def weights(self) -> list[Tensor2D[L[4], L[4]]]:
        return [self.stem.weight, self.first.inner.weight]

    def l2(self) -> Tensor0D:
        return sum((w.square().sum() for w in self.weights()), tt.zeros(()))


def by_list(model: Deep, x: Batch) -> Gradients:
    loss = model.forward(x.trace()).mean()
    # E: gets no gradient here
    loss = loss + model.l2() * 0.1
    return loss.backward(wrt=model)


def orthogonal(model: Deep, x: Batch) -> Gradients:
    eye = tt.eye(4)
    loss = model.forward(x.trace()).mean()
    for w in model.weights():
        gram = w @ w.transpose() - eye
        # E: gets no gradient here
        loss = loss + gram.square().sum()
    return loss.backward(wrt=model)


def smooth(model: Deep, x: Batch) -> Gradients:
    """Virtual adversarial."""
    clean = model.forward(x.trace())
    noisy = model.forward(x + tt.normal((3, 4), rng=rng) * 0.1)
    # E: gets no gradient here
    return (clean - noisy).square().mean().backward(wrt=model)


def consistency(model: Deep, x: Batch) -> Gradients:
    clean = model.forward(x)
    noisy = model.forward((x * 1.1).trace())
    return losses.mse(noisy, clean).backward(wrt=model)


def mixup(model: Deep, x: Batch, y: Batch) -> Gradients:
    lam = 0.3
    mixed = lam * x + (1 - lam) * y
    loss = lam * losses.mse(model.forward(mixed.trace()), x)
    loss = loss + (1 - lam) * losses.mse(model.forward(mixed.trace()), y)
    return loss.backward(wrt=model)


def ratio(model: Deep, x: Batch) -> Gradients:
    loss = model.forward(x.trace()).square().mean()
    scale = 1.0 / (model.forward(x).square().mean() + 1e-6)
    # E: gets no gradient here
    return (loss * scale).backward(wrt=model)


def ratio_right(model: Deep, x: Batch) -> Gradients:
    loss = model.forward(x.trace()).square().mean()
    scale = 1.0 / (model.forward(x).square().mean().item() + 1e-6)
    return (loss * scale).backward(wrt=model)


def where_plain(model: Deep, x: Batch) -> Gradients:
    h = model.stem.forward(x.trace())
    cut = tt.where(model.stem.weight.sum(axis=0) > 0, h, 0.0)
    return cut.mean().backward(wrt=model)


def branch(model: Deep, x: Batch, *, flag: bool) -> Gradients:
    reg = tt.zeros(())
    if flag:
        reg = reg + model.stem.weight.abs().sum()
    # E: gets no gradient here
    out = model.forward(x.trace()).mean() + reg
    return out.backward(wrt=model)


def stop(model: Deep, x: Batch, *, flag: bool) -> Gradients:
    reg = model.stem.weight.abs().sum()
    if not flag:
        reg = reg.detach()
    else:
        reg = tt.zeros(())
    out = model.forward(x.trace()).mean() + reg
    return out.backward(wrt=model)


def heads(model: Deep, others: Sequence[Deep], x: Batch) -> Tensor0D[OwnedTape]:
    h = model.forward(x.trace())
    total = tt.zeros(()).trace()
    for one in others:
        # E: is not used after this
        total = total + one.forward(h.with_empty_tape()).mean()
    return total


def heads_right(model: Deep, others: Sequence[Deep], x: Batch) -> Tensor0D[OwnedTape]:
    h = model.forward(x.trace())
    total = tt.zeros(()).trace()
    for one in others:
        total = total + one.forward(h.with_empty_tape()).mean()
    return total + h.mean()


def last(model: Deep, x: Batch) -> Tensor0D[OwnedTape]:
    h = model.stem.forward(x.trace())
    a = model.first.forward(h.with_empty_tape())
    b = model.second.forward(h)
    return (a + b).mean()


def forgotten(model: Deep, x: Batch) -> Tensor0D[OwnedTape]:
    h = model.stem.forward(x.trace())
    # E: is not used after this
    a = model.first.forward(h.with_empty_tape())
    b = model.second.forward(a)
    return b.mean()


def in_ifs(model: Deep, x: Batch, *, flag: bool) -> Tensor0D[OwnedTape]:
    h = model.stem.forward(x.trace())
    if flag:
        # E: is not used after this
        out = model.first.forward(h.with_empty_tape())
    else:
        # E: is not used after this
        out = model.second.forward(h.with_empty_tape())
    return out.mean()


def in_ifs_right(model: Deep, x: Batch, *, flag: bool) -> Tensor0D[OwnedTape]:
    h = model.stem.forward(x.trace())
    if flag:
        out = model.first.forward(h.with_empty_tape()) + h
    else:
        out = model.second.forward(h)
    return out.mean()


def retaped_handle(model: Deep, x: Batch) -> Tensor0D[OwnedTape]:
    h = model.stem.forward(x.trace())
    # E: is not used after this
    out = model.first.forward(h.retaped(OwnedTape))
    return out.mean()


def gru(model: Deep, xs: list[Batch]) -> Tensor0D[OwnedTape]:
    h = tt.zeros((3, 4)).trace()
    for x in xs:
        z = (model.stem.forward(x.trace()) + h.with_empty_tape()).sigmoid()
        candidate = model.first.forward(h.with_empty_tape()).tanh()
        h = z.with_empty_tape() * candidate + (1.0 - z) * h
    return h.mean()


def gru_lost(model: Deep, xs: list[Batch]) -> Tensor0D[OwnedTape]:
    h = tt.zeros((3, 4)).trace()
    for x in xs:
        z = (model.stem.forward(x.trace()) + h.with_empty_tape()).sigmoid()
        candidate = model.first.forward(h.with_empty_tape()).tanh()
        # E: is not used after this
        h = z.with_empty_tape() * candidate + (1.0 - z.with_empty_tape()) * h
    return h.mean()


class Wrapper(nn.Module):
    deep: Deep
    log_scale: Tensor0D = nn.parameter(nn.init.zeros)

    def forward(self, x: Tensor2D[B, L[4], T]) -> Tensor2D[B, L[4], T]:
        # E: gets no gradient here
        return self.deep.forward(x) * self.log_scale.exp()

    def energy(self, x: Tensor2D[B, L[4], OwnedTape]) -> Tensor0D[OwnedTape]:
        out = self.deep.forward(x).square().mean()
        # E: gets no gradient here
        return out / (2.0 * self.log_scale.exp().square()) + self.log_scale

    def right(self, x: Tensor2D[B, L[4], T]) -> Tensor2D[B, L[4], T]:
        scale = self.log_scale.retaped(x.tape_type).exp()
        return self.deep.forward(x) * scale


class WithInit(nn.Module):
    weight: Tensor2D[L[4], L[4]]
    bias: Tensor1D[L[4]]

    def __init__(self, rng: np.random.Generator) -> None:
        self.weight = tt.normal((4, 4), rng=rng)
        self.bias = tt.zeros((4,))

    def forward(self, x: Tensor2D[B, L[4], T]) -> Tensor2D[B, L[4], T]:
        # E: gets no gradient here
        return x @ self.weight.transpose() + self.bias


def plain_init(x: Batch) -> Gradients:
    model = WithInit(rng)
    other = WithInit(rng)
    out = (model.forward(x.trace()) - other.forward(x)).mean()
    return out.backward(wrt=model)


def reset(model: WithInit, x: Batch) -> None:
    for _ in range(3):
        grads = (x.trace() @ model.weight + model.bias).mean().backward(wrt=model)
        model.weight = model.weight - 0.1 * grads[model.weight]
        model.bias = (model.bias - 0.1 * grads[model.bias]) * 0.99


def clipped(model: WithInit, x: Batch) -> None:
    norm = model.weight.square().sum().sqrt()
    model.weight = model.weight / norm
    grads = (x.trace() @ model.weight + model.bias).mean().backward(wrt=model)
    print(len(grads))


def initialised(model: Deep, x: Batch) -> Gradients:
    model.stem.weight = model.stem.weight * 0.1
    for one in model.modules().values():
        if isinstance(one, nn.Linear):
            one.weight = one.weight * 0.5
    return model.forward(x.trace()).mean().backward(wrt=model)


def copies(model: Deep, x: Batch) -> Gradients:
    w = model.stem.weight
    frozen = w.detach()
    return (x.trace() @ w @ frozen).mean().backward(wrt=model)


def aliased(model: Deep, x: Batch) -> Gradients:
    stem = model.stem
    w = stem.weight
    wt = w.transpose()
    # E: gets no gradient here
    return (stem.forward(x.trace()) @ wt).mean().backward(wrt=model)


def custom(model: Deep, x: Batch, loss_fn: Callable[[Batch, Batch], Tensor0D]) -> float:
    return (loss_fn(model.forward(x), x) + model.stem.weight.square().sum()).item()


def sharded(model: Deep, xs: list[Batch]) -> Gradients:
    total = tt.Gradients()
    for x in xs:
        loss = model.forward(x.trace()).mean()
        # E: gets no gradient here
        loss = loss + model.l2() / float(len(xs))
        total.merge(loss.backward(wrt=model))
    return total


x: Batch = tt.normal((3, 4), rng=rng)
deep, other = tt.build(Deep, rng=rng), tt.build(Deep, rng=rng)
consistency(deep, x)
mixup(deep, x, x)
ratio_right(deep, x)
where_plain(deep, x)
stop(deep, x, flag=False)
heads_right(deep, [other], x).backward(wrt=deep)
last(deep, x).backward(wrt=deep)
in_ifs_right(deep, x, flag=True).backward(wrt=deep)
gru(deep, [x, x]).backward(wrt=deep)
with contextlib.suppress(tt.MissingGradientError):
    plain_init(x)
reset(WithInit(rng), x)
clipped(WithInit(rng), x)
initialised(deep, x)
copies(deep, x)
