"""Normalization by blocks, of rows or of channels, is that of the whole array."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tapetensor.kernels.normalization import batch_norm, layer_norm
from tapetensor.kernels.numerics import normalized_channels, normalized_rows

TOLERANCE: dict[Any, float] = {np.float32: 2e-5, np.float64: 1e-12}


def _found(
    monkeypatch: pytest.MonkeyPatch, is_in_blocks: bool, kernel: Any, *args: Any
) -> tuple[Any, list[Any]]:
    """Return a kernel's pullbacks, and its output with all cotangents."""
    for room in (normalized_rows, normalized_channels):
        monkeypatch.setattr(room, "_LARGE", 0 if is_in_blocks else 1 << 40)
        # A few rows, or channels, to a block, and a rest.
        monkeypatch.setattr(room, "_BLOCK", 60)
    y, pullbacks = kernel(*args)
    g = np.random.default_rng(3).standard_normal(y.shape).astype(y.dtype)
    return pullbacks, [y, *[pullback(g) for pullback in pullbacks]]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", [(29, 7), (2, 11, 40), (3, 200)], ids=str)
def test_rows_in_blocks_are_rows(
    monkeypatch: pytest.MonkeyPatch, rng: np.random.Generator, shape: tuple[int, ...], dtype: Any
) -> None:
    x = (3 + rng.standard_normal(shape)).astype(dtype)
    weight, bias = rng.standard_normal((2, shape[-1])).astype(dtype)
    before = x.copy()

    joint, found = _found(monkeypatch, True, layer_norm, x, weight, bias, 1e-5)
    _, wanted = _found(monkeypatch, False, layer_norm, x, weight, bias, 1e-5)

    np.testing.assert_array_equal(x, before)
    for one, other in zip(found, wanted, strict=True):
        assert (one.dtype, one.shape) == (other.dtype, other.shape)
        np.testing.assert_allclose(one, other, rtol=TOLERANCE[dtype], atol=10 * TOLERANCE[dtype])
    g = np.broadcast_to(dtype(1.5), shape)
    every = [pullback(g) for pullback in joint]
    for place, wanted_alone in enumerate(every):
        alone = joint.narrow(tuple([one == place for one in range(3)]))
        np.testing.assert_array_equal(alone[place](g), wanted_alone)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", [(9, 7), (4, 7, 5), (4, 7, 5, 3), (1, 3, 20, 10)], ids=str)
@pytest.mark.parametrize("order", [(0, 1, 2, 3), (1, 2, 3, 0), (0, 2, 3, 1)], ids=str)
def test_channels_in_blocks_are_channels(
    monkeypatch: pytest.MonkeyPatch,
    rng: np.random.Generator,
    shape: tuple[int, ...],
    order: tuple[int, ...],
    dtype: Any,
) -> None:
    order = tuple([one for one in order if one < len(shape)])
    lying = [shape[one] for one in order]
    # The axes of `x` are those of its shape, and lie in that order.
    turned = (3 + rng.standard_normal(lying)).astype(dtype)
    x = turned.transpose(np.argsort(order))
    weight, bias = rng.standard_normal((2, shape[1])).astype(dtype)
    told: list[Any] = []

    def observe(mean: Any, variance: Any) -> None:
        told.append((mean, variance))

    joint, found = _found(monkeypatch, True, batch_norm, x, weight, bias, 1e-5, observe)
    _, wanted = _found(monkeypatch, False, batch_norm, x, weight, bias, 1e-5, observe)

    assert found[0].strides == wanted[0].strides
    for one, other in zip([*found, *told[0]], [*wanted, *told[1]], strict=True):
        assert (one.dtype, one.shape) == (other.dtype, other.shape)
        np.testing.assert_allclose(one, other, rtol=TOLERANCE[dtype], atol=10 * TOLERANCE[dtype])
    g = np.broadcast_to(dtype(1.5), shape)
    every = [pullback(g) for pullback in joint]
    for place, wanted_alone in enumerate(every):
        alone = joint.narrow(tuple([one == place for one in range(3)]))
        np.testing.assert_array_equal(alone[place](g), wanted_alone)
