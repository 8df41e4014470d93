"""Gradients that reach no parameter, where statements that are not followed say so."""

from __future__ import annotations

import contextlib
from typing import Literal as L

import numpy as np

import tapetensor as tt
from tapetensor import Tensor0D, Tensor2D, losses, nn, optim
from tapetensor.typing import B, T

rng = np.random.default_rng(0)
x: Tensor2D[L[3], L[4]] = tt.normal((3, 4), rng=rng)


class Mlp(nn.Module):
    hidden: nn.Linear[L[4], L[4]]
    out: nn.Linear[L[4], L[2]]

    def forward(self, x: Tensor2D[B, L[4], T]) -> Tensor2D[B, L[2], T]:
        return self.out.forward(self.hidden.forward(x).tanh())


class Around(nn.Module):
    only: nn.Linear[L[4], L[4]]

    def forward(self, x: Tensor2D[B, L[4], T]) -> Tensor2D[B, L[4], T]:
        return self.only.forward(x)


def of_another_model() -> None:
    model, critic = tt.build(Mlp, rng=rng), nn.Linear(4, 1, rng=rng)
    of_model, of_critic = optim.Sgd(model, lr=0.1), optim.Sgd(critic, lr=0.1)
    grads = critic.forward(x.trace()).mean().backward(wrt=critic)
    of_critic.step(grads)
    of_critic.step(critic.forward(x.trace()).mean().backward(wrt=[critic.weight, critic.bias]))
    with contextlib.suppress(tt.UnusedParametersError):
        # E: Sgd.step: these are the gradients by "critic", and none of what it updates is among
        # E: write backward(wrt=...) with what Sgd was made for  [module-gradient]
        of_model.step(grads)
    of_noise = optim.Sgd([x], lr=0.1)
    of_noise.step(x.trace().square().sum().backward(wrt=x))
    with contextlib.suppress(tt.UnusedParametersError):
        noise: Tensor2D[L[3], L[4]] = tt.zeros((3, 4))
        of_critic.step(critic.forward(noise.trace()).mean().backward(wrt=noise))  # E: by "noise"


def of_another_loss(shown: Tensor2D[L[3], L[4]]) -> None:
    maker, critic = tt.build(Around, rng=rng), nn.Linear(4, 1, rng=rng)
    of_maker, of_critic = optim.Sgd(maker, lr=0.1), optim.Sgd(critic, lr=0.1)
    of_critic.step(losses.mse(critic.forward(shown.trace()), tt.zeros((3, 1))).backward())
    loss = critic.forward(maker.forward(x.trace())).mean()
    both = loss.backward()
    of_maker.step(both)
    of_critic.step(both, unused="skip")
    shown_loss = 0.5 * critic.forward(shown.trace()).square().mean()
    with contextlib.suppress(tt.UnusedParametersError):
        # E: Sgd.step: this loss is computed with "critic", and with none of what it updates
        of_maker.step(shown_loss.backward())
    made = maker.forward(shown.trace())
    with contextlib.suppress(tt.UnusedParametersError):
        of_critic.step(losses.mse(made, shown).backward())  # E: with "maker", and with none of
    with contextlib.suppress(tt.UnusedParametersError):
        of_maker.step(scored(critic, shown).backward())


def scored(critic: nn.Linear[L[4], L[1]], shown: Tensor2D[L[3], L[4]]) -> Tensor0D[tt.OwnedTape]:
    return critic.forward(shown.trace()).mean()


def of_a_part() -> None:
    model, around = tt.build(Mlp, rng=rng), tt.build(Around, rng=rng)
    optimizer = optim.Sgd(model, lr=0.1)
    with contextlib.suppress(tt.UnusedParametersError):
        # E: gradients by "model.out", a part only of "model", all of which it updates
        optimizer.step(model.forward(x.trace()).mean().backward(wrt=model.out))
    optim.Sgd(model.out, lr=0.1).step(model.forward(x.trace()).mean().backward(wrt=model.out))
    of_around = optim.Sgd(around, lr=0.1)
    of_around.step(around.forward(x.trace()).mean().backward(wrt=around.only))


def of_models_that_may_be_one(other: Mlp, *, tied: bool) -> None:
    hidden: nn.Linear[L[4], L[4]] = nn.Linear(4, 4, rng=rng)
    model = Mlp(hidden=hidden, out=nn.Linear(4, 2, rng=rng))
    layer: nn.Linear[L[4], L[4]] = nn.Linear(4, 4, rng=rng)
    if tied:
        model.hidden = layer
    of_model, of_hidden = optim.Sgd(model.hidden, lr=0.1), optim.Sgd(hidden, lr=0.1)
    of_layer = optim.Sgd(layer, lr=0.1)
    with contextlib.suppress(tt.UnusedParametersError):
        of_hidden.step(model.forward(x.trace()).mean().backward(wrt=model))
        of_layer.step(model.forward(x.trace()).mean().backward(wrt=model))
        of_model.step(other.forward(x.trace()).mean().backward(wrt=other))


def wanted_where_it_is_made() -> None:
    loss = x.trace().square().sum()
    with contextlib.suppress(tt.TapeTensorError):
        loss.backward(wrt=tt.zeros((3, 4)))  # E: backward: wrt is a tensor that is made here


def by_hand(model: Mlp) -> list[float]:
    grads = model.forward(x.trace()).mean().backward(wrt=model)
    for p in model.parameters().values():
        p -= 0.1 * grads[p]  # E: "p -= ..." gives the name of the loop a new tensor, which nobody
    for name, p in model.parameters().items():
        if name:
            p *= 0.1  # E: "p *= ..." gives the name of the loop a new tensor
    for p in model.parameters().values():
        p = p * 2.0
    norms = []
    for p in model.parameters().values():
        p *= 2.0
        norms.append(float(p.sum().item()))
    for p in model.parameters().values():
        for _ in range(3):
            p -= p * 0.1
    for last in model.parameters().values():
        last += 1.0
    return [*norms, float(last.sum().item())]


def contexts() -> None:
    tt.GradientContext()  # E: GradientContext: this one is never entered, so no tape
    with tt.GradientContext() as context:
        x.trace().exp()
    later = tt.GradientContext()
    with later, context.__class__():
        x.trace().exp()


of_another_model()
of_another_loss(tt.zeros((3, 4)))
of_a_part()
of_models_that_may_be_one(tt.build(Mlp, rng=rng), tied=True)
wanted_where_it_is_made()
by_hand(tt.build(Mlp, rng=rng))
contexts()
