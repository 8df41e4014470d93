"""Pooling over planes gives what it gives on numpy."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tapetensor.kernels import images
from tapetensor.kernels.numerics import threads
from tapetensor.kernels.numerics.windows import Window
from tapetensor.native import loading
from tapetensor.native import pooling as native
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
PLAIN: dict[Callable[..., Any], Callable[..., Any]] = {
    native.max_pool2d: inspect.unwrap(images.max_pool2d),
    native.min_pool2d: inspect.unwrap(images.min_pool2d),
}


@pytest.fixture(params=[1, 3])
def workers(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr(loading, "SMALLEST_FOR_THREADS", 1)
    monkeypatch.setattr(threads, "count", lambda: request.param)
    count: int = request.param
    return count


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
@pytest.mark.parametrize("pool", [native.max_pool2d, native.min_pool2d])
def test_the_extremes_of_windows_and_their_cotangents_are_numpys(
    workers: int, dtype: Any, window: Window, shape: tuple[int, ...], pool: Callable[..., Any]
) -> None:
    rng = np.random.default_rng(0)
    x = _few_values(rng, shape, dtype)

    expected, plain = PLAIN[pool](x, window)
    found, pullbacks = pool(x, window)
    g = rng.standard_normal(expected.shape).astype(dtype)

    np.testing.assert_array_equal(found, expected)
    for cotangent in (g, np.asfortranarray(g), np.broadcast_to(g[..., :1, :1], g.shape)):
        tolerance = 1e-2 if dtype is np.float16 else 1e-6
        np.testing.assert_allclose(
            pullbacks[0](cotangent), plain[0](cotangent), rtol=tolerance, atol=tolerance
        )


@pytest.mark.parametrize("kernel", PLAIN)
def test_a_cotangent_of_another_dtype_and_errors_that_raise_are_left_to_numpy(
    kernel: Callable[..., Any],
) -> None:
    rng, window = np.random.default_rng(0), WINDOWS[1]
    args = rng.standard_normal((2, 3, 6, 6)).astype(np.float32), window
    y, pullbacks = kernel(*args)
    _, plain = PLAIN[kernel](*args)
    g = rng.standard_normal(y.shape)

    np.testing.assert_array_equal(pullbacks[0](g), plain[0](g))
    with np.errstate(over="raise"):
        np.testing.assert_array_equal(pullbacks[0](y), plain[0](y))


@pytest.mark.parametrize("kernel", PLAIN)
def test_eager_mode_takes_these_loops(kernel: Callable[..., Any]) -> None:
    assert native_kernel(PLAIN[kernel]) is kernel
