"""What the losses refuse, in which words, and that nothing has changed then."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tapetensor as tt
from tapetensor import losses
from tapetensor.tensor.operands import check_labels

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


@pytest.mark.parametrize("wrong", [[3, 1], [-1, 1], [0, 2**40]])
def test_a_label_that_is_no_class_is_refused_by_its_value(wrong: list[int]) -> None:
    logits = tt.zeros((2, 3)).trace()
    labels = tt.from_numpy(np.array(wrong))
    named = next(label for label in wrong if label not in range(3))

    with pytest.raises(
        tt.AxisError, match=rf"^cross_entropy: labels of 3 classes .* 0 to 2, found {named}\n"
    ):
        losses.cross_entropy(logits, labels)
    assert logits.owns_tape


@pytest.mark.parametrize("dtype", ["i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", ">i4"])
@pytest.mark.parametrize("classes", [3, 127, 128, 255, 256, 300])
def test_labels_of_every_dtype_are_checked_at_both_ends(dtype: str, classes: int) -> None:
    numbers = np.iinfo(dtype)
    for label in (-1, 0, classes - 1, classes, numbers.min, numbers.max):
        if not numbers.min <= label <= numbers.max:
            continue
        labels: Any = tt.zeros((2,), np.int64)
        # Such as ops may leave it, whatever dtypes from_numpy takes.
        labels.array = np.array([0, label], dtype)
        if 0 <= label < classes:
            check_labels("nll", labels, classes)
        else:
            with pytest.raises(tt.AxisError, match=rf"found {label}\n"):
                check_labels("nll", labels, classes)


def test_of_many_wrong_labels_the_first_few_are_named() -> None:
    labels = tt.from_numpy(np.arange(100))

    with pytest.raises(tt.AxisError, match=r"found 10, 11, 12, 13, 14, \.\.\.\n"):
        losses.cross_entropy(tt.zeros((100, 10)), labels)


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


def test_nll_refuses_what_cross_entropy_does() -> None:
    scores = tt.zeros((2, 3))
    floats: Any = tt.zeros((2,))

    with pytest.raises(tt.AxisError, match=r"^nll: labels of 3 classes .* 0 to 2, found 3\n"):
        losses.nll(scores, tt.from_numpy([0, 3], shape=(2,), dtype=np.int64))
    with pytest.raises(tt.DTypeError, match=r"^nll: labels must be integers, .*kl_div"):
        losses.nll(scores, floats)
    with pytest.raises(tt.ShapeError, match=r"^nll: log_probabilities of shape \(2, 3\) "):
        losses.nll(scores, tt.zeros((3,), np.int64))


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


# Of which type checkers know no shape.
_THREE: Any = tt.zeros((3,))


def test_a_share_that_is_none_is_refused() -> None:
    for share in (-0.1, 1.5, float("nan")):
        with pytest.raises(tt.ArgumentValueError, match=r"^quantile: q must be in \[0, 1\], got"):
            losses.quantile(tt.zeros((2,)), tt.zeros((2,)), share)
    with pytest.raises(tt.ShapeError, match=r"^quantile: prediction of shape \(2,\)"):
        losses.quantile(tt.zeros((2,)), _THREE, 0.5)


@pytest.mark.parametrize(("loss", "name"), KINKED)
@pytest.mark.parametrize("value", ["1", True, None])
def test_a_threshold_that_is_not_a_number_is_refused(loss: Any, name: str, value: Any) -> None:
    with pytest.raises(
        tt.ArgumentTypeError, match=rf"^{loss.__name__}: {name} must be a number, got"
    ):
        loss(tt.zeros((2,)), tt.zeros((2,)), value)


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


@pytest.mark.parametrize("loss", BY_LABELS)
def test_only_the_label_that_is_ignored_need_be_no_class(loss: Any) -> None:
    labels = tt.from_numpy(np.array([-100, 5]))

    with pytest.raises(tt.AxisError, match="found 5"):
        loss(tt.zeros((2, 3)), labels, ignore_index=-100)


def test_the_weight_of_a_yes_goes_along_the_last_axis() -> None:
    with pytest.raises(tt.ShapeError, match=r"must have shape \(3,\) or \(\), got \(2,\)"):
        losses.binary_cross_entropy_with_logits(
            tt.zeros((2, 3)), tt.zeros((2, 3)), pos_weight=tt.ones((2,))
        )
