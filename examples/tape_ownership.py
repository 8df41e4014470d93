"""Who owns the tape: trace, move, merge, and the errors as a user meets them.

Run it with ``python examples/tape_ownership.py``. Everything that is printed here as a run-time
error is explained by its message; the ones marked (static) are also rejected by ``mypy --strict``
before the program runs, so this file has to silence the checker to provoke them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal as L
from typing import overload

import numpy as np

import tapetensor as tt
from tapetensor import NoneTape, OwnedTape, TapeTensorError, Tensor1D, nn

Weights = Tensor1D[L[3]]
Traced = Tensor1D[L[3], OwnedTape]


def heading(text: str) -> None:
    """Print a heading."""
    print(f"\n{text}\n{'-' * len(text)}")


def provoke(what: str, mistake: Callable[[], object]) -> None:
    """Run a mistake and print the error that it raises."""
    try:
        mistake()
    except TapeTensorError as error:
        print(f"{what}\n    {type(error).__name__}: {error}")
    else:
        raise AssertionError(f"no error: {what}")


def show_trace(x: Weights) -> None:
    """A plain value records nothing; its traced copy owns a tape, and the op moves it."""
    heading("1. trace: the copy owns a tape, the value stays plain")
    traced: Traced = x.trace()
    print("x       ", x)
    print("traced  ", traced)
    squares = traced.square()
    print("squares ", squares)
    print("traced, after square() took its tape:", traced)
    grads = squares.sum().backward()
    print("d sum(x^2) / dx =", grads[x].numpy())


def show_move(x: Weights) -> None:
    """An op moves the tape out of its operand; the operand is spent."""
    heading("2. move: a tape has one owner, and a spent tensor cannot be used again")
    traced = x.trace()
    kept = traced.exp()
    provoke("traced.exp() twice:", lambda: traced.exp())
    loss = kept.sum()
    loss.backward()
    provoke("loss.backward() twice:", lambda: loss.backward())
    other = x.trace()
    provoke("other * other, one tape given twice:", lambda: other * other)
    print("the cure, other * other.with_empty_tape():", other * other.with_empty_tape())


def show_merge(x: Weights, y: Weights) -> None:
    """Two tapes that meet in an op merge; what both held counts once."""
    heading("3. merge: two tapes that meet in an op become one")
    trunk = x.trace().square()
    branch = trunk.with_empty_tape()
    total = (trunk.sin() + branch.cos() * y).sum()
    grads = total.backward()
    expected = 2 * x.numpy() * (np.cos(x.numpy() ** 2) - y.numpy() * np.sin(x.numpy() ** 2))
    print("gradient through both branches:", grads[x].numpy())
    print("by hand:                       ", expected)
    print("y was never traced, and has one too:", grads[y].numpy())


def show_split(x: Weights) -> None:
    """Value and tape can be parted: what is computed from the value alone is not recorded."""
    heading("4. split_tape and put_tape: the value and its tape, apart")
    plain, tape = x.trace().square().split_tape()
    print("plain value:", plain)
    print("its tape:   ", tape)
    largest = plain.max()
    loss = (plain.put_tape(tape) / largest).sum()
    print("gradient, with the largest square as a constant:", loss.backward(wrt=x)[x].numpy())
    provoke("the tape put on a second value:", lambda: plain.put_tape(tape))


def show_accumulation(x: Weights) -> None:
    """A tape can carry the gradients of earlier passes, which the next pass adds to."""
    heading("5. carried gradients: accumulation over several passes")
    grads = x.trace().square().sum().backward()
    for _ in range(2):
        grads = x.trace(grads).square().sum().backward()
    print("three passes:", grads[x].numpy(), "= 3 *", (2 * x.numpy()))


class Jitter(nn.Module):
    """Noise on what is trained with; in inference the input as it is."""

    rng: np.random.Generator

    @overload
    def forward(self, x: Weights) -> Weights: ...
    @overload
    def forward(self, x: Traced) -> Traced: ...
    def forward(self, x: Weights | Traced) -> Weights | Traced:
        """Return the input as it is, or with noise if it owns a tape."""
        return self.with_noise(x) if tt.owns_tape(x) else x

    def with_noise(self, x: Traced) -> Traced:
        """Return the input with noise."""
        noise: Weights = tt.normal((3,), rng=self.rng)
        return x + noise * 0.1


def show_forward_for_each_tape(x: Weights) -> None:
    """The type of the input chooses the body of `forward`: there is no flag to set."""
    heading("6. a forward for each tape: training and inference without a flag")
    jitter = Jitter(rng=np.random.default_rng(0))
    inferred: Weights = jitter.forward(x)
    trained: Traced = jitter.forward(x.trace())
    print("plain input: ", inferred)
    print("traced input:", trained)


def show_static_errors(x: Weights) -> None:
    """Mistakes about who owns a tape that the type checker finds first."""
    heading("7. what mypy --strict rejects before the program runs")
    traced = x.trace()
    provoke(
        "(static) trace() of a traced tensor:",
        lambda: traced.trace(),  # type: ignore[misc]  # the mistake that is shown
    )
    provoke(
        "(static) backward() of a plain tensor:",
        lambda: x.sum().backward(),  # type: ignore[misc]  # the mistake that is shown
    )
    provoke(
        "(static) backward() of a vector without a cotangent:",
        lambda: x.trace().backward(),  # type: ignore[call-arg]  # the mistake that is shown
    )
    plain: Tensor1D[L[3], NoneTape] = x
    longer: Tensor1D[L[4]] = tt.zeros((4,))
    provoke(
        "(static) shapes that do not fit:",
        lambda: plain + longer,  # type: ignore[operator]  # the mistake that is shown
    )


def main() -> None:
    """Run all parts."""
    x: Weights = tt.from_numpy([0.5, 1.0, 2.0], shape=(3,))
    y: Weights = tt.from_numpy([3.0, 2.0, 1.0], shape=(3,))
    show_trace(x)
    show_move(x)
    show_merge(x, y)
    show_split(x)
    show_accumulation(x)
    show_forward_for_each_tape(x)
    show_static_errors(x)


if __name__ == "__main__":
    main()
