"""Owners that are lent and then dropped, and with them all that their tapes have recorded."""

from __future__ import annotations

import contextlib
from typing import Literal as L

import numpy as np

import tapetensor as tt
from tapetensor import Gradients, OwnedTape, Tensor0D, Tensor2D, losses, nn
from tapetensor.typing import B, T

rng = np.random.default_rng(0)
Batch = Tensor2D[L[3], L[4]]
Traced = Tensor2D[B, L[4], OwnedTape]


class Twice(nn.Module):
    body: nn.Linear[L[4], L[4]]
    head: nn.Linear[L[4], L[4]]

    def forward(self, x: Tensor2D[B, L[4], T]) -> Tensor2D[B, L[4], T]:
        h = self.body.forward(x)
        # E: with_empty_tape: "h" is not used after this, and all that its tape has recorded is gone
        # E: take h.share(), which has the record too, or h.detach() for a constant  [tape-dropped]
        return self.body.forward(h.with_empty_tape())

    def both(self, x: Tensor2D[B, L[4], T]) -> Tensor2D[B, L[4], T]:
        h = self.body.forward(x)
        twin = h.with_empty_tape()  # E: with_empty_tape: "h" is not used after this
        return self.head.forward(h.with_empty_tape()) * twin  # E: "h" is not used after this

    def at_once(self, x: Tensor2D[B, L[4], T]) -> Tensor2D[B, L[4], T]:
        # E: with_empty_tape: the tensor that is lent is not used after this
        return self.head.forward(self.body.forward(x).with_empty_tape())

    def residual(self, x: Tensor2D[B, L[4], T]) -> Tensor2D[B, L[4], T]:
        for _ in range(3):
            x = self.body.forward(x.with_empty_tape())  # E: "x" is not used after this
        return x

    def in_vain(self, x: Tensor2D[B, L[4], T]) -> Tensor2D[B, L[4], T]:
        one, other = x.share(2)
        h = self.body.forward(one)
        # E: in_vain: "gate" is not used after this: what it was computed from gets no gradient by
        # E: it; use it, or leave it out (or name it "_gate")  [tape-dropped]
        gate = self.head.forward(other).sigmoid()  # noqa: F841
        return h

    def looked_at(self, x: Tensor2D[B, L[4], T]) -> Tensor2D[B, L[4], T]:
        one, other, third = x.share(3)
        _gate = self.head.forward(other)
        gate = self.head.forward(third)
        assert gate.shape == x.shape
        return self.body.forward(one)

    def right(self, x: Tensor2D[B, L[4], T]) -> Tensor2D[B, L[4], T]:
        h = self.body.forward(x)
        h = self.head.forward(h.with_empty_tape()) + h
        for _ in range(3):
            h = h + self.body.forward(h.with_empty_tape())
        return h

    def borrowed(self, x: Tensor2D[B, L[4], T]) -> Tensor2D[B, L[4], T]:
        """Lend what is the caller's."""
        return self.body.forward(x.with_empty_tape()) + self.head.forward(x.with_empty_tape())


def recurrent(cell: Twice, xs: list[Batch]) -> Tensor0D[OwnedTape]:
    h = cell.right(xs[0].trace())
    seen = [h.with_empty_tape()]
    for x in xs:
        h = cell.right(h + x)
        seen.append(h.with_empty_tape())  # E: "h" is not used after this
    return tt.stack(seen).mean()


def under_another_name(model: Twice, x: Batch) -> Gradients:
    h = model.right(x.trace())
    other = h
    twin = other.with_empty_tape()  # E: "other" is not used after this
    return twin.square().mean().backward(wrt=model)


def lends_all(x: Tensor2D[B, L[4], T]) -> Tensor2D[B, L[4], T]:
    return x.with_empty_tape().exp() * x.with_empty_tape()


def in_a_function(model: Twice, x: Batch) -> Gradients:
    h = model.right(x.trace())
    product = lends_all(h)  # E: with_empty_tape: "x" is not used after this
    return product.mean().backward(wrt=model)


def two_heads(model: Twice, x: Batch, y: Batch) -> Gradients:
    h = model.body.forward(x.trace())
    one = losses.mse(model.head.forward(h.with_empty_tape()), y)  # E: "h" is not used after this
    other = losses.mse(model.body.forward(h.with_empty_tape()), y)  # E: "h" is not used after
    return (one + other).backward(wrt=model)


def leaf(model: Twice, x: Batch) -> Gradients:
    """Lend what has just been traced: no gradient goes further back."""
    t = x.trace()
    return (model.right(t.with_empty_tape()) * t.with_empty_tape()).mean().backward(wrt=model)


def used_on_some_path(model: Twice, x: Batch, *, more: bool) -> Gradients:
    h = model.right(x.trace())
    out = model.head.forward(h.with_empty_tape())
    if more:
        out = out + h
    return out.mean().backward(wrt=model)


def kept(model: Twice, x: Batch, store: dict[str, Traced[L[3]]]) -> Gradients:
    h = model.right(x.trace())
    store["h"] = h
    return model.head.forward(h.with_empty_tape()).mean().backward()


def returned(model: Twice, x: Batch) -> tuple[Traced[L[3]], Traced[L[3]]]:
    h = model.right(x.trace())
    return model.head.forward(h.with_empty_tape()), h


def in_a_closure(model: Twice, x: Batch) -> Gradients:
    h = model.right(x.trace())

    def last() -> Traced[L[3]]:
        return model.head.forward(h)

    return (model.body.forward(h.with_empty_tape()) + last()).mean().backward(wrt=model)


def in_a_list(model: Twice, x: Batch) -> Gradients:
    h = model.right(x.trace())
    all_of_them = [h.with_empty_tape().exp(), h]
    return tt.stack(all_of_them).mean().backward(wrt=model)


def only_looked_at(model: Twice, x: Batch) -> float:
    h = model.right(x.trace())
    print(h.with_empty_tape().softmax().max().item())
    return h.mean().item()


def asked_for(model: Twice, x: Batch) -> Gradients:
    h = model.right(x.trace())
    return model.head.forward(h.with_empty_tape()).mean().backward(wrt=[h])


def a_constant(model: Twice, x: Batch) -> Gradients:
    h = model.right(x.trace())
    return model.head.forward(h.detach().trace()).mean().backward(wrt=model.head)


model = tt.build(Twice, rng=rng)
x: Batch = tt.normal((3, 4), rng=rng)
for losing in (model.forward, model.both, model.at_once, model.residual, model.in_vain):
    with contextlib.suppress(tt.MissingGradientError):
        losing(x.trace()).mean().backward(wrt=model)
with contextlib.suppress(tt.MissingGradientError):
    recurrent(model, [x, x]).backward(wrt=model)
for step in (under_another_name, in_a_function):
    with contextlib.suppress(tt.MissingGradientError):
        step(model, x)
for good in (model.right, model.borrowed, model.looked_at):
    good(x.trace()).mean().backward()
leaf(model, x)
used_on_some_path(model, x, more=True)
in_a_closure(model, x)
in_a_list(model, x)
only_looked_at(model, x)
asked_for(model, x)
a_constant(model, x)
