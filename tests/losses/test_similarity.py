"""The loss of pairs of vectors: its value, both gradients, and what it refuses."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tapetensor as tt
from tapetensor.losses import cosine_embedding
from tapetensor.testing import check_grad

Array = np.ndarray[Any, np.dtype[np.float64]]


def by_definition(x: Array, y: Array, signs: Any, margin: float) -> Array:
    lengths = [np.sqrt(np.linalg.norm(one, axis=-1) ** 2 + 1e-12) for one in (x, y)]
    cosines = (x * y).sum(axis=-1) / (lengths[0] * lengths[1])
    errors: Array = np.where(signs == 1, 1 - cosines, np.maximum(0, cosines - margin))
    return errors


@pytest.mark.parametrize("margin", [0.0, -0.4, 0.3])
@pytest.mark.parametrize("shape", [(1, 1), (6, 3), (2, 3, 4), (5,)])
def test_value_and_gradients_are_those_of_the_formula(
    shape: tuple[int, ...], margin: float, rng: np.random.Generator
) -> None:
    pair: list[Any] = [tt.normal(shape, np.float64, rng=rng) for _ in range(2)]
    x, y = pair
    signs = tt.from_numpy(np.asarray(rng.choice([-1, 1], shape[:-1])))

    errors = by_definition(x.numpy(), y.numpy(), signs.numpy(), margin)
    by_name: dict[str, Any] = {"mean": errors.mean(), "sum": errors.sum(), "none": errors}
    for reduction, wanted in by_name.items():
        how: Any = {"margin": margin, "reduction": reduction}
        found = cosine_embedding(x, y, signs, **how).numpy()
        assert found.shape == np.shape(wanted)
        np.testing.assert_allclose(found, wanted, rtol=1e-11, atol=1e-14)
        check_grad(
            lambda x, y, h=how: cosine_embedding(x, y, signs, **h).square().sum(), x, y, rng=rng
        )


def test_what_does_not_fit_is_refused(rng: np.random.Generator) -> None:
    x: Any = tt.ones((2, 3))
    signs: Any = tt.ones((2,), np.int64)
    floats: Any = tt.ones((2,))
    cases: list[tuple[Any, Any, Any]] = [
        (x, tt.ones((2, 4)), signs),
        (x, x, tt.ones((3,), np.int64)),
        (x, x, tt.ones((2, 1), np.int64)),
        (tt.ones((0, 3)), tt.ones((0, 3)), tt.ones((0,), np.int64)),
        (tt.ones(()), tt.ones(()), tt.ones((), np.int64)),
    ]

    for lhs, rhs, wrong in cases:
        with pytest.raises(tt.ShapeError, match=r"lhs of shape .* do not fit|leaves nothing"):
            cosine_embedding(lhs, rhs, wrong)
    with pytest.raises(tt.DTypeError, match=r"signs must be signed integers, got float32"):
        cosine_embedding(x, x, floats)
    with pytest.raises(tt.DTypeError, match=r"float32 and float64"):
        cosine_embedding(x, tt.ones((2, 3), np.float64), signs)
    with pytest.raises(tt.DTypeError, match=r"not defined for dtype int64"):
        cosine_embedding(signs, signs, signs)
    with pytest.raises(tt.ArgumentValueError, match=r"a sign must be 1 or -1, found are 0"):
        cosine_embedding(x, x, tt.zeros((2,), np.int64))
    with pytest.raises(tt.UntracedTensorError, match=r"signs must be a plain value"):
        cosine_embedding(x, x, floats.trace())
    with pytest.raises(tt.ArgumentValueError, match=r"cosine_embedding: reduction must be"):
        cosine_embedding(x, x, signs, reduction="batchmean")  # type: ignore[call-overload]  # bad


@pytest.mark.parametrize("margin", [1.1, -1.1, float("nan"), "0", None, True])
def test_a_margin_that_is_no_cosine_is_refused(margin: Any) -> None:
    x, signs = tt.ones((2, 3)), tt.ones((2,), np.int64)
    traced = x.trace()

    with pytest.raises(tt.TapeTensorError, match=r"^cosine_embedding: margin must be"):
        cosine_embedding(traced, x, signs, margin)
    assert traced.owns_tape
