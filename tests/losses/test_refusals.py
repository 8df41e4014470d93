"""What the losses refuse, in which words, and that nothing has changed then."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tapetensor as tt
from tapetensor import losses

PAIRED: list[Any] = [
    losses.mse,
    losses.mae,
    losses.rmse,
    losses.huber,
    losses.smooth_l1,
    losses.binary_cross_entropy,
    losses.binary_cross_entropy_with_logits,
    losses.cross_entropy_with_probabilities,
    losses.kl_div,
]
BY_LABELS: list[Any] = [losses.cross_entropy, losses.nll]


@pytest.mark.parametrize("loss", PAIRED)
def test_shapes_that_differ_are_refused(loss: Any) -> None:
    x = tt.zeros((2, 3)).trace()

    with pytest.raises(tt.ShapeError, match=rf"^{loss.__name__}: .*\(2, 3\).*\(2, 1\)"):
        loss(x, tt.zeros((2, 1)))
    assert x.owns_tape


@pytest.mark.parametrize("loss", PAIRED)
def test_a_loss_of_nothing_is_refused(loss: Any) -> None:
    with pytest.raises(tt.ShapeError, match=rf"^{loss.__name__}: shape \(0, 3\) leaves nothing"):
        loss(tt.zeros((0, 3)), tt.zeros((0, 3)))


@pytest.mark.parametrize("loss", PAIRED)
def test_dtypes_that_differ_or_are_not_floating_are_refused(loss: Any) -> None:
    x, whole = tt.zeros((2, 3)), tt.zeros((2, 3), np.int64)

    with pytest.raises(tt.DTypeError, match=rf"^{loss.__name__}: .*float32 and float64"):
        loss(x, tt.zeros((2, 3), np.float64))
    with pytest.raises(tt.DTypeError, match=rf"^{loss.__name__}: .*float32 and int64"):
        loss(x, whole)
    with pytest.raises(tt.DTypeError, match=rf"^{loss.__name__}: .*int64"):
        loss(whole, whole)


@pytest.mark.parametrize("loss", BY_LABELS)
def test_labels_with_a_tape_are_refused(loss: Any) -> None:
    x, target = tt.zeros((2, 3)).trace(), tt.zeros((2, 3)).trace()

    with pytest.raises(tt.UntracedTensorError, match=rf"^{loss.__name__}: .*detach\(\)"):
        loss(x, target)
    assert x.owns_tape
    assert target.owns_tape


@pytest.mark.parametrize("loss", [*PAIRED, *BY_LABELS])
def test_what_is_not_a_tensor_is_refused(loss: Any) -> None:
    x = tt.zeros((2, 3))

    with pytest.raises(tt.ArgumentTypeError, match=rf"^{loss.__name__}: .*ndarray.*from_numpy"):
        loss(x, x.numpy())
    with pytest.raises(tt.ArgumentTypeError, match=rf"^{loss.__name__}: .*list"):
        loss([1.0], x)


@pytest.mark.parametrize("loss", [losses.cross_entropy_with_probabilities, losses.kl_div])
def test_a_distribution_needs_an_axis(loss: Any) -> None:
    with pytest.raises(tt.ShapeError, match=rf"^{loss.__name__}: shape \(\)"):
        loss(tt.zeros(()), tt.zeros(()))


def test_labels_that_are_not_integers_are_refused() -> None:
    logits = tt.zeros((2, 2))
    probabilities: Any = tt.zeros((2,))
    mask: Any = tt.zeros((2,), np.bool_)

    with pytest.raises(tt.DTypeError, match=r"float32; .*cross_entropy_with_probabilities"):
        losses.cross_entropy(logits, probabilities)
    with pytest.raises(tt.DTypeError, match="labels must be integers, got bool"):
        losses.cross_entropy(logits, mask)


@pytest.mark.parametrize(
    ("logits", "labels"),
    [((2, 3), (3,)), ((2, 3), (2, 1)), ((2, 3), ()), ((), ()), ((0, 3), (0,)), ((2, 0), (2,))],
)
def test_logits_and_labels_that_do_not_fit_are_refused(
    logits: Any, labels: tuple[int, ...]
) -> None:
    with pytest.raises(
        tt.ShapeError, match=r"^cross_entropy: logits of shape .* (need|have no|leave no)"
    ):
        losses.cross_entropy(tt.zeros(logits), tt.zeros(labels, np.int64))


@pytest.mark.parametrize("wrong", [[-0.1, 0.5], [0.5, 1.1], [0.5, float("nan")]])
def test_a_prediction_that_is_no_probability_is_refused(wrong: list[float]) -> None:
    q = tt.from_numpy(wrong, shape=(2,)).trace()

    with pytest.raises(tt.ArgumentValueError, match=r"must be in \[0, 1\], found .*_with_logits"):
        losses.binary_cross_entropy(q, tt.zeros((2,)))
    assert q.owns_tape


KINKED: list[tuple[Any, str]] = [(losses.huber, "delta"), (losses.smooth_l1, "beta")]


@pytest.mark.parametrize(("loss", "name"), KINKED)
@pytest.mark.parametrize("value", [0.0, -1.0, float("nan"), float("inf"), np.float32(-2.0)])
def test_a_threshold_that_is_not_positive_and_finite_is_refused(
    loss: Any, name: str, value: float
) -> None:
    x = tt.zeros((2,)).trace()

    with pytest.raises(
        tt.ArgumentValueError, match=rf"^{loss.__name__}: {name} must be > 0 and finite, got"
    ):
        loss(x, tt.zeros((2,)), value)
    assert x.owns_tape


@pytest.mark.parametrize("loss", [one for one in [*PAIRED, *BY_LABELS] if one is not losses.rmse])
def test_a_reduction_is_one_of_three(loss: Any) -> None:
    x = tt.full((2, 3), 0.5).trace()
    target = tt.zeros((2,), np.int64) if loss in BY_LABELS else tt.zeros((2, 3))

    with pytest.raises(tt.ArgumentValueError, match=rf'^{loss.__name__}: .*"sum" or "none"'):
        loss(x, target, reduction="batchmean")
    assert x.owns_tape


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"label_smoothing": 1.5}, tt.ArgumentValueError, "label_smoothing must be"),
        ({"label_smoothing": "a"}, tt.ArgumentTypeError, "label_smoothing must be a number"),
        ({"ignore_index": 1.0}, tt.ArgumentTypeError, "ignore_index must be an int"),
        ({"class_weights": tt.ones((2,))}, tt.ShapeError, r"class_weights must have shape \(3,\)"),
        ({"class_weights": tt.ones((3,), np.float64)}, tt.DTypeError, "dtypes differ"),
        ({"class_weights": tt.ones((3,)).trace()}, tt.UntracedTensorError, "class_weights.detach"),
        (
            {"class_weights": [1.0, 1.0, 1.0]},
            tt.ArgumentTypeError,
            "must be a tensor",
        ),
    ],
)
def test_an_option_of_a_loss_of_labels_that_does_not_fit_is_refused(
    options: dict[str, Any], error: type[Exception], message: str
) -> None:
    x = tt.zeros((2, 3)).trace()

    for loss in BY_LABELS[:1] if "label_smoothing" in options else BY_LABELS:
        with pytest.raises(error, match=f"^{loss.__name__}: .*{message}"):
            loss(x, tt.zeros((2,), np.int64), **options)
        assert x.owns_tape


def test_the_weight_of_a_yes_goes_along_the_last_axis() -> None:
    with pytest.raises(tt.ShapeError, match=r"must have shape \(3,\) or \(\), got \(2,\)"):
        losses.binary_cross_entropy_with_logits(
            tt.zeros((2, 3)), tt.zeros((2, 3)), pos_weight=tt.ones((2,))
        )
