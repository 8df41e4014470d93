"""`Dropout`."""

from __future__ import annotations

from typing import Any
from typing import Literal as L

import numpy as np
import pytest

import tapetensor as tt
from tapetensor import Tensor1D, Tensor2D, nn
from tapetensor.errors import DTypeError


def test_without_a_tape_it_is_the_identity(rng: np.random.Generator) -> None:
    drop = nn.Dropout(0.5, rng=rng)
    state = rng.bit_generator.state
    x = tt.ones((100,))

    assert drop.forward(x) is x
    assert drop.rng.bit_generator.state == state


@pytest.mark.parametrize("p", [0.1, 0.5, 0.9])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_what_is_kept_is_scaled_and_the_rest_zero(
    p: float, dtype: Any, rng: np.random.Generator
) -> None:
    drop = nn.Dropout(p, rng=rng)

    y = drop.forward(tt.full((100, 100), 3.0, dtype).trace()).detach().numpy()

    assert y.dtype == dtype
    assert set(y.ravel().tolist()) == {0.0, dtype(3.0) * dtype(1.0 / (1.0 - p))}
    np.testing.assert_allclose((y == 0.0).mean(), p, atol=0.02)
    np.testing.assert_allclose(y.mean(), 3.0, rtol=0.1)


def test_the_gradient_uses_the_mask_of_the_forward_pass(rng: np.random.Generator) -> None:
    drop = nn.Dropout(0.4, rng=rng)
    x: Tensor1D[Any] = tt.ones((200,))

    y = drop.forward(x.trace())
    # Another mask is drawn before the first is used backwards.
    drop.forward(x.trace())
    values = y.detach().numpy().copy()

    assert np.array_equal(y.sum().backward()[x].detach().numpy(), values)


def test_nothing_is_dropped_at_0_and_everything_at_1(rng: np.random.Generator) -> None:
    x: Tensor2D[Any, Any] = tt.normal((4, 5), rng=rng)

    for p in (0.0, 0, 1.0, 1):
        y = nn.Dropout(p, rng=rng).forward(x.trace())
        assert np.array_equal(y.detach().numpy(), x.detach().numpy() * (1.0 - p))
        grads = y.sum().backward()
        assert np.array_equal(grads[x].numpy(), np.full((4, 5), 1.0 - p))


def test_integers_cannot_be_scaled(rng: np.random.Generator) -> None:
    drop: Any = nn.Dropout(0.5, rng=rng)
    x = tt.ones((3,), np.int64).trace()
    state = rng.bit_generator.state

    with pytest.raises(DTypeError, match="Dropout: not defined for dtype int64"):
        drop.forward(x)
    assert x.owns_tape
    assert rng.bit_generator.state == state


def test_one_in_n_is_dropped_and_the_type_says_it() -> None:
    drop = tt.build(nn.DropoutOneIn[L[4]], rng=np.random.default_rng(0))
    x = tt.ones((10_000,))

    y = drop.forward(x.trace())

    assert drop.forward(x) is x
    np.testing.assert_allclose((y.detach().numpy() == 0.0).mean(), 0.25, atol=0.02)
    assert set(y.detach().numpy().ravel().tolist()) == {0.0, float(np.float32(4.0 / 3.0))}
    assert np.array_equal(y.backward(x)[x].numpy(), y.detach().numpy())
