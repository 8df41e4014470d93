"""A pole that learns to stand: reinforcement learning by hand, on a cart written in ten lines.

The policy is a small network. It plays many carts at once without a tape (nothing is recorded while
it acts), and learns from what was played in one pass with a tape: the logarithm of the probability
of each action, times how much better than usual it went afterwards (REINFORCE with a baseline).

Run ``mypy --strict examples/pole.py`` and then ``python examples/pole.py``.

Sources: Barto, Sutton & Anderson (1983) for the cart; Williams (1992) for the gradient.
"""

from __future__ import annotations

import argparse
import time
from typing import Any, NamedTuple, TypeAlias
from typing import Literal as L

import numpy as np

import tapetensor as tt
from tapetensor import NoneTape, Tensor1D, Tensor2D, losses, nn, optim
from tapetensor.typing import B, T

Array: TypeAlias = np.ndarray[Any, Any]

CARTS = 32
LONGEST = 200
DISCOUNT = 0.98


class Policy(nn.Module):
    """The logits of pushing to the left and to the right, from place, angle and their speeds."""

    hidden: nn.Linear[L[4], L[32]]
    out: nn.Linear[L[32], L[2]]

    def forward(self, states: Tensor2D[B, L[4], T]) -> Tensor2D[B, L[2], T]:
        """Return two logits for each state."""
        return self.out.forward(self.hidden.forward(states).tanh())


class Played(NamedTuple):
    """What happened in the steps of all carts, one after another."""

    states: Tensor2D[int, L[4]]
    actions: Tensor1D[int, NoneTape, np.int64]
    advantages: Tensor1D[int]
    """The discounted rewards that followed, against the mean of all."""
    length: float
    """The mean number of steps until a pole fell."""


def moved(states: Array, actions: Array) -> Array:
    """Return the states after 0.02 s: a cart of 1 kg, a pole of 1 m and 0.1 kg, a push of 10 N."""
    _, speed, angle, turning = states.T
    sine, cosine = np.sin(angle), np.cos(angle)
    push = (20.0 * actions - 10.0 + 0.05 * turning**2 * sine) / 1.1
    turned = (9.8 * sine - cosine * push) / (0.5 * (4 / 3 - 0.1 * cosine**2 / 1.1))
    driven = push - 0.05 * turned * cosine / 1.1
    return states + 0.02 * np.stack([speed, driven, turning, turned], axis=1)


def play(policy: Policy, rng: np.random.Generator) -> Played:
    """Play all carts until their poles fall, or for 200 steps."""
    states = rng.uniform(-0.05, 0.05, (CARTS, 4))
    alive = np.ones(CARTS, bool)
    steps: list[tuple[Array, Array, Array]] = []
    for _ in range(LONGEST):
        logits = policy.forward(tt.from_numpy(states, (CARTS, 4), np.float32))
        right = logits.softmax(axis=-1).numpy()[:, 1]
        actions = (rng.random(CARTS) < right).astype(np.int64)
        steps.append((states, actions, alive))
        states = moved(states, actions)
        alive = alive & (np.abs(states[:, 0]) < 2.4) & (np.abs(states[:, 2]) < 0.21)
    seen, chosen, played = [np.stack(one) for one in zip(*steps, strict=True)]
    returns = np.zeros((LONGEST + 1, CARTS))
    for step in reversed(range(LONGEST)):
        returns[step] = played[step] * (1 + DISCOUNT * returns[step + 1])
    gained = returns[:-1][played]
    count = len(gained)
    return Played(
        tt.from_numpy(seen[played], (count, 4), np.float32),
        tt.from_numpy(chosen[played], (count,), np.int64),
        tt.from_numpy((gained - gained.mean()) / gained.std(), (count,), np.float32),
        float(played.sum(axis=0).mean()),
    )


def main() -> None:
    """Play and learn in turns, and tell how long the poles stand."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=60)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    start = time.perf_counter()
    rng = np.random.default_rng(arguments.seed)
    policy = tt.build(Policy, rng=rng)
    optimizer = optim.Adam(policy, lr=1e-2)
    for number in range(arguments.rounds):
        played = play(policy, rng)
        if number % 10 == 0:
            print(f"round {number:3}: the poles stand for {played.length:.0f} steps")
        logits = policy.forward(played.states.trace())
        surprise = losses.cross_entropy(logits, played.actions, reduction="none")
        optimizer.step((surprise * played.advantages).mean().backward(wrt=policy))
    print(f"in the end: {play(policy, rng).length:.0f} of {LONGEST} steps")
    print(f"took {time.perf_counter() - start:.1f} s")


if __name__ == "__main__":
    main()
