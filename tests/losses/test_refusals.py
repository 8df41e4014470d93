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
def test_operands_that_do_not_fit_each_other_are_refused(loss: Any) -> None:
    x, whole = tt.zeros((2, 3)), tt.zeros((2, 3), np.int64)
    traced, none = x.trace(), tt.zeros((0, 3))
    refused: list[tuple[Any, Any, type[Exception], str]] = [
        (traced, tt.zeros((2, 1)), tt.ShapeError, r".*\(2, 3\).*\(2, 1\)"),
        (none, none, tt.ShapeError, r"shape \(0, 3\) leaves nothing"),
        (x, tt.zeros((2, 3), np.float64), tt.DTypeError, ".*float32 and float64"),
        (x, whole, tt.DTypeError, ".*float32 and int64"),
        (whole, whole, tt.DTypeError, ".*int64"),
    ]
    for prediction, target, error, said in refused:
        with pytest.raises(error, match=rf"^{loss.__name__}: {said}"):
            loss(prediction, target)
    assert traced.owns_tape


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


def test_what_does_not_fit_is_refused_and_changes_nothing() -> None:
    untyped: Any = losses
    x: Any = tt.ones((2, 3)).trace()
    signs: Any = tt.ones((2, 3), np.int64)
    one: Any = tt.ones((2, 3))
    refused: list[tuple[Any, type[Exception], str]] = [
        (lambda: untyped.soft_margin(x, signs[0]), tt.ShapeError, "signs of shape .* differ"),
        (lambda: untyped.soft_margin(x, signs * 2), tt.ArgumentValueError, "must be 1 or -1"),
        (lambda: untyped.soft_margin(x, one), tt.DTypeError, "signed integers"),
        (lambda: untyped.soft_margin(x, [1]), tt.ArgumentTypeError, "signs"),
        (lambda: untyped.hinge_embedding(x, signs, "1"), tt.ArgumentTypeError, "margin"),
        (lambda: untyped.margin_ranking(x, one[0], signs), tt.ShapeError, "lhs .* and rhs"),
        (lambda: untyped.triplet_margin(x, one, one[0]), tt.ShapeError, "anchor .* and negative"),
        (lambda: untyped.triplet_margin(x, one, one.astype(np.float64)), tt.DTypeError, "float64"),
        (lambda: untyped.triplet_margin(x, one, "a"), tt.ArgumentTypeError, "negative"),
        (
            lambda: untyped.gaussian_nll(x, one, -one),
            tt.ArgumentValueError,
            "variance must be >= 0",
        ),
        (lambda: untyped.gaussian_nll(x, one, one, full=1), tt.ArgumentTypeError, "full"),
        (lambda: untyped.gaussian_nll(x, one, one, eps=0), tt.ArgumentValueError, "eps"),
        (lambda: untyped.poisson_nll(x, signs), tt.DTypeError, "int64"),
        (lambda: untyped.multi_margin(x, signs[0]), tt.ShapeError, "need labels"),
        (
            lambda: untyped.multi_margin(x, signs[:, 0], power=3),
            tt.ArgumentValueError,
            "power must be 1 or 2",
        ),
        (lambda: untyped.poisson_nll(x, one, reduction="max"), tt.ArgumentValueError, "reduction"),
        (lambda: untyped.poisson_nll(x, one, log_input=0), tt.ArgumentTypeError, "log_input"),
        (lambda: untyped.poisson_nll(-one, one, log_input=False), tt.ArgumentValueError, ">= 0"),
        (lambda: untyped.soft_margin(x, signs.trace()), tt.UntracedTensorError, "detach"),
    ]
    for call, error, message in refused:
        with pytest.raises(error, match=message):
            call()
    assert x.sum().item() == 6.0


def test_labels_that_fit_no_axis_say_where_classes_may_be() -> None:
    images, labels = tt.ones((2, 5, 3)).trace(), tt.zeros((2, 3), np.int64)

    with pytest.raises(tt.ShapeError, match=r"for classes on axis 1, as of images, write axis=1"):
        losses.cross_entropy(images, labels)
    with pytest.raises(tt.ArgumentValueError, match="axis must be -1 or 1"):
        losses.cross_entropy(images, labels, axis=0)  # type: ignore[call-overload]  # on purpose
    assert images.owns_tape


def test_vectors_and_signs_that_do_not_fit_are_refused() -> None:
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
            losses.cosine_embedding(lhs, rhs, wrong)
    with pytest.raises(tt.DTypeError, match=r"signs must be signed integers, got float32"):
        losses.cosine_embedding(x, x, floats)
    with pytest.raises(tt.DTypeError, match=r"float32 and float64"):
        losses.cosine_embedding(x, tt.ones((2, 3), np.float64), signs)
    with pytest.raises(tt.DTypeError, match=r"not defined for dtype int64"):
        losses.cosine_embedding(signs, signs, signs)
    with pytest.raises(tt.ArgumentValueError, match=r"a sign must be 1 or -1, found are 0"):
        losses.cosine_embedding(x, x, tt.zeros((2,), np.int64))
    with pytest.raises(tt.UntracedTensorError, match=r"signs must be a plain value"):
        losses.cosine_embedding(x, x, floats.trace())
    with pytest.raises(tt.ArgumentValueError, match=r"cosine_embedding: reduction must be"):
        losses.cosine_embedding(x, x, signs, reduction="batchmean")  # type: ignore[call-overload]  # bad


@pytest.mark.parametrize("margin", [1.1, -1.1, float("nan"), "0", None, True])
def test_a_margin_that_is_no_cosine_is_refused(margin: Any) -> None:
    x, signs = tt.ones((2, 3)), tt.ones((2,), np.int64)
    traced = x.trace()

    with pytest.raises(tt.TapeTensorError, match=r"^cosine_embedding: margin must be"):
        losses.cosine_embedding(traced, x, signs, margin)
    assert traced.owns_tape
