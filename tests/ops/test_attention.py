"""The fused attention is the plain one: softmax and products of tensors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tapetensor as tt


def _plain(query: Any, key: Any, value: Any, mask: Any) -> Any:
    scores = query @ key.transpose() * (1.0 / np.sqrt(query.shape[-1]))
    if mask is not None:
        scores = tt.where(mask, scores, -1e9)
    return scores.softmax() @ value


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("causal", [False, True])
def test_values_and_gradients_are_those_of_the_plain_form(
    dtype: Any, causal: bool, rng: np.random.Generator
) -> None:
    shape = (3, 2, 16, 8)
    query, key, value = (tt.normal(shape, dtype, rng=rng) for _ in range(3))
    cotangent = tt.normal(shape, dtype, rng=rng)
    mask = tt.from_numpy(np.tri(16, dtype=np.bool_)) if causal else None

    fused = tt.scaled_dot_product_attention(query.trace(), key.trace(), value, causal=causal)
    plain = _plain(query.trace(), key.trace(), value, mask)

    tolerance = 1e-5 if dtype is np.float32 else 1e-13
    np.testing.assert_allclose(
        fused.detach().numpy(), plain.detach().numpy(), rtol=tolerance, atol=tolerance
    )
    found, wanted = fused.backward(cotangent), plain.backward(cotangent)
    for tensor in (query, key, value):
        assert found[tensor].dtype == dtype
        np.testing.assert_allclose(
            found[tensor].numpy(), wanted[tensor].numpy(), rtol=tolerance, atol=tolerance
        )


@pytest.mark.parametrize("size", [1e3, 1e18])
def test_large_scores_stay_finite(size: float) -> None:
    # Warnings are errors here, so an overflow on the way would fail the test.
    query = tt.full((2, 4), size)
    key = tt.from_numpy(np.eye(3, 4, dtype=np.float32) * np.float32(size))
    value = tt.from_numpy(np.arange(6.0, dtype=np.float32).reshape(3, 2))

    output = tt.scaled_dot_product_attention(query.trace(), key.trace(), value.trace())

    np.testing.assert_allclose(output.detach().numpy(), [[2.0, 3.0]] * 2)
    grads = output.sum().backward()
    assert all(np.isfinite(grads[one].numpy()).all() for one in (query, key, value))


def test_a_query_that_sees_no_key_gives_zeros_and_passes_no_gradient(
    rng: np.random.Generator,
) -> None:
    query, key, value = (tt.normal((2, 3), rng=rng) for _ in range(3))
    mask = tt.from_numpy(np.array([[True, True], [False, False]]))

    output = tt.scaled_dot_product_attention(query.trace(), key, value, mask=mask)

    assert output.detach().numpy()[1].tolist() == [0.0, 0.0, 0.0]
    gradient = output.sum().backward()[query].numpy()
    assert gradient[1].tolist() == [0.0, 0.0, 0.0]
    assert gradient[0].any()
