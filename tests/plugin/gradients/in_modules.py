"""Parameters that are changed before they meet the tape, and so get no gradient."""

from __future__ import annotations

import contextlib
from typing import Any
from typing import Literal as L

import numpy as np

import tapetensor as tt
from tapetensor import NoneTape, OwnedTape, Tensor0D, Tensor1D, Tensor2D, losses, nn
from tapetensor.typing import B, M, T

rng = np.random.default_rng(0)
Tokens = Tensor1D[M, T, np.int64]


class Tied(nn.Module):
    """One table for what goes in and what comes out."""

    tokens: nn.Embedding[L[5], L[4]]

    def forward(self, ids: Tokens[M, T]) -> Tensor2D[M, L[5], T]:
        x = self.tokens.forward(ids)
        # E: matmul: "self.tokens.weight" gets no gradient here, for "transpose" on a plain value is
        # E: not recorded; write self.tokens.weight.retaped(x.tape_type)
        # E: or self.tokens.weight.detach() for a constant  [module-gradient]
        return x @ self.tokens.weight.transpose()

    def at_once(self, ids: Tokens[M, T]) -> Tensor2D[M, L[5], T]:
        # E: write self.tokens.weight.retaped(x.tape_type), x being the other operand, or self
        return self.tokens.forward(ids) @ self.tokens.weight.transpose()

    def right(self, ids: Tokens[M, T]) -> Tensor2D[M, L[5], T]:
        x = self.tokens.forward(ids)
        return x @ self.tokens.weight.retaped(x.tape_type).transpose()


class Placed(nn.Module):
    tokens: nn.Embedding[L[5], L[4]]
    places: nn.Embedding[L[9], L[4]]
    drop: nn.Dropout
    inner: Tied

    def forward(self, ids: Tokens[M, T]) -> Tensor2D[M, L[4], T]:
        (m,) = ids.shape
        positions = tt.arange(m)
        x = self.tokens.forward(ids)
        # E: add: "self.places" gets no gradient here, for a layer on a plain value is not recorded
        # E: ; write self.places.forward(positions.retaped(x.tape_type)), or
        # E: self.places.forward(positions).detach() for a constant  [module-gradient]
        x = x + self.places.forward(positions)
        x = x + self.places(tt.arange(m))  # E: write self.places.forward(input.retaped(x.tape
        places = self.places.forward(positions)
        x = x + places * 2.0  # E: add: "self.places" gets no gradient here, for a layer on a plain
        x = x + self.places.forward(positions.retaped(x.tape_type))
        return x + self.places.forward(positions).detach() + self.drop.forward(tt.ones((4,)))

    def teacher(self, x: Tensor2D[M, L[4], T]) -> Tensor2D[M, L[5], T]:
        """Be silent about modules of one's own, which may be held as a constant."""
        m, _ = x.shape
        return x @ tt.ones((4, 5)) + self.inner.forward(tt.arange(m))


class Scaled(nn.Module):
    scale: Tensor1D[L[4]] = nn.parameter(nn.init.ones)
    other: Tensor1D[L[4]] = nn.parameter(nn.init.ones)
    mean: Tensor1D[L[4]] = nn.buffer(nn.init.zeros)
    given: Tensor1D[L[4]]
    layer: nn.Linear[L[4], L[4]]

    def forward(self, x: Tensor2D[B, L[4], T]) -> Tensor2D[B, L[4], T]:
        """Use what is recorded: a parameter as it is, one that is retaped, and constants."""
        x = self.layer.forward(x) * self.scale + self.scale
        x = x * self.scale.retaped(x.tape_type).exp()
        x = x - self.mean.exp()
        x = x * self.scale.detach().exp() + self.scale.exp().detach()
        shape = x.shape
        x = x + self.scale.broadcast_to(shape).detach()
        return x / float(self.scale.numpy().max())

    def operators(self, x: Tensor2D[B, L[4], T]) -> Tensor2D[B, L[4], T]:
        x = x * self.scale.exp()  # E: multiply: "self.scale" gets no gradient here, for "exp" on
        x = self.scale.sigmoid() * x  # E: multiply: "self.scale" gets no gradient here, for "sigm
        x = x + -self.scale  # E: add: "self.scale" gets no gradient here, for "negative" on a
        x += self.scale.exp().log()  # E: add: "self.scale" gets no gradient here, for "exp" on
        x = x / (self.scale * self.other + 1.0)  # E: divide: "self.scale" gets no gradient here
        x = x * (self.mean * self.scale)  # E: "self.scale" gets no gradient here, for "multiply"
        x = x - self.mean.exp() * self.given.exp()  # E: "self.given" gets no gradient here
        x = x - self.layer.bias.square()  # E: subtract: "self.layer.bias" gets no gradient here
        return x * self.scale[0:1]  # E: multiply: "self.scale" gets no gradient here, for "getitem"

    def names(self, x: Tensor2D[B, L[4], T]) -> Tensor2D[B, L[4], T]:
        """Follow names that are assigned once."""
        scale = self.scale
        gate = scale.sigmoid()
        x = x * scale
        return x * gate  # E: multiply: "self.scale" gets no gradient here, for "sigmoid" on a

    def several(self, x: Tensor2D[B, L[4], T]) -> Tensor2D[B, L[4], T]:
        """Be silent about a name that is assigned more than once."""
        gate = self.scale.sigmoid()
        gate = gate.detach()
        return x * gate

    def functions(self, x: Tensor1D[L[4], OwnedTape]) -> Tensor0D[OwnedTape]:
        x = tt.concat((x, self.scale.exp()))[0:4]  # E: concat: "self.scale" gets no gradient here
        x = tt.maximum(x, self.scale.abs())  # E: maximum: "self.scale" gets no gradient here
        # A target is a constant, and owns no tape.
        return losses.mse(x, self.other.exp())

    def plain(self, x: Tensor1D[L[4]]) -> Tensor1D[L[4]]:
        """Compute on plain values, where nothing is to be recorded."""
        return x * self.scale.exp() + (self.scale > 0).astype(np.float32)

    def chosen(self, x: Tensor1D[L[4], T]) -> Tensor1D[L[4], T]:
        """Compute what has no derivative."""
        largest = self.scale.argmax(-1)
        return x * (self.scale > 0).astype(np.float32) + self.mean[largest]

    def asking(self, x: Tensor1D[L[4], T]) -> Tensor1D[L[4], T]:
        """Decide by the tape, so that of the two states only one comes here."""
        if x.owns_tape:
            return x * self.scale
        return x * self.scale.exp()

    def unknown(self, x: Any) -> Any:
        return x * self.scale.exp()


def penalty(loss: Tensor0D[OwnedTape], model: Scaled) -> Tensor0D[OwnedTape]:
    """Be silent outside of the module: a teacher's parameters are constants, and known as such."""
    return loss + model.scale.square().sum()


class Derived(Scaled):
    def more(self, x: Tensor1D[L[4], T]) -> Tensor1D[L[4], T]:
        return x * self.other.exp()  # E: multiply: "self.other" gets no gradient here, for "exp"


tied = tt.build(Tied, rng=rng)
ids: Tensor1D[L[3], NoneTape, np.int64] = tt.arange(3)
with contextlib.suppress(tt.MissingGradientError):
    tied.forward(ids.trace()).sum().backward(wrt=tied)
    raise AssertionError
assert len(tied.right(ids.trace()).sum().backward(wrt=tied)) == 1
