"""The norm of all gradients together, and clipping by it or number by number."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import tapetensor as tt


def filled(*arrays: Any) -> tuple[tt.Gradients, list[tt.Tensor[Any, tt.NoneTape, Any]]]:
    grads = tt.Gradients()
    tensors = [tt.from_numpy(np.asarray(array)) for array in arrays]
    for tensor in tensors:
        grads.insert(tensor, tensor)
    return grads, tensors


def test_the_norm_is_taken_over_all_elements_of_all_gradients() -> None:
    grads, _ = filled(
        np.array([[3.0, 0.0]], np.float32), np.array(4.0, np.float64), np.zeros((0, 2))
    )

    assert grads.global_norm() == 5.0


def test_the_norm_is_summed_in_float64() -> None:
    # In float32 these squares overflow.
    grads, _ = filled(np.full(4, 1e30, np.float32))

    assert grads.global_norm() == pytest.approx(2e30)


@pytest.mark.parametrize("number", [float("nan"), float("inf"), -float("inf")])
def test_the_norm_of_what_is_not_finite_is_not_finite(number: float) -> None:
    grads, _ = filled(np.array([1.0, number], np.float32), np.ones(2))

    assert not math.isfinite(grads.global_norm())


def test_clipping_scales_all_gradients_by_one_factor_and_returns_the_norm_before() -> None:
    grads, (x, y) = filled(np.array([3.0, 0.0], np.float32), np.array([[4.0]]))
    norm = grads.clip_by_global_norm(0.5)

    assert norm == 5.0
    assert grads.global_norm() == pytest.approx(0.5)
    assert grads[x].numpy() == pytest.approx([0.3, 0.0])
    assert grads[y].numpy() == pytest.approx(np.array([[0.4]]))
    assert [grads[t].dtype for t in (x, y)] == [np.float32, np.float64]


@pytest.mark.parametrize("max_norm", [5.0, 5, 6.0, math.inf, np.float32(5.5), np.int64(7)])
def test_a_norm_within_the_bound_changes_nothing(max_norm: Any) -> None:
    grads, (x,) = filled(np.array([3.0, 4.0], np.float32))

    assert grads.clip_by_global_norm(max_norm) == 5.0
    assert grads[x].numpy().tolist() == [3.0, 4.0]


def test_clipping_changes_no_array_that_can_still_be_seen() -> None:
    x = tt.from_numpy([3.0, 4.0], shape=(2,))
    cotangent = tt.from_numpy([30.0, 40.0], shape=(2,))
    grads = x.trace().backward(cotangent)
    read, array, other = grads[x], grads.array(x.id), tt.Gradients()
    other.merge(grads)
    grads.clip_by_global_norm(1.0)

    assert array is not None
    seen = [cotangent.numpy(), read.numpy(), array, other[x].numpy()]
    assert [one.tolist() for one in seen] == [[30.0, 40.0]] * 4


@pytest.mark.parametrize("max_norm", [0, 0.0, -1, -0.5, math.nan, -math.inf, np.float32("nan")])
def test_a_bound_that_is_not_positive_is_refused(max_norm: Any) -> None:
    grads, (x,) = filled(np.array([3.0, 4.0], np.float32))

    with pytest.raises(
        tt.ArgumentValueError, match=r"Gradients.clip_by_global_norm: max_norm must be > 0, got"
    ):
        grads.clip_by_global_norm(max_norm)
    assert grads[x].numpy().tolist() == [3.0, 4.0]


@pytest.mark.parametrize("max_norm", [True, False, "1", None, 1j, [1.0], tt.ones(())])
def test_a_bound_that_is_no_number_is_refused(max_norm: Any) -> None:
    grads, (x,) = filled(np.array([3.0, 4.0], np.float32))

    with pytest.raises(
        tt.ArgumentTypeError, match=r"Gradients.clip_by_global_norm: max_norm must be a number"
    ):
        grads.clip_by_global_norm(max_norm)
    assert grads[x].numpy().tolist() == [3.0, 4.0]


@pytest.mark.parametrize("number", [math.nan, math.inf])
def test_gradients_that_are_not_finite_are_not_clipped_but_reported(number: float) -> None:
    grads, (x, y) = filled(np.array([3.0], np.float32), np.array([number], np.float32))

    with pytest.raises(
        tt.NumericalInstabilityError, match=f"clip_by_global_norm: the norm .* is {number}"
    ):
        grads.clip_by_global_norm(math.inf)
    assert grads[x].numpy().tolist() == [3.0]
    assert str(grads[y].numpy()[0]) == str(number)


@pytest.mark.parametrize("limit", [1, 1.0, np.float32(1), np.float64(1), np.int32(1)])
def test_clipping_by_value_clips_every_number_and_keeps_the_dtypes(limit: Any) -> None:
    grads, (x, y) = filled(np.array([3.0, -0.5], np.float32), np.array([[-4.0, math.nan]]))
    array = grads.array(x.id)
    grads.clip_by_value(limit)

    assert grads[x].numpy().tolist() == [1.0, -0.5]
    np.testing.assert_array_equal(grads[y].numpy(), [[-1.0, math.nan]])
    assert [grads[t].dtype for t in (x, y)] == [np.float32, np.float64]
    assert array is not None
    assert array.tolist() == [3.0, -0.5]


@pytest.mark.parametrize("limit", [0, -1.0, math.nan, "1", None, True])
def test_a_limit_that_is_no_positive_number_is_refused(limit: Any) -> None:
    grads, (x,) = filled(np.array([3.0], np.float32))

    with pytest.raises(tt.TapeTensorError, match=r"^Gradients\.clip_by_value: limit must be"):
        grads.clip_by_value(limit)
    assert grads[x].item() == 3.0
