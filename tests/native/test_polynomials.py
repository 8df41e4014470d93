from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tapetensor.native.scalars import compiled, scalars

F = np.float32
SPECIAL = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-45, -1e-45, 3.4e38, -3.4e38], F)


def _over_all_exponents() -> Any:
    """Floats of both signs with every exponent, and many where the functions turn."""
    bits = np.arange(0, 1 << 32, 16381, dtype=np.uint64).astype(np.uint32)
    near = np.linspace(-110, 110, 100_000), np.linspace(-2, 2, 100_000)
    return np.concatenate([bits.view(F), *near, SPECIAL], dtype=F, casting="unsafe")


def _applied(name: str, x: Any) -> Any:
    function = getattr(scalars(), name)

    def loop(x: Any, out: Any) -> None:
        for i in range(x.size):
            out[i] = function(x[i])

    out = np.empty_like(x)
    compiled(loop)(x, out)
    return out


@pytest.mark.parametrize("name", ["exp", "log", "log1p", "tanh"])
def test_a_polynomial_is_right_to_two_units_in_the_last_place(name: str) -> None:
    x = _over_all_exponents()
    with np.errstate(all="ignore"):
        exact = getattr(np, name)(x.astype(np.float64))
        rounded = exact.astype(F)

    found = _applied(name, x)

    is_number = ~np.isnan(rounded)
    np.testing.assert_array_equal(np.signbit(found[is_number]), np.signbit(rounded[is_number]))
    is_finite = np.isfinite(rounded)
    np.testing.assert_array_equal(found[~is_finite], rounded[~is_finite])
    error = np.abs(found[is_finite] - exact[is_finite]) / np.spacing(np.abs(rounded[is_finite]))
    assert error.max() <= 2.0


@pytest.mark.parametrize("kind", [np.float32, np.float64])
@pytest.mark.parametrize("better", ["highest", "lowest"])
def test_keys_are_in_the_order_of_floats_and_a_nan_wins(better: str, kind: Any) -> None:
    name = {np.float32: "f4", np.float64: "f8"}[kind]
    key, back = getattr(scalars(), f"{better}_key_{name}"), getattr(scalars(), f"from_key_{name}")
    values = np.array([-np.inf, -2.5, -1e-40, 0.0, 1e-40, 1.0, np.inf], kind)

    keys = [key(value) for value in values]

    assert keys == sorted(keys)
    assert [back(one) for one in keys] == values.tolist()
    for nan in (kind(np.nan), -kind(np.nan)):
        assert key(nan) >= max(keys) if better == "highest" else key(nan) <= min(keys)
        assert np.isnan(back(key(nan)))
