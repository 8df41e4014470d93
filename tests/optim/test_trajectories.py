"""Fifty steps of every optimizer against a second, slow implementation."""

from __future__ import annotations

import numpy as np
import pytest

import tapetensor as tt
from tapetensor.kernels.numerics import optimizers as kernels
from tapetensor.optim import Adam
from tests.optim.models import Array, Model, assert_close, drawn, gradients_of, small_model
from tests.optim.optimizers import BY_TEXTBOOK, Textbook


@pytest.mark.parametrize("mode", BY_TEXTBOOK)
def test_fifty_steps_follow_the_textbook(mode: str, rng: np.random.Generator) -> None:
    make, make_textbook = BY_TEXTBOOK[mode]
    model = small_model(rng)
    optimizer, textbook = make(model), Textbook(model.arrays(), make_textbook)

    for _ in range(50):
        arrays = drawn(model, rng)
        optimizer.step(gradients_of(model, **arrays))
        textbook.step(arrays)
        assert_close(model.arrays(), textbook.arrays, 1e-11)


@pytest.mark.parametrize("mode", BY_TEXTBOOK)
def test_large_parameters_go_block_by_block_to_the_same_values(
    mode: str, rng: np.random.Generator
) -> None:
    make, _ = BY_TEXTBOOK[mode]
    whole: Array = rng.standard_normal((2, 45_000))
    large = Model(p=tt.from_numpy(whole))
    # The same numbers, nine models that each fit into one block.
    small = [Model(p=tt.from_numpy(part)) for part in np.split(whole.reshape(-1), 9)]
    optimizer, others = make(large), [make(model) for model in small]

    for _ in range(3):
        gradient: Array = rng.standard_normal((2, 45_000))
        optimizer.step(gradients_of(large, p=gradient))
        for model, other, part in zip(
            small, others, np.split(gradient.reshape(-1), 9), strict=True
        ):
            other.step(gradients_of(model, p=part))

    together = np.concatenate([model["p"].numpy() for model in small])
    np.testing.assert_array_equal(large["p"].numpy().reshape(-1), together)


def test_a_centered_variance_that_rounding_makes_negative_counts_as_zero() -> None:
    mean = np.array([0.1], np.float32)
    for gradient in (mean, -mean):
        squares = np.square(mean) - np.float32(1e-9)
        out, *scratch = np.empty((3, 1), np.float32)
        options = (0.1, 1 - 1e-7, 1e-3, 0.0, True, False, 0.0, 1.0)
        kernels.rmsprop(out, mean, gradient, squares, mean.copy(), mean.copy(), scratch, *options)
        assert np.isfinite(out).all()


def test_the_repr_says_how_much_is_optimized() -> None:
    assert repr(Adam(Model(a=tt.zeros((2, 3)), b=tt.zeros((4,))))) == (
        "Adam(10 parameters, lr=0.001)"
    )
