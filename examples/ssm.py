"""Remember one marked token among a hundred others: a state-space model against an MLP.

A sequence is random tokens, one of which carries a mark, and a last, empty step, which asks: which
token was it? The mark may stand anywhere, so the model has to pass over every token but one and to
hold that one to the end. A selective state-space model (the block of Mamba) does it with 1,500
parameters, for it learns *what* to let in, once for all steps. An MLP on the flattened
sequence has to learn it for each step anew, and stays near chance with as many parameters, and with
many times more.

All see the same batches, in which the mark lies within 16 steps of the end first and anywhere in
the end: what lies before the first token is zeros. Nothing is downloaded.

Run ``mypy --strict examples/ssm.py`` and then ``python examples/ssm.py``.
"""

from __future__ import annotations

import argparse
import time
from typing import Literal as L
from typing import TypeAlias

import numpy as np
from tqdm import tqdm

import tapetensor as tt
from tapetensor import NoneTape, Tensor0D, Tensor1D, Tensor2D, Tensor3D, losses, nn, optim
from tapetensor.typing import B, M, T

TOKENS: L[8] = 8
# A token is one-hot, and one more feature is the mark.
FEATURES: L[9] = 9
BATCH = 32
HELD_OUT = 1000
FIRST_REACH = 16

Tokens: TypeAlias = L[8]
Sequences: TypeAlias = Tensor3D[B, M, L[9], T]
Answers: TypeAlias = Tensor1D[B, NoneTape, np.int64]


class StateSpace(nn.Module):
    """One block of Mamba between two linear layers; it reads the answer off the last step."""

    embed: nn.Linear[L[9], L[16]]
    norm: nn.LayerNorm[L[16]]
    block: nn.MambaBlock[L[16], L[16], L[4]]
    block_norm: nn.LayerNorm[L[16]]
    head: nn.Linear[L[16], Tokens]

    def forward(self, x: Sequences[B, M, T]) -> Tensor2D[B, Tokens, T]:
        """Return the logits of the tokens, for sequences of any length."""
        steps = self.block.forward(self.norm.forward(self.embed.forward(x)))
        return self.head.forward(self.block_norm.forward(steps[:, -1]))


class Perceptron(nn.Module):
    """An MLP with one hidden layer on the flattened sequence."""

    hidden: nn.Linear[int, int]
    out: nn.Linear[int, Tokens]

    def forward(self, x: Sequences[B, M, T]) -> Tensor2D[B, Tokens, T]:
        """Return the logits of the tokens, for sequences of the length it was made for."""
        batch, length, features = x.shape
        return self.out.forward(self.hidden.forward(x.reshape((batch, length * features))).relu())


def perceptron(length: int, hidden: int, rng: np.random.Generator) -> Perceptron:
    """Return an MLP for sequences of one length."""
    return Perceptron(
        hidden=nn.Linear(length * FEATURES, hidden, rng=rng),
        out=nn.Linear(hidden, TOKENS, rng=rng),
    )


def sequences(
    count: int, length: int, reach: int, rng: np.random.Generator
) -> tuple[Sequences[int, int, NoneTape], Answers[int]]:
    """Return sequences and the token that is marked in each.

    Args:
        count: how many.
        length: of each, the last step asks.
        reach: how many steps before the last hold a token, one of them marked.
        rng: draws tokens and marks.
    """
    rows = np.arange(count)
    first = length - 1 - reach
    tokens = rng.integers(0, TOKENS, (count, reach))
    marked = rng.integers(0, reach, count)
    x = np.zeros((count, length, FEATURES), np.float32)
    x[rows[:, None], np.arange(first, length - 1), tokens] = 1.0
    x[rows, first + marked, TOKENS] = 1.0
    answers = tokens[rows, marked]
    return tt.from_numpy(x, (count, length, FEATURES)), tt.from_numpy(answers, (count,))


def accuracy(model: StateSpace | Perceptron, length: int, seed: int) -> float:
    """Return the share of right answers to fresh sequences with a mark anywhere."""
    x, answers = sequences(HELD_OUT, length, length - 1, np.random.default_rng((seed, 1)))
    return (model.forward(x).argmax(-1) == answers).astype(np.float32).mean().item()


def training_step(
    model: StateSpace | Perceptron,
    optimizer: optim.Optimizer,
    x: Sequences[B, M, NoneTape],
    answers: Tensor1D[B, NoneTape, np.int64],
) -> Tensor0D:
    """Update a model by one batch; return the loss before that."""
    loss = losses.cross_entropy(model.forward(x.trace()), answers)
    value = loss.detach()
    optimizer.step(loss.backward(wrt=model))
    return value


def train(
    name: str,
    model: StateSpace | Perceptron,
    length: int,
    steps: int,
    seed: int,
    *,
    compiled: bool = False,
) -> list[float]:
    """Train a model; return the loss of every step."""
    step_once = tt.compile(training_step) if compiled else training_step
    # Every model sees the same batches.
    rng = np.random.default_rng((seed, 0))
    reaches = [FIRST_REACH]
    while reaches[-1] < length - 1:
        reaches.append(2 * reaches[-1])
    optimizer = optim.AdamW(model, lr=1e-2)
    curve: list[float] = []
    progress = tqdm(range(steps), desc=name, unit="step")
    for step in progress:
        # An equal share of the steps for each reach; the rate falls to 0 over the second half.
        reach = min(reaches[step * len(reaches) // steps], length - 1)
        optimizer.lr = 1e-2 * min(1.0, 2.0 * (1.0 - step / steps))
        x, answers = sequences(BATCH, length, reach, rng)
        curve.append(step_once(model, optimizer, x, answers).item())
        progress.set_postfix_str(f"reach {reach}, loss {np.mean(curve[-50:]):.3f}")
    return curve


def size(model: nn.Module) -> int:
    """Return the number of parameters."""
    return sum(parameter.size for parameter in model.parameters().values())


def main() -> None:
    """Train all models on the same sequences and compare them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--length", type=int, default=128, help="steps of a sequence, > 17")
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--hidden", type=int, default=64, help="hidden units of the larger MLP")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--compile", action="store_true", help="plan the training steps once")
    arguments = parser.parse_args()
    length: int = arguments.length
    if length <= FIRST_REACH + 1:
        parser.error(f"--length must be > {FIRST_REACH + 1}, got {length}")
    start = time.perf_counter()
    rng = np.random.default_rng(arguments.seed)
    state_space = tt.build(StateSpace, rng=rng)
    # As many parameters as the state-space model, or a few more.
    inputs = length * FEATURES + 1
    as_small = max(1, -(-(size(state_space) - TOKENS) // (inputs + TOKENS)))
    models: dict[str, StateSpace | Perceptron] = {
        "state space": state_space,
        "MLP as small": perceptron(length, as_small, rng),
        "larger MLP": perceptron(length, arguments.hidden, rng),
    }
    for name, model in models.items():
        curve = train(
            name, model, length, arguments.steps, arguments.seed, compiled=arguments.compile
        )
        reached = accuracy(model, length, arguments.seed)
        print(
            f"{name}: {size(model)} parameters, "
            f"loss {np.mean(curve[:50]):.3f} -> {np.mean(curve[-50:]):.3f}, "
            f"accuracy {reached:.1%} over {length - 1} steps (chance {1 / TOKENS:.1%})"
        )
    print(f"took {time.perf_counter() - start:.1f} s")


if __name__ == "__main__":
    main()
