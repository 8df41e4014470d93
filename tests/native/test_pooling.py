"""Pooling gives what it gives on numpy: plane by plane, and where windows write."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tapetensor as tt
from tapetensor import compiler, nn
from tapetensor.kernels import images
from tapetensor.kernels.numerics import windows
from tapetensor.kernels.numerics.windows import Window, cropped, padded
from tapetensor.native.kernels import native_kernel

Array = np.ndarray[Any, np.dtype[Any]]
WINDOWS = [
    Window((2, 2), (2, 2), (0, 0), (1, 1)),
    Window((3, 3), (2, 2), (1, 1), (1, 1)),
    Window((3, 2), (1, 3), (1, 0), (2, 1)),
    Window((1, 3), (3, 1), (0, 2), (1, 2)),
    Window((2, 2), (4, 3), (0, 0), (2, 1)),
]
DTYPES = [np.float32, np.float64, np.float16]
POOLS = [images.max_pool2d, images.min_pool2d]


def _few_values(rng: np.random.Generator, shape: tuple[int, ...], dtype: Any) -> Array:
    """Return an array with ties, infinities and NaN."""
    x = rng.integers(-3, 4, shape).astype(dtype)
    for special in (np.nan, np.inf, -np.inf):
        x[rng.random(shape) < 0.02] = special
    return x


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize("shape", [(2, 3, 9, 8), (1, 2, 2, 5, 5)])
@pytest.mark.parametrize("pool", POOLS)
def test_the_extremes_of_windows_and_their_cotangents_are_numpys(
    workers: int, dtype: Any, window: Window, shape: tuple[int, ...], pool: Callable[..., Any]
) -> None:
    rng = np.random.default_rng(0)
    x = _few_values(rng, shape, dtype)

    expected, plain = inspect.unwrap(pool)(x, window)
    found, pullbacks = native_kernel(pool)(x, window)
    g = rng.standard_normal(expected.shape).astype(dtype)

    np.testing.assert_array_equal(found, expected)
    for cotangent in (g, np.asfortranarray(g), np.broadcast_to(g[..., :1, :1], g.shape)):
        tolerance = 1e-2 if dtype is np.float16 else 1e-6
        np.testing.assert_allclose(
            pullbacks[0](cotangent), plain[0](cotangent), rtol=tolerance, atol=tolerance
        )


@pytest.mark.parametrize("kernel", POOLS)
def test_a_cotangent_of_another_dtype_and_errors_that_raise_are_left_to_numpy(
    kernel: Callable[..., Any],
) -> None:
    rng, window = np.random.default_rng(0), WINDOWS[1]
    args = rng.standard_normal((2, 3, 6, 6)).astype(np.float32), window
    y, pullbacks = native_kernel(kernel)(*args)
    _, plain = inspect.unwrap(kernel)(*args)
    g = rng.standard_normal(y.shape)

    np.testing.assert_array_equal(pullbacks[0](g), plain[0](g))
    with np.errstate(over="raise"):
        np.testing.assert_array_equal(pullbacks[0](y), plain[0](y))


# Blocks of images are vectors, and what is left over is not.
SHAPES = [(3, 9, 8, 70), (2, 7, 7, 1), (0, 5, 5, 2), (2, 5, 5, 0)]


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("window", WINDOWS[:3])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("is_beaten", [np.less, np.greater])
def test_what_windows_write_is_numpys_to_the_bit(
    dtype: Any, window: Window, shape: tuple[int, ...], is_beaten: np.ufunc
) -> None:
    rng = np.random.default_rng(0)
    x = _few_values(rng, shape, dtype)
    is_max = is_beaten is np.less
    full = padded(x, window.padding, -np.inf if is_max else np.inf)
    parts = [full[place] for place in window.places(window.counts(shape[1:-1]))]
    best = (np.maximum if is_max else np.minimum).reduce(parts)
    g = np.asfortranarray(rng.standard_normal(best.shape).astype(dtype))
    columns = np.asfortranarray(np.stack(parts, axis=1))
    results = [np.full_like(full, 7) for _ in range(4)]

    inspect.unwrap(windows.write_shares)(results[0], g, full, best, is_beaten, window)
    native_kernel(windows.write_shares)(results[1], g, full, best, is_beaten, window)
    inspect.unwrap(windows.write_sums)(results[2], columns, window)
    native_kernel(windows.write_sums)(results[3], columns, window)

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
