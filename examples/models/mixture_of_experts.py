"""A top-k gated mixture-of-experts feed-forward layer, typed.

Source: Shazeer et al. (2017), "Outrageously large neural networks: the sparsely-gated
mixture-of-experts layer", with the gates of Jiang et al. (2024), "Mixtral of experts": the softmax
of the best k scores. An expert sees only the tokens that chose it.

Run ``mypy --strict examples/models/mixture_of_experts.py`` and then
``python examples/models/mixture_of_experts.py``.
"""

from __future__ import annotations

from typing import Literal as L
from typing import TypeAlias

import numpy as np

import tapetensor as tt
from tapetensor import NoneTape, Tensor2D, losses, nn, optim
from tapetensor.typing import M, T

Channels: TypeAlias = L[16]
Experts: TypeAlias = L[6]
Chosen: TypeAlias = L[2]
CHANNELS: Channels = 16
EXPERTS: Experts = 6
CHOSEN: Chosen = 2

Hidden: TypeAlias = Tensor2D[M, Channels, T]


class Expert(nn.Module):
    """A feed-forward layer."""

    hidden: nn.Linear[Channels, L[32]]
    out: nn.Linear[L[32], Channels]

    def forward(self, x: Hidden[M, T]) -> Hidden[M, T]:
        """Return the transformed tokens."""
        return self.out.forward(self.hidden.forward(x).gelu())


def best(scores: Tensor2D[M, Experts, T]) -> Tensor2D[M, Chosen, NoneTape, np.int64]:
    """Return which experts each token scores highest, best first."""
    m, _ = scores.shape
    order = np.argsort(-scores.detach().numpy(), axis=-1, kind="stable")
    return tt.from_numpy(order[:, :CHOSEN], (m, CHOSEN), np.int64)


def gates(
    scores: Tensor2D[M, Experts, T], chosen: Tensor2D[M, Chosen, NoneTape, np.int64]
) -> Tensor2D[M, Chosen, T]:
    """Return the weight of each chosen expert: the softmax of their scores, a sum of 1."""
    m, _ = scores.shape
    tokens = tt.from_numpy(np.repeat(np.arange(m), CHOSEN), (m * CHOSEN,))
    experts = chosen.reshape((m * CHOSEN,))
    return scores[tokens, experts].reshape((m, CHOSEN)).softmax()


class MixtureOfExperts(nn.Module):
    """Every token goes to its best experts, and gets the sum of what they say, by their gates."""

    gate: nn.Linear[Channels, Experts]
    experts: list[Expert] = nn.repeat(EXPERTS)

    def forward(self, x: Hidden[M, T]) -> Hidden[M, T]:
        """Return the mixed outputs.

        The tokens are sorted by expert, so that each expert runs once, on a slice.
        """
        m, _ = x.shape
        scores = self.gate.forward(x)
        chosen = best(scores)
        assigned = chosen.numpy().ravel()
        order = np.argsort(assigned, kind="stable")
        tokens = tt.from_numpy(order // CHOSEN, (order.size,))
        sections = np.bincount(assigned, minlength=EXPERTS).tolist()
        answers = [
            expert.forward(part)
            for expert, part in zip(self.experts, x.take(tokens).split(sections), strict=True)
        ]
        back = tt.from_numpy(np.argsort(order), (order.size,))
        by_token = tt.concat(answers).take(back).reshape((m, CHOSEN, CHANNELS))
        return (by_token * gates(scores, chosen).expand_dims(-1)).sum(axis=1)


class Model(nn.Module):
    """A mixture behind a layer norm and beside a residual connection, and a head."""

    norm: nn.LayerNorm[Channels]
    mixture: MixtureOfExperts
    out: nn.Linear[Channels, L[1]]

    def forward(self, x: Hidden[M, T]) -> Tensor2D[M, L[1], T]:
        """Return one number per token."""
        return self.out.forward(self.mixture.forward(self.norm.forward(x)) + x)


def main() -> None:
    """Learn a function that has another slope in each corner of the space."""
    rng = np.random.default_rng(0)
    model = tt.build(Model, rng=rng)
    optimizer = optim.AdamW(model, lr=1e-2)
    x: Hidden[L[64], NoneTape] = tt.normal((64, 16), rng=rng)
    values = x.numpy()
    corner = 2 * (values[:, 0] > 0) + (values[:, 1] > 0)
    target: Tensor2D[L[64], L[1]] = tt.from_numpy(values[np.arange(64), 2 + corner, None], (64, 1))
    before = losses.mse(model.forward(x), target).item()
    for _ in range(100):
        loss = losses.mse(model.forward(x.trace()), target)
        optimizer.step(loss.backward(wrt=model))
    after = losses.mse(model.forward(x), target).item()
    print(f"mixture of experts: loss {before:.3f} at first, {after:.3f} after 100 steps")


if __name__ == "__main__":
    main()
