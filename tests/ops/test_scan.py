"""The scan over sequences that do not fit in one block, and what its pullbacks share."""

from __future__ import annotations

import numpy as np
import pytest

from tapetensor.arrays.array import Array
from tapetensor.kernels import scan
from tapetensor.kernels.numerics import recurrence

CHANNELS = 2
# With float64 rows of one sequence of two channels.
BLOCK = recurrence._BLOCK_BYTES // (CHANNELS * 8)


def by_steps(x: Array, a: Array, b: Array, g: Array) -> tuple[Array, Array, Array, Array]:
    """Return the states and the three gradients, one step at a time, from the definition."""
    h, adjoint = np.zeros_like(x), np.zeros_like(x)
    for t in range(len(x)):
        h[t] = b[t] * x[t] + (a[t] * h[t - 1] if t else 0.0)
    for t in reversed(range(len(x))):
        adjoint[t] = g[t] + (a[t + 1] * adjoint[t + 1] if t + 1 < len(x) else 0.0)
    before = np.concatenate([np.zeros((1, x.shape[1])), h[:-1]])
    return h, b * adjoint, adjoint * before, adjoint * x


@pytest.mark.parametrize("length", [1, 2, 63, 64, 65, 66, 129, 200])
def test_every_length_around_that_of_a_block(
    length: int, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recurrence, "_BLOCK_BYTES", 64 * CHANNELS * 8)
    x, b, g = (rng.standard_normal((length, CHANNELS)) for _ in range(3))
    a = rng.uniform(-1.0, 1.0, (length, CHANNELS))

    h, pullbacks = scan.ssm_scan(x, a, b)
    found = [pullback(g) for pullback in pullbacks if pullback is not None]

    for value, wanted in zip([h, *found], by_steps(x, a, b, g), strict=True):
        np.testing.assert_array_equal(value, wanted)


def test_a_sequence_longer_than_a_block_of_the_real_size(rng: np.random.Generator) -> None:
    x, b, g = (rng.standard_normal((BLOCK + 2, CHANNELS)) for _ in range(3))
    a = rng.uniform(0.0, 1.0, (BLOCK + 2, CHANNELS))

    h, pullbacks = scan.ssm_scan(x, a, b)
    found = [pullback(g) for pullback in pullbacks if pullback is not None]

    for value, wanted in zip([h, *found], by_steps(x, a, b, g), strict=True):
        np.testing.assert_array_equal(value, wanted)


def test_the_pullbacks_share_one_backward_scan_but_not_between_cotangents(
    rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs: list[int] = []
    run = recurrence.run_recurrence
    x, a, b, g, other = (rng.standard_normal((5, CHANNELS)) for _ in range(5))
    _, pullbacks = scan.ssm_scan(x, a, b)

    def counted(out: Array, values: Array, decay: Array) -> None:
        runs.append(len(values))
        run(out, values, decay)

    monkeypatch.setattr(recurrence, "run_recurrence", counted)
    for cotangent in (g, other, g):
        before = len(runs)
        found = [pullback(cotangent) for pullback in pullbacks if pullback is not None]

        assert len(runs) == before + 1
        for value, wanted in zip(found, by_steps(x, a, b, cotangent)[1:], strict=True):
            np.testing.assert_array_equal(value, wanted)
