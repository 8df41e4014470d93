"""A recurrent cell with an update gate."""
# ruff: noqa: D101, D102, D103

from __future__ import annotations

from typing import Literal as L

import numpy as np

import tapetensor as tt
from tapetensor import Tensor2D, nn
from tapetensor.typing import B, T


class Gru(nn.Module):
    update: nn.Linear[L[4], L[6]]
    update_state: nn.Linear[L[6], L[6]]
    candidate: nn.Linear[L[4], L[6]]
    candidate_state: nn.Linear[L[6], L[6]]

    def forward(self, x: Tensor2D[B, L[4]], h: Tensor2D[B, L[6], T]) -> Tensor2D[B, L[6], T]:
        update = self.update.forward(x.retaped(h.tape_type))
        z = (self.update_state.forward(h) + update).sigmoid()
        candidate = self.candidate.forward(x.retaped(h.tape_type))
        new = self.candidate_state.forward(h) + candidate
        keep = z * h
        return keep + (1.0 - z) * new.tanh()


def main() -> None:
    rng = np.random.default_rng(0)
    cell = tt.build(Gru, rng=rng)
    x: Tensor2D[L[3], L[4]] = tt.normal((3, 4), rng=rng)
    h: Tensor2D[L[3], L[6]] = tt.zeros((3, 6))
    first = cell.forward(x, h.trace())
    second = cell.forward(x, first)
    loss = second.square().sum()
    grads = loss.backward(wrt=cell)
    assert grads[cell.candidate.weight].shape == (6, 4)
    assert cell.forward(x, h).shape == (3, 6)


if __name__ == "__main__":
    main()
