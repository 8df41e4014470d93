"""Norms and clipping, of a store and of sums by name."""

from __future__ import annotations

import math
from collections.abc import Callable
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


def accumulated(**gradients: Any) -> tt.GradientAccumulator:
    sums = tt.GradientAccumulator()
    for name, gradient in gradients.items():
        sums.accumulate(name, np.asarray(gradient))
    return sums


def listed(sums: tt.GradientAccumulator, name: str) -> Any:
    array = sums.get(name)
    assert array is not None
    return array.tolist()


def test_gradients_of_one_name_add_up() -> None:
    sums = accumulated(w=[1.0, 2.0], b=[5.0])
    sums.accumulate("w", np.array([10.0, 20.0]))

    assert listed(sums, "w") == [11.0, 22.0]
    assert listed(sums, "b") == [5.0]
    assert sums.names == ("w", "b")
    assert sums.get("other") is None
    assert repr(sums) == "GradientAccumulator(w: 2, b: 1)"


def test_normalizing_takes_the_mean_of_what_each_name_has_got() -> None:
    sums = accumulated(w=[1.0, 2.0], b=[5.0])
    for _ in range(3):
        sums.accumulate("w", np.array([1.0, 4.0]))
    sums.normalize()
    sums.normalize()

    assert listed(sums, "w") == [1.0, 3.5]
    assert listed(sums, "b") == [5.0]


def test_the_mean_over_micro_batches_is_the_gradient_of_the_whole_batch() -> None:
    rng = np.random.default_rng(0)
    x, w = rng.standard_normal((8, 3)), tt.from_numpy(rng.standard_normal((3, 1)))

    def gradient(rows: Any) -> Any:
        loss = (tt.from_numpy(rows).trace() @ w).square().mean()
        return loss.backward(wrt=w)[w]

    sums = tt.GradientAccumulator()
    for rows in np.split(x, 4):
        sums.accumulate("w", gradient(rows))
    sums.normalize()

    np.testing.assert_allclose(listed(sums, "w"), gradient(x).numpy(), rtol=1e-12)


def test_zero_grad_keeps_the_names_and_starts_the_mean_again() -> None:
    sums = accumulated(w=np.ones(2, np.float32))
    sums.zero_grad()
    assert listed(sums, "w") == [0.0, 0.0]
    sums.normalize()
    sums.accumulate("w", np.full(2, 3.0, np.float32))
    sums.normalize()

    assert listed(sums, "w") == [3.0, 3.0]
    with pytest.raises(tt.ShapeError):
        sums.accumulate("w", np.ones(3, np.float32))


def test_clipping_scales_all_by_one_factor_and_returns_the_norm_before() -> None:
    sums = accumulated(w=np.array([3.0, 0.0], np.float32), b=np.array([[4.0]]))

    assert sums.apply_clip(10.0) == 5.0
    assert sums.apply_clip(0.5) == 5.0
    assert sums.apply_clip(math.inf) == pytest.approx(0.5)
    assert listed(sums, "w") == pytest.approx([0.3, 0.0])
    assert [sums.get(name).dtype for name in sums.names] == [np.float32, np.float64]  # type: ignore[union-attr]  # both are there
    assert tt.GradientAccumulator().apply_clip(1.0) == 0.0


def test_no_array_is_shared_with_the_caller() -> None:
    gradient = np.ones(2)
    sums = accumulated()
    sums.accumulate("w", gradient)
    sums.accumulate("v", gradient)
    gradient[:] = 7.0
    taken: Any = sums.get("w")
    taken[:] = 9.0
    sums.accumulate("w", np.ones(2))

    assert listed(sums, "w") == [2.0, 2.0]
    assert listed(sums, "v") == [1.0, 1.0]


@pytest.mark.parametrize(
    ("mistake", "error", "message"),
    [
        (lambda s: s.accumulate("w", np.ones(3)), tt.ShapeError, r"of 'w' has shape \(2,\), the"),
        (lambda s: s.accumulate("w", np.ones((2, 1))), tt.ShapeError, "must be equal"),
        (lambda s: s.accumulate("w", np.ones(2, np.float32)), tt.DTypeError, "dtype float64, the"),
        (lambda s: s.accumulate("v", np.ones(2, np.int64)), tt.DTypeError, "dtype int64 is no"),
        (
            lambda s: s.accumulate("w", np.array([1.0, np.nan])),
            tt.NumericalInstabilityError,
            "with this gradient 'w' is not finite: 1 of 2 elements",
        ),
        (
            lambda s: s.accumulate("v", np.array([np.inf])),
            tt.NumericalInstabilityError,
            "'v' is not finite",
        ),
        (
            lambda s: s.accumulate("w", np.array([1.5e308, 0.0])),
            tt.NumericalInstabilityError,
            "'w' is not finite: 1 of 2",
        ),
        (lambda s: s.accumulate(3, np.ones(2)), tt.ArgumentTypeError, "name must be a string"),
        (lambda s: s.accumulate("w", [1.0, 2.0]), tt.ArgumentTypeError, "a tensor or a numpy arr"),
        (
            lambda s: s.accumulate("w", tt.ones((2,), np.float64).trace()),
            tt.UntracedTensorError,
            "owns a tape",
        ),
        (lambda s: s.apply_clip(0.0), tt.ArgumentValueError, "apply_clip: max_norm must be > 0"),
        (lambda s: s.apply_clip("1"), tt.ArgumentTypeError, "apply_clip: max_norm must be a num"),
    ],
)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_what_does_not_fit_is_refused_and_changes_nothing(
    mistake: Callable[[Any], object], error: type[Exception], message: str
) -> None:
    sums = accumulated(w=[1.5e308, 1.0])

    with pytest.raises(error, match=message):
        mistake(sums)
    assert listed(sums, "w") == [1.5e308, 1.0]
    assert sums.names == ("w",)
