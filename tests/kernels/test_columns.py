"""Convolutions by a few rows of columns at a time are those by all columns, which nobody holds."""

from __future__ import annotations

import tracemalloc
from typing import Any

import numpy as np
import pytest

import tapetensor as tt
from tapetensor.kernels import convolution as kernels
from tapetensor.kernels.numerics import columns
from tapetensor.kernels.numerics.windows import Window
from tapetensor.testing import check_grad

# Of any image the first make blocks of a row, and the last one that is not divided evenly.
BLOCKS = [1, 2000]
WINDOWS = [
    Window(kernel, stride, padding, dilation)
    for kernel in ((3, 3), (1, 2), (5, 1), (2, 4))
    for stride in ((1, 1), (3, 2))
    for padding in ((0, 0), (1, 2), (6, 0))
    for dilation in ((1, 1), (1, 3))
]


def _both(
    monkeypatch: pytest.MonkeyPatch, block: int, kernel: Any, *args: Any
) -> list[tuple[Any, Any]]:
    """Return the outputs and all cotangents, by blocks and by all columns, in pairs."""
    found = []
    monkeypatch.setattr(columns, "_BLOCK", block)
    monkeypatch.setattr(columns, "_FEWEST", 1)
    for many in (0, 1 << 60):
        monkeypatch.setattr(columns, "_MANY", many)
        y, pullbacks = kernel(*args)
        g = np.random.default_rng(3).standard_normal(y.shape)
        found.append([y, *[pullback(g) for pullback in pullbacks]])
    return list(zip(*found, strict=True))


@pytest.mark.parametrize("window", WINDOWS, ids=lambda one: "-".join(map(str, one)))
@pytest.mark.parametrize("groups", [1, 3])
def test_blocks_of_rows_give_what_all_columns_give(
    monkeypatch: pytest.MonkeyPatch, rng: np.random.Generator, window: Window, groups: int
) -> None:
    sizes = (9, 11)
    x, weight = rng.standard_normal((2, 6, *sizes)), rng.standard_normal((9, 6 // groups, 1, 1))
    weight = weight * rng.standard_normal(window.kernel)
    written = rng.standard_normal((2, 9, *window.counts(sizes)))
    forward = kernels.conv2d, x, weight, rng.standard_normal(9), window, groups
    turned = kernels.conv_transpose2d, written, weight, rng.standard_normal(6), window, groups

    for block in BLOCKS:
        pairs = _both(monkeypatch, block, *forward)
        for one, other in [*pairs, *_both(monkeypatch, block, *turned, sizes)]:
            np.testing.assert_allclose(one, other, rtol=1e-10, atol=1e-10)


def test_gradients_by_blocks_are_those_of_finite_differences(
    monkeypatch: pytest.MonkeyPatch, rng: np.random.Generator
) -> None:
    monkeypatch.setattr(columns, "_MANY", 0)
    monkeypatch.setattr(columns, "_BLOCK", 100)
    x: Any = tt.from_numpy(rng.standard_normal((2, 3, 6, 5)))
    weight: Any = tt.from_numpy(rng.standard_normal((4, 3, 3, 2)))
    bias: Any = tt.from_numpy(rng.standard_normal(4))
    check_grad(lambda *all: tt.conv2d(*all, padding=1, stride=2), x, weight, bias, rng=rng)


def test_derivatives_of_derivatives_are_those_by_all_columns(
    monkeypatch: pytest.MonkeyPatch, rng: np.random.Generator
) -> None:
    x: Any = tt.from_numpy(rng.standard_normal((2, 3, 6, 5)))
    weight: Any = tt.from_numpy(rng.standard_normal((4, 3, 3, 2)))

    def curved(many: int) -> Any:
        monkeypatch.setattr(columns, "_MANY", many)

        def loss(x: Any) -> Any:
            return tt.conv2d(x, weight).tanh().square().sum()

        return tt.grad(lambda x: tt.grad(loss, x).square().sum(), x).numpy()

    np.testing.assert_allclose(curved(0), curved(1 << 60), rtol=1e-10, atol=1e-12)


def test_a_compiled_step_goes_by_blocks_too(
    monkeypatch: pytest.MonkeyPatch, rng: np.random.Generator
) -> None:
    monkeypatch.setattr(columns, "_MANY", 0)
    monkeypatch.setattr(columns, "_BLOCK", 100)
    weight: Any = tt.from_numpy(rng.standard_normal((4, 3, 3, 2)))

    def step(x: Any) -> Any:
        grads = tt.conv2d(x.trace(), weight, padding=1).relu().square().sum().backward()
        return grads[x], grads[weight]

    compiled: Any = tt.compile(step)
    x: Any = tt.from_numpy(rng.standard_normal((2, 3, 6, 5)))
    for given in (x, x * 2):
        for one, other in zip(compiled(given), step(given), strict=True):
            np.testing.assert_allclose(one.numpy(), other.numpy(), rtol=1e-12, atol=1e-12)

    def refuse(*_: object) -> None:
        raise AssertionError("a block")

    monkeypatch.setattr(columns, "_gathered", refuse)
    with pytest.raises(AssertionError, match="a block"):
        compiled(x)


def test_no_array_has_the_size_of_all_columns() -> None:
    rng = np.random.default_rng(0)
    x: Any = tt.normal((32, 16, 32, 32), rng=rng)
    weight: Any = tt.normal((16, 16, 3, 3), rng=rng)
    tracemalloc.start()
    try:
        tt.conv2d(x.trace(), weight, padding=1).square().sum().backward()
        # The columns are nine times as large as the images.
        assert tracemalloc.get_traced_memory()[1] < 7 * x.numpy().nbytes
    finally:
        tracemalloc.stop()
