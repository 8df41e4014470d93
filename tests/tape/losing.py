"""Programs that bring every gradient, such that lose one, and all who may ask for it."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np

import tapetensor as tt
from tapetensor import losses, nn, optim

X: Any = tt.from_numpy([[0.5, -1.0, 2.0], [1.5, 0.25, -0.75]])
Y: Any = tt.from_numpy([[1.0, 0.0, 0.5], [0.0, 1.0, 0.25]])


class Model(nn.Module):
    """Two layers, of which the first is met in many ways below."""

    hidden: Any
    out: Any

    def __init__(self) -> None:
        rng = np.random.default_rng(0)
        self.hidden = nn.Linear(3, 3, rng=rng)
        self.out = nn.Linear(3, 3, rng=rng)

    def forward(self, x: Any) -> Any:
        return self.out.forward(self.hidden.forward(x).tanh())


def fit(model: Model) -> Any:
    return losses.mse(model.forward(X.trace()), Y)


def through_a_list(model: Model) -> Any:
    penalties = [w.square().sum() for w in model.parameters().values()]
    total = penalties[0]
    for one in penalties[1:]:
        total = total + one
    return fit(model) + 0.1 * total


def handles(model: Model) -> Any:
    h = model.hidden.forward(X.trace()).with_empty_tape()
    return losses.mse(model.hidden.forward(h.with_empty_tape()) * h.retaped(tt.NoneTape), Y)


def checkpointed(model: Model) -> Any:
    def part(x: Any) -> Any:
        return model.hidden.forward(x) * model.hidden.weight.exp().sum()

    return losses.mse(tt.checkpoint(part, X.trace()), Y)


def inside_of_grad(model: Model) -> Any:
    slope = tt.grad(lambda x: (model.forward(x) * model.hidden.weight.exp().sum()).sum(), X.trace())
    return slope.square().sum()


def doubled(x: Any) -> Any:
    def kernel(x: Any) -> Any:
        return x * 2.0, (lambda g: g * 2.0,)

    return tt.custom_op(kernel, x, shape=x.shape)


# A plain value of a model's own tensors and numbers meets a tape: nothing is missing.
ARRIVING: dict[str, Callable[[Model], Any]] = {
    "a penalty": lambda m: fit(m) + m.hidden.weight.square().sum(),
    "a penalty first": lambda m: m.hidden.weight.square().sum() + fit(m),
    "tied weights": lambda m: losses.mse(m.forward(X.trace()) @ m.hidden.weight.transpose(), Y),
    "a gate": lambda m: losses.mse(m.forward(X.trace()) * (-m.hidden.bias).exp(), Y),
    "a part of a weight": lambda m: tt.where(
        X > 0.0, m.forward(X.trace()), m.hidden.weight[:2]
    ).sum(),
    "a custom op": lambda m: m.forward(X.trace()).sum() + doubled(m.hidden.weight).sum(),
    "another dtype": lambda m: (
        m.forward(X.trace()).astype(np.float64).sum() + m.hidden.weight.astype(np.float64).sum()
    ).astype(np.float32),
    "a weight taken off its tape": lambda m: (
        m.forward(X.trace()).sum() * m.hidden.weight.retaped(tt.NoneTape).exp().sum()
    ),
    "sixty-four steps": lambda m: fit(m) + chain(m.hidden.weight, 63).sum(),
    **{one.__name__: one for one in (through_a_list, handles, checkpointed, inside_of_grad)},
}


def chain(x: Any, length: int) -> Any:
    for _ in range(length):
        x = x * 0.99
    return x


def before_the_trace(model: Model) -> Any:
    h = model.hidden.forward(X)
    return losses.mse(model.hidden.forward(h.trace()), Y)


def a_gradient_that_is_computed_with(model: Model) -> Any:
    slope = tt.grad(lambda x: model.forward(x).sum(), X)
    return fit(model) + slope.square().sum()


def off_its_tape(model: Model) -> Any:
    value, tape = model.forward(X.trace()).split_tape()
    return losses.mse(value.put_tape(tape) / (value.abs().max() + 1.0), Y)


# A plain value comes of data, or has a longer past, and is not recorded.
LOSING: dict[str, Callable[[Model], Any]] = {
    "one branch": lambda m: (m.forward(X.trace()) - m.forward(Y)).square().mean(),
    "half of a discriminator": lambda m: fit(m) + losses.mse(m.forward(X.detach()), Y),
    "a stack": lambda m: tt.stack([m.forward(X.trace()), m.forward(Y)]).square().mean(),
    "sixty-five steps": lambda m: fit(m) + chain(m.hidden.weight, 65).sum(),
    **{
        one.__name__: one
        for one in (before_the_trace, a_gradient_that_is_computed_with, off_its_tape)
    },
}


def step(model: Model, grads: tt.Gradients) -> None:
    optim.Sgd(model, lr=0.1).step(grads)


def captured_step(model: Model, loss: Any) -> None:
    optimizer = optim.Sgd(model, lr=0.1)
    tt.compile(lambda: optimizer.step(loss().backward()))()


def merged(grads: tt.Gradients) -> tt.Gradients:
    store = tt.Gradients()
    store.merge(grads)
    return store


def replayed(compiled: Callable[[], Any]) -> Any:
    compiled()
    return compiled()


ASKING: dict[str, Callable[[Model, Any], Any]] = {
    "an optimizer": lambda model, loss: step(model, loss().backward()),
    "wrt": lambda model, loss: loss().backward(wrt=model),
    "a retained wrt": lambda model, loss: loss().backward(wrt=model, retain=True),
    "get": lambda model, loss: [*map(loss().backward().get, model.parameters().values())],
    "remove": lambda model, loss: [*map(loss().backward().remove, model.parameters().values())],
    "a merged store": lambda model, loss: step(model, merged(loss().backward())),
    "a copied store": lambda model, loss: step(model, copy.copy(loss().backward())),
    "a carried store": lambda model, loss: step(
        model, model.forward(X.trace(loss().backward())).sum().backward()
    ),
    "a captured step": captured_step,
    "gradients of a compiled function": lambda model, loss: step(
        model, tt.compile(lambda: loss().backward())()
    ),
    "a loss of a compiled function": lambda model, loss: step(
        model, replayed(tt.compile(lambda: loss())).backward()
    ),
}


def teacher(model: Model) -> Any:
    other = copy.deepcopy(model)
    return (model.forward(X.trace()) - other.forward(X)).square().mean()


def teacher_by_hand(model: Model) -> Any:
    other = copy.deepcopy(model)
    mean = other.hidden.weight * 0.9 + model.hidden.weight * 0.1
    other.hidden.weight = mean.detach()
    return (model.forward(X.trace()) - other.forward(X)).square().mean()


# Nobody asks for what a value that is not recorded came of.
COMPLETE: dict[str, Callable[[Model], Any]] = {
    "a frozen part": lambda m: losses.mse(m.forward(Model().forward(X).trace()), Y),
    "a detached branch": lambda m: (m.forward(X.trace()) - m.forward(Y).detach()).square().mean(),
    "a copied parameter, which is another": lambda m: (
        m.forward(X.trace()).sum() + copy.copy(m.hidden.weight).exp().sum()
    ),
    "a mask": lambda m: tt.where(m.hidden.weight[:2] > 0.0, m.forward(X.trace()), X).sum(),
    "positions": lambda m: m.forward(X.trace()).take(m.hidden.weight.argmax(axis=-1) * 0).sum(),
    "what is rounded": lambda m: m.forward(X.trace()).sum() * m.hidden.bias.round().sum(),
    **{one.__name__: one for one in (teacher, teacher_by_hand)},
}
