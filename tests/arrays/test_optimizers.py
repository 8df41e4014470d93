"""Optimizers, averages and stores of gradients over arrays that are not numpy's."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest

import tapetensor as tt
from tests.arrays import foreign
from tests.arrays.foreign import ForeignArray
from tests.arrays.placing import Array, abroad, home
from tests.optim.models import SHAPES, Model, drawn, gradients_of, small_model
from tests.optim.optimizers import BY_TEXTBOOK


def _twin(model: Model) -> Model:
    return Model(**{name: tt.from_numpy(array) for name, array in model.arrays().items()})


def _move(model: Model, library: Any) -> None:
    for tensor in model.parameters().values():
        tensor.array = tensor.to(library).array


def _gradients(model: Model, arrays: dict[str, Array]) -> tt.Gradients:
    """Return gradients that lie where the parameters do."""
    grads = tt.Gradients()
    for name, array in arrays.items():
        there = isinstance(model[name].array, ForeignArray)
        grads.insert(model[name], abroad(array) if there else tt.from_numpy(array))
    return grads


@pytest.mark.parametrize("mode", BY_TEXTBOOK)
def test_the_state_follows_a_model_there_and_back(mode: str, rng: np.random.Generator) -> None:
    make, _ = BY_TEXTBOOK[mode]
    model = small_model(rng)
    twin = _twin(model)
    optimizer, twin_optimizer = make(model), make(twin)
    for step in range(9):
        if step in (3, 6):
            _move(model, foreign if step == 3 else np)
        arrays = drawn(twin, rng)
        if step in (4, 7):
            del arrays["scale"]
        twin_optimizer.step(gradients_of(twin, **arrays), unused="skip")
        optimizer.step(_gradients(model, arrays), unused="skip")

    for name, array in twin.arrays().items():
        np.testing.assert_allclose(model[name].numpy(), array, rtol=1e-12, atol=1e-14)


def _store() -> tuple[tt.Gradients, list[Any], list[Array]]:
    arrays = [np.full(shape, 3.0 + at) for at, shape in enumerate(SHAPES.values())]
    tensors = [abroad(array) for array in arrays]
    grads = tt.Gradients()
    for tensor, array in zip(tensors, arrays, strict=True):
        grads.insert(tensor, foreign.asarray(array))
    return grads, tensors, arrays


def test_a_store_of_gradients_sums_clips_and_zeroes_there() -> None:
    grads, tensors, arrays = _store()
    norm = float(np.sqrt(sum(np.sum(array**2) for array in arrays)))

    grads.merge(copy.copy(grads))
    grads.insert(tensors[0], tensors[0])
    assert grads.global_norm() > 2 * norm
    np.testing.assert_array_equal(home(grads[tensors[0]]), 3 * arrays[0])

    grads.clip_by_value(5.0)
    np.testing.assert_array_equal(home(grads[tensors[0]]), np.full(arrays[0].shape, 5.0))
    before = grads.clip_by_global_norm(1.0)
    np.testing.assert_allclose(grads.global_norm(), 1.0, rtol=1e-12)
    assert before > 1.0

    grads.zero()
    assert grads.global_norm() == 0.0
    home(grads[tensors[1]])


def test_a_store_refuses_a_sum_over_two_libraries() -> None:
    grads, tensors, arrays = _store()
    others = tt.Gradients()
    others.insert(tensors[0], arrays[0])

    with pytest.raises(tt.ArgumentTypeError, match="foreign and numpy do not mix"):
        grads.insert(tensors[0], arrays[0])
    with pytest.raises(tt.ArgumentTypeError, match="foreign and numpy do not mix"):
        grads.merge(others)
    np.testing.assert_array_equal(home(grads[tensors[0]]), arrays[0])


def test_an_accumulator_sums_means_and_clips_there() -> None:
    sums = tt.GradientAccumulator()
    sums.accumulate("weight", abroad(np.array([3.0, 0.0])))
    array: Any = foreign.asarray(np.array([3.0, 8.0]))
    sums.accumulate("weight", array)
    sums.normalize()

    assert sums.apply_clip(1.0) == 5.0
    np.testing.assert_allclose(home(sums.get("weight")), [0.6, 0.8])
    with pytest.raises(tt.NumericalInstabilityError, match="1 of 2 elements"):
        sums.accumulate("weight", abroad(np.array([np.nan, 0.0])))
    with pytest.raises(tt.ArgumentTypeError, match="foreign and numpy do not mix"):
        sums.accumulate("weight", np.zeros(2))
    sums.zero_grad()
    np.testing.assert_array_equal(home(sums.get("weight")), [0.0, 0.0])


def test_a_gradient_tape_that_is_driven_by_hand_works_there() -> None:
    tape = tt.GradientTape()
    values: list[Any] = [foreign.asarray(np.array(one)) for one in ([1.0, 2.0], [3.0, -1.0])]
    x, w = [tape.alloc(value) for value in values]
    tape.record_mul(x, w)

    gradients = tape.backward(values[0])

    np.testing.assert_array_equal(home(gradients[x]), [3.0, -2.0])
    with pytest.raises(tt.ArgumentTypeError, match=r"backward: .*foreign and numpy do not mix"):
        tape.backward(np.ones(2))
    tape.alloc(np.ones(2))
    with pytest.raises(tt.ArgumentTypeError, match=r"'multiply': .*foreign and numpy do not mix"):
        tape.record_mul(x, 3)
