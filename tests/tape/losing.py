"""Programs that lose a gradient, and such that lose nothing; and all who may ask for one."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np

import tapetensor as tt
from tapetensor import losses, nn, optim

X = tt.from_numpy([[0.5, -1.0, 2.0], [1.5, 0.25, -0.75]])
Y = tt.from_numpy([[1.0, 0.0, 0.5], [0.0, 1.0, 0.25]])


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


def tied(model: Model) -> Any:
    return losses.mse(model.forward(X.trace()) @ model.hidden.weight.transpose(), Y)


def dropped_owner(model: Model) -> Any:
    h = model.hidden.forward(X.trace())
    return losses.mse(model.hidden.forward(h.with_empty_tape()), Y)


def dropped_owner_deep(model: Model) -> Any:
    h = model.hidden.forward(X.trace())
    for _ in range(3):
        h = model.hidden.forward(h.with_empty_tape().with_empty_tape()).tanh()
    return losses.mse(h, Y)


def dropped_owner_that_lacks_a_part(model: Model) -> Any:
    h = (X.trace() * model.hidden.weight.mean()).tanh()
    return losses.mse(model.forward(h.with_empty_tape()), Y)


def plain_handle_of_a_dropped_owner(model: Model) -> Any:
    h = (X.trace() * model.hidden.weight.mean()).tanh().with_empty_tape()
    return losses.mse(model.forward(X.trace()) * h.exp().retaped(tt.NoneTape), Y)


def through_a_list(model: Model) -> Any:
    penalties = [w.square().sum() for w in model.parameters().values()]
    total = penalties[0]
    for one in penalties[1:]:
        total = total + one
    return losses.mse(model.forward(X.trace()), Y) + 0.1 * total


def before_the_trace(model: Model) -> Any:
    h = model.hidden.forward(X)
    return losses.mse(model.hidden.forward(h.trace()), Y)


def checkpointed(model: Model) -> Any:
    def part(x: Any) -> Any:
        return model.hidden.forward(x) * model.hidden.weight.exp().sum()

    return losses.mse(tt.checkpoint(part, X.trace()), Y)


def a_penalty_on_a_plain_gradient(model: Model) -> Any:
    slope = tt.grad(lambda x: model.forward(x).sum(), X)
    return losses.mse(model.forward(X.trace()), Y) + slope.square().sum()


def inside_of_grad(model: Model) -> Any:
    slope = tt.grad(lambda x: (model.forward(x) * model.hidden.weight.exp().sum()).sum(), X.trace())
    return slope.square().sum()


def doubled(x: Any) -> Any:
    def kernel(x: Any) -> Any:
        return x * 2.0, (lambda g: g * 2.0,)

    return tt.custom_op(kernel, x, shape=x.shape)


LOSING: dict[str, Callable[[Model], Any]] = {
    "a penalty": lambda m: losses.mse(m.forward(X.trace()), Y) + m.hidden.weight.square().sum(),
    "a penalty first": lambda m: (
        m.hidden.weight.square().sum() + losses.mse(m.forward(X.trace()), Y)
    ),
    "tied weights": tied,
    "one branch": lambda m: (m.forward(X.trace()) - m.forward(Y)).square().mean(),
    "half of a discriminator": lambda m: (
        losses.mse(m.forward(X.trace()), Y) + losses.mse(m.forward(X.detach()), Y)
    ),
    "a gate": lambda m: losses.mse(m.forward(X.trace()) * (-m.hidden.bias).exp(), Y),
    "a stack": lambda m: tt.stack([m.forward(X.trace()), m.forward(Y)]).square().mean(),
    "a choice": lambda m: tt.where(X > 0.0, m.forward(X.trace()), m.hidden.weight[:2]).sum(),
    "a custom op": lambda m: m.forward(X.trace()).sum() + doubled(m.hidden.weight).sum(),
    "a conversion": lambda m: (
        m.forward(X.trace()).astype(np.float64).sum() + m.hidden.weight.astype(np.float64).sum()
    ),
    "a plain owner put back": lambda m: (
        m.forward(X.trace()).sum() * m.hidden.weight.retaped(tt.NoneTape).exp().sum()
    ),
    **{
        one.__name__: one
        for one in (
            dropped_owner,
            dropped_owner_deep,
            dropped_owner_that_lacks_a_part,
            plain_handle_of_a_dropped_owner,
            through_a_list,
            before_the_trace,
            checkpointed,
            a_penalty_on_a_plain_gradient,
            inside_of_grad,
        )
    },
}


def step(model: Model, grads: tt.Gradients) -> None:
    optim.Sgd(model, lr=0.1).step(grads)


def captured_step(model: Model, loss: Any) -> None:
    optimizer = optim.Sgd(model, lr=0.1)
    tt.compile(lambda: optimizer.step(loss().backward()))()


ASKING: dict[str, Callable[[Model, Any], Any]] = {
    "an optimizer": lambda model, loss: step(model, loss().backward()),
    "wrt": lambda model, loss: loss().backward(wrt=model),
    "get": lambda model, loss: [*map(loss().backward().get, model.parameters().values())],
    "remove": lambda model, loss: [*map(loss().backward().remove, model.parameters().values())],
    "a merged store": lambda model, loss: step(model, merged(loss().backward())),
    "a copied store": lambda model, loss: step(model, copy.copy(loss().backward())),
    "a carried store": lambda model, loss: step(
        model, model.forward(X.trace(loss().backward())).sum().backward()
    ),
    "a captured step": lambda model, loss: captured_step(model, loss),
    "gradients of a compiled function": lambda model, loss: step(
        model, tt.compile(lambda: loss().backward())()
    ),
    "a loss of a compiled function": lambda model, loss: step(
        model, replayed(tt.compile(lambda: loss())).backward()
    ),
}


def merged(grads: tt.Gradients) -> tt.Gradients:
    store = tt.Gradients()
    store.merge(grads)
    return store


def replayed(compiled: Callable[[], Any]) -> Any:
    compiled()
    return compiled()


def teacher(model: Model) -> Any:
    other = copy.deepcopy(model)
    return (model.forward(X.trace()) - other.forward(X)).square().mean()


def frozen_part(model: Model) -> Any:
    features = Model().forward(X)
    return losses.mse(model.forward(features.trace()), Y)


def target_of_the_same_model(model: Model) -> Any:
    return losses.mse(model.forward(X.trace()), model.forward(Y))


def teacher_by_hand(model: Model) -> Any:
    other = copy.deepcopy(model)
    other.hidden.weight = other.hidden.weight * 0.9 + model.hidden.weight * 0.1
    return (model.forward(X.trace()) - other.forward(X)).square().mean()


def written_by_hand(model: Model) -> Any:
    """Put back parameters that were computed from those before."""
    for _ in range(3):
        for layer in (model.hidden, model.out):
            layer.weight = layer.weight - layer.weight * 0.001
    return losses.mse(model.forward(X.trace()), Y)


def a_constant_of_the_parted_value(model: Model) -> Any:
    value, tape = model.forward(X.trace()).split_tape()
    gate = value.abs().max() + (value > 0.0).astype(np.float32) - value
    return losses.mse(value.put_tape(tape) / gate, Y)


def shared(model: Model) -> Any:
    h = model.hidden.forward(X.trace())
    del_me, kept = h.share(2)
    del del_me
    return losses.mse(model.out.forward(kept), Y)


def shared_once_more(model: Model) -> Any:
    h = model.hidden.forward(X.trace())
    return losses.mse(model.out.forward(h.share()), Y)


RIGHT: dict[str, Callable[[Model], Any]] = {
    "a traced penalty": lambda m: (
        losses.mse(m.forward(X.trace()), Y) + m.hidden.weight.trace().square().sum()
    ),
    "a retaped penalty": lambda m: (
        losses.mse(m.forward(X.trace()), Y) + m.hidden.weight.retaped(tt.OwnedTape).square().sum()
    ),
    "a detached branch": lambda m: (m.forward(X.trace()) - m.forward(Y).detach()).square().mean(),
    "a detached weight": lambda m: (
        losses.mse(m.forward(X.trace()), Y) + m.hidden.weight.detach().square().sum()
    ),
    "a copied parameter, which is another": lambda m: (
        m.forward(X.trace()).sum() + copy.copy(m.hidden.weight).exp().sum()
    ),
    "a mask": lambda m: tt.where(m.hidden.weight[:2] > 0.0, m.forward(X.trace()), X).sum(),
    "positions": lambda m: m.forward(X.trace()).take(m.hidden.weight.argmax(axis=-1) * 0).sum(),
    "a handle that joins": lambda m: joined(m.hidden.forward(X.trace()), m),
    **{
        one.__name__: one
        for one in (
            teacher,
            frozen_part,
            target_of_the_same_model,
            teacher_by_hand,
            written_by_hand,
            a_constant_of_the_parted_value,
            shared,
            shared_once_more,
        )
    },
}


def joined(h: Any, model: Model) -> Any:
    twin = h.with_empty_tape().with_empty_tape()
    return losses.mse(model.out.forward(twin) + h, Y)
