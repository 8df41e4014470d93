"""What windows write natively is what they write on numpy."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest

import tapetensor as tt
from tapetensor import compiler, nn
from tapetensor.kernels.numerics import windows as plain
from tapetensor.kernels.numerics.windows import Window, cropped, padded
from tapetensor.native import pooling as native

Array = np.ndarray[Any, np.dtype[Any]]
WINDOWS = [
    Window((2, 2), (2, 2), (0, 0), (1, 1)),
    Window((3, 2), (2, 1), (1, 0), (1, 2)),
    Window((1, 3), (3, 2), (0, 1), (1, 1)),
]
# Blocks of images are vectors, and what is left over is not.
SHAPES = [(3, 9, 8, 70), (2, 7, 7, 1), (0, 5, 5, 2), (2, 5, 5, 0)]


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16])
@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("is_beaten", [np.less, np.greater])
def test_what_windows_write_is_numpys_to_the_bit(
    dtype: Any, window: Window, shape: tuple[int, ...], is_beaten: np.ufunc
) -> None:
    rng = np.random.default_rng(0)
    # Of a few values there are ties.
    x = rng.integers(-3, 4, shape).astype(dtype)
    for special in (np.nan, np.inf, -np.inf):
        x[rng.random(shape) < 0.02] = special
    is_max = is_beaten is np.less
    full = padded(x, window.padding, -np.inf if is_max else np.inf)
    parts = [full[place] for place in window.places(window.counts(shape[1:-1]))]
    best = (np.maximum if is_max else np.minimum).reduce(parts)
    g = np.asfortranarray(rng.standard_normal(best.shape).astype(dtype))
    columns = np.asfortranarray(np.stack(parts, axis=1))
    results = [np.full_like(full, 7) for _ in range(4)]

    inspect.unwrap(plain.write_shares)(results[0], g, full, best, is_beaten, window)
    native.write_shares(results[1], g, full, best, is_beaten, window)
    inspect.unwrap(plain.write_sums)(results[2], columns, window)
    native.write_sums(results[3], columns, window)

    shares, found_shares, sums, found_sums = [cropped(one, window.padding) for one in results]
    np.testing.assert_array_equal(found_shares, shares)
    np.testing.assert_array_equal(found_sums, sums)


def test_a_compiled_step_of_a_cnn_writes_natively() -> None:
    rng = np.random.default_rng(0)
    layer = nn.Conv2d(2, 3, 3, padding=1, rng=rng)
    x = tt.from_numpy(rng.standard_normal((4, 2, 6, 6)).astype(np.float32))

    def step(x: Any) -> Any:
        pooled = nn.MaxPool2d(2).forward(layer.forward(x.trace()))
        return pooled.square().sum().backward(wrt=x)[x]

    compiled = tt.compile(step, backend="numba")

    np.testing.assert_allclose(compiled(x).numpy(), step(x).numpy(), rtol=1e-4, atol=1e-5)
    (plan,) = compiler.plans(compiled)
    assert "native write_shares" in plan.explain()
    assert "native write_sums" in plan.explain()
