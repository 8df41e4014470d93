"""The logarithm of chosen actions weighed by their reward."""
# ruff: noqa: D101, D102, D103

from __future__ import annotations

from typing import Literal as L

import numpy as np

import tapetensor as tt
from tapetensor import NoneTape, Tensor1D, Tensor2D, data, nn, optim
from tapetensor.typing import B, T


class Policy(nn.Module):
    hidden: nn.Linear[L[4], L[8]]
    out: nn.Linear[L[8], L[3]]

    def forward(self, x: Tensor2D[B, L[4], T]) -> Tensor2D[B, L[3], T]:
        return self.out.forward(self.hidden.forward(x).tanh()).log_softmax()


def main() -> None:
    rng = np.random.default_rng(0)
    policy = tt.build(Policy, rng=rng)
    states: Tensor2D[L[7], L[4]] = tt.normal((7, 4), rng=rng)
    actions: Tensor1D[L[7], NoneTape, np.int64] = tt.from_numpy(rng.integers(3, size=7), (7,))
    rewards: Tensor1D[L[7]] = tt.normal((7,), rng=rng)
    actions_count: L[3] = 3
    chosen = data.one_hot(actions, actions_count)
    scores = (policy.forward(states.trace()) * chosen).sum(axis=1)
    loss = -(scores * rewards).mean()
    optim.Sgd(policy, lr=0.1).step(loss.backward(wrt=policy))
    assert policy.forward(states).exp().shape == (7, 3)


if __name__ == "__main__":
    main()
