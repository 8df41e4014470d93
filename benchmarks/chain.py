"""What tracing costs: a chain of 1000 small ops, forward and backward, beside plain numpy."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

import tapetensor as tt
from benchmarks.timing import interleaved_medians
from tapetensor import NoneTape, OwnedTape, Tensor1D
from tapetensor.arrays.array import Array

LENGTH = 1000
Vector = Tensor1D[int, NoneTape]
Traced = Tensor1D[int, OwnedTape]


def plain_chain(op: Callable[[Array], Array], start: Array) -> Callable[[], object]:
    """Return a run of the op on numpy arrays, forward only."""

    def run() -> Array:
        x = start
        for _ in range(LENGTH):
            x = op(x)
        return x

    return run


def traced_chain(op: Callable[[Traced], Traced], start: Vector) -> Callable[[], object]:
    """Return a run of the op on a traced tensor, forward and backward to every leaf."""
    cotangent = tt.ones((16,))

    def run() -> object:
        x = start.trace()
        for _ in range(LENGTH):
            x = op(x)
        return x.backward(cotangent)

    return run


def measure(rounds: int = 60) -> list[tuple[str, float, float]]:
    """Return, for several ops, microseconds per op of plain numpy and of the traced chain."""
    values = np.linspace(0.999, 1.001, 16, dtype=np.float32)
    start = tt.from_numpy(values, (16,))
    other = tt.from_numpy(values, (16,))
    other_values = other.numpy()
    cases: list[tuple[str, Callable[[Array], Array], Callable[[Traced], Traced]]] = [
        ("x + y", lambda x: x + other_values, lambda x: x + other),
        ("x * y", lambda x: x * other_values, lambda x: x * other),
        ("x * 0.999", lambda x: x * 0.999, lambda x: x * 0.999),
        ("relu", lambda x: np.maximum(x, 0), lambda x: x.relu()),
        ("sin", lambda x: np.sin(x), lambda x: x.sin()),
        ("tanh", lambda x: np.tanh(x), lambda x: x.tanh()),
        ("sigmoid", lambda x: 1 / (1 + np.exp(-x)), lambda x: x.sigmoid()),
        ("softmax", _plain_softmax, lambda x: x.softmax()),
    ]
    rows = []
    for name, plain, traced in cases:
        medians = interleaved_medians(
            {"plain": plain_chain(plain, values), "traced": traced_chain(traced, start)}, rounds
        )
        scale = 1e6 / LENGTH
        rows.append((name, medians["plain"] * scale, medians["traced"] * scale))
    return rows


def _plain_softmax(x: Array) -> Array:
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    y: Array = e / e.sum(axis=-1, keepdims=True)
    return y


def main() -> None:
    """Print the table."""
    print(f"A chain of {LENGTH} ops on a 16-vector, microseconds per op")
    print(f"{'op':<12}{'numpy forward':>15}{'traced fwd + bwd':>18}{'ratio':>8}")
    for name, plain, traced in measure():
        print(f"{name:<12}{plain:>15.2f}{traced:>18.2f}{traced / plain:>8.2f}")


if __name__ == "__main__":
    main()
