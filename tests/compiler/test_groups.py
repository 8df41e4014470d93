"""Groups of steps, run on blocks of rows, give what numpy gives for the whole."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tapetensor as tt
from tapetensor.compiler import plans
from tapetensor.compiler.emit import blocks


def _bias_and_activation(x: Any) -> Any:
    hidden = np.maximum(x @ np.ones((5, 5)) * 0.1 + np.arange(5.0), 1.5)
    return hidden * 2.0 - hidden.sum(axis=0, keepdims=True), np.where(hidden > 2.0, x, -1.0)


def _softmax(x: Any) -> Any:
    e = np.exp(x - np.maximum.reduce(x, axis=1, keepdims=True))
    p = e / np.add.reduce(e, axis=1, keepdims=True)
    return p, np.add.reduce(np.log(p), axis=None), np.maximum.reduce(p, axis=0)


def _views(x: Any) -> Any:
    y = np.exp(x).reshape(6, 1, 5).transpose((0, 2, 1)) * 3.0
    return y.reshape(6, 5) + x, np.minimum.reduce(y, axis=(0, 1))


def _written_over(x: Any) -> Any:
    y = x @ np.ones((5, 5))
    return np.tanh(np.exp(-np.square(y)) + x) @ np.ones((5, 2))


def _one_row_for_all(x: Any) -> Any:
    return np.exp(x + x[2:3]) * np.square(x), np.exp(x + x[1]) - 1.0


def _as_many_columns_as_rows(x: Any) -> Any:
    return np.exp(x[:5] + x[1]) * x[2], np.square(x[1:] - x[1]) * x[0] + x[0]


def _read_in_another_order(x: Any) -> Any:
    y = x @ np.ones((5, 5))
    reversed_rows, squares = np.exp(y[::-1] * 0.1) - 1.0, np.square(y)
    return reversed_rows @ np.ones((5, 2)), squares @ np.ones((5, 2))


def _read_later(x: Any) -> Any:
    y = x @ np.ones((5, 5))
    squares, later = np.square(y), np.tanh(y) + 1.0
    return squares @ np.ones((5, 2)), later @ np.ones((5, 2))


def _read_as_a_whole(x: Any) -> Any:
    y = x[:5] @ np.ones((5, 5))
    sums, squares = y + np.exp(np.ones((5, 5, 1)) * x[:5, None]), np.square(y)
    return sums @ np.ones((5, 2)), squares @ np.ones((5, 2))


def _views_of_another_group(x: Any) -> Any:
    y = np.exp(x) + 1.0
    products = np.square(y @ np.ones((5, 5))) * 2.0
    return np.sin(y.reshape(6, 1, 5)).reshape(6, 5) + products, np.cos(y[:, 1:3]) * products[:, :2]


def _square_and_transposed(x: Any) -> Any:
    y = np.exp(x @ np.ones((5, 6)) * 0.1) + 1.0
    return np.sin(y.T) * 2.0 + y, np.cos(np.transpose(y.reshape(6, 2, 3), (1, 0, 2))) * 3.0


def _what_waits_for_totals(x: Any) -> Any:
    y = np.exp(x) * 2.0
    sums = y.sum(axis=0, keepdims=True)
    wide = np.exp(x @ np.ones((5, 600)) * 0.1) + 1.0
    return (sums + 1.0) @ np.ones((5, 600)), wide - wide.sum(axis=0, keepdims=True)


def _other_rows_between(x: Any) -> Any:
    y = np.exp(x)
    z = np.exp(x[:4])
    return np.cos(y) * 2.0, np.sin(z) + 1.0


def _totals_of_every_kind(x: Any) -> Any:
    y = np.exp(x) * 2.0
    limited = np.multiply.reduce(y, axis=0, initial=7.0)
    others = np.subtract.reduce(y, axis=0), np.logaddexp.reduce(y, axis=0)
    return limited, *others, np.add.reduce((y * 1j) + y, axis=0), np.add.reduce(y.sum(), axis=None)


def pairwise(x: Any) -> Any:
    """Read all rows of what the group computes, for each of its rows."""
    x = np.tanh(x)
    return np.exp(np.expand_dims(x, 1) - x)


def permuted_and_flattened(x: Any) -> Any:
    """Reshape what does not lie in order."""
    y = np.exp(x.reshape(-1, 8, 8))
    return y.transpose((0, 2, 1)).reshape(y.shape[0], 64) * 2.0


def totals_of_rows(x: Any) -> Any:
    """Add up one number to a row."""
    sums = np.add.reduce(np.exp(x), axis=1)
    return np.add.reduce(sums * sums, axis=0) + np.add.reduce(sums[:, None], axis=None)


def scratch_of_other_dtypes(x: Any) -> Any:
    """Let numbers take the place of truths."""
    counts = np.add.reduce(np.greater(x.reshape(-1, 16, 4), 0.0), axis=2, dtype=np.int64)
    sums = np.exp(np.add.reduce(x.reshape(-1, 8, 8), axis=2) * 0.1)
    return sums * np.add.reduce(counts, axis=1, keepdims=True)


@pytest.mark.parametrize(
    "run",
    [
        _bias_and_activation,
        _softmax,
        _views,
        _written_over,
        _one_row_for_all,
        _as_many_columns_as_rows,
        _read_in_another_order,
        _read_later,
        _read_as_a_whole,
        _views_of_another_group,
        _square_and_transposed,
        _what_waits_for_totals,
        _other_rows_between,
        _totals_of_every_kind,
    ],
)
@pytest.mark.parametrize("block", [1, 12, 1 << 9])
def test_groups_of_few_columns_give_what_numpy_gives(
    run: Callable[[Any], Any], block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(blocks, "BLOCK", block)
    monkeypatch.setattr(blocks, "_SMALLEST", 1)
    compiled = tt.compile(run)
    x = np.random.default_rng(0).standard_normal((6, 5))

    for _ in range(2):
        for found, wanted in zip(compiled(x), run(x), strict=True):
            np.testing.assert_allclose(found, wanted, rtol=1e-12)
    titles = [step.title for step in plans(compiled)[0].steps]
    assert block == 1 << 9 or any(title.startswith("group of") for title in titles)


@pytest.mark.parametrize(
    "run", [pairwise, permuted_and_flattened, totals_of_rows, scratch_of_other_dtypes]
)
@pytest.mark.parametrize("rows", [30, 33])
def test_groups_of_rows_give_what_the_whole_gives(
    run: Any, rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(blocks, "BLOCK", 1 << 9)
    monkeypatch.setattr(blocks, "_SMALLEST", 1)
    compiled = tt.compile(run)
    x = np.random.default_rng(0).standard_normal((rows, 64))

    np.testing.assert_allclose(compiled(x), run(x), rtol=1e-12)
    assert any(step.title.startswith("group of") for step in plans(compiled)[0].steps)
