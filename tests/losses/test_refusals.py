"""What the losses refuse, in which words, and that nothing has changed then."""

from __future__ import annotations

from functools import partial
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


@pytest.mark.parametrize("loss", [one for one in [*PAIRED, *BY_LABELS] if one is not losses.rmse])
def test_a_reduction_is_one_of_three(loss: Any) -> None:
    x = tt.full((2, 3), 0.5)
    target = tt.zeros((2,), np.int64) if loss in BY_LABELS else tt.zeros((2, 3))

    with pytest.raises(tt.ArgumentValueError, match=rf'^{loss.__name__}: .*"sum" or "none"'):
        loss(x, target, reduction="batchmean")


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"label_smoothing": 1.5}, tt.ArgumentValueError, "label_smoothing must be"),
        ({"label_smoothing": "a"}, tt.ArgumentTypeError, "label_smoothing must be a number"),
        ({"ignore_index": 1.0}, tt.ArgumentTypeError, "ignore_index must be an int"),
        ({"axis": 0}, tt.ArgumentValueError, "axis must be -1 or 1"),
        ({"class_weights": tt.ones((2,))}, tt.ShapeError, r"class_weights must have shape \(3,\)"),
        ({"class_weights": tt.ones((3,), np.float64)}, tt.DTypeError, "dtypes differ"),
        ({"class_weights": tt.ones((3,)).trace()}, tt.UntracedTensorError, "class_weights.detach"),
        ({"class_weights": [1.0, 1.0, 1.0]}, tt.ArgumentTypeError, "must be a tensor"),
    ],
)
def test_an_option_of_a_loss_of_labels_that_does_not_fit_is_refused(
    options: dict[str, Any], error: type[Exception], message: str
) -> None:
    for loss in BY_LABELS[:1] if "label_smoothing" in options else BY_LABELS:
        with pytest.raises(error, match=f"^{loss.__name__}: .*{message}"):
            loss(tt.zeros((2, 3)), tt.zeros((2,), np.int64), **options)


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


@pytest.mark.parametrize("value", [0.0, -1.0, float("nan"), float("inf"), np.float32(-2.0)])
def test_a_threshold_that_is_not_positive_and_finite_is_refused(value: float) -> None:
    kinked: list[tuple[Any, str]] = [(losses.huber, "delta"), (losses.smooth_l1, "beta")]
    for loss, name in kinked:
        told = rf"^{loss.__name__}: {name} must be > 0 and finite, got"
        with pytest.raises(tt.ArgumentValueError, match=told):
            loss(tt.zeros((2,)), tt.zeros((2,)), value)


@pytest.mark.parametrize("margin", [1.1, -1.1, float("nan"), "0", None, True])
def test_a_margin_that_is_no_cosine_is_refused(margin: Any) -> None:
    with pytest.raises(tt.TapeTensorError, match=r"^cosine_embedding: margin must be"):
        losses.cosine_embedding(tt.ones((2, 3)), tt.ones((2, 3)), tt.ones((2,), np.int64), margin)


# Of which type checkers know better.
ONES: Any = tt.ones((2, 3))
WIDE: Any = tt.ones((2, 3), np.float64)
SIGNS: Any = tt.ones((2, 3), np.int64)
EACH: Any = tt.ones((2,), np.int64)
REFUSED: list[tuple[Any, type[Exception], str]] = [
    *[
        (partial(losses.binary_cross_entropy, tt.from_numpy(q), ONES[0, :2]), *told)
        for told in [(tt.ArgumentValueError, r"must be in \[0, 1\], found .*_with_logits")]
        for q in ([-0.1, 0.5], [0.5, 1.1], [0.5, float("nan")])
    ],
    (partial(losses.kl_div, ONES.sum(), ONES.sum()), tt.ShapeError, r"shape \(\)"),
    (partial(losses.cross_entropy, ONES, ONES[:, 0]), tt.DTypeError, "float32; .*_probabilities"),
    (partial(losses.cross_entropy, ONES, EACH == 1), tt.DTypeError, "labels must be .*, got bool"),
    (partial(losses.cross_entropy, tt.ones((2, 5, 3)), SIGNS), tt.ShapeError, "write axis=1"),
    (
        partial(losses.binary_cross_entropy_with_logits, ONES, ONES, pos_weight=tt.ones((2,))),
        tt.ShapeError,
        r"must have shape \(3,\) or \(\), got \(2,\)",
    ),
    (partial(losses.soft_margin, ONES, SIGNS[0]), tt.ShapeError, "signs of shape .* differ"),
    (partial(losses.soft_margin, ONES, SIGNS * 2), tt.ArgumentValueError, "must be 1 or -1"),
    (partial(losses.soft_margin, ONES, ONES), tt.DTypeError, "signed integers"),
    (partial(losses.soft_margin, ONES, [1]), tt.ArgumentTypeError, "signs"),
    (partial(losses.soft_margin, ONES, SIGNS.trace()), tt.UntracedTensorError, "detach"),
    (partial(losses.hinge_embedding, ONES, SIGNS, "1"), tt.ArgumentTypeError, "margin"),
    (partial(losses.margin_ranking, ONES, ONES[0], SIGNS), tt.ShapeError, "lhs .* and rhs"),
    (partial(losses.triplet_margin, ONES, ONES, ONES[0]), tt.ShapeError, "anchor .* and negative"),
    (partial(losses.triplet_margin, ONES, ONES, WIDE), tt.DTypeError, "float64"),
    (partial(losses.triplet_margin, ONES, ONES, "a"), tt.ArgumentTypeError, "negative"),
    (partial(losses.gaussian_nll, ONES, ONES, -ONES), tt.ArgumentValueError, "variance must be >="),
    (partial(losses.gaussian_nll, ONES, ONES, ONES, full=1), tt.ArgumentTypeError, "full"),
    (partial(losses.gaussian_nll, ONES, ONES, ONES, eps=0), tt.ArgumentValueError, "eps"),
    (partial(losses.multi_margin, ONES, SIGNS[0]), tt.ShapeError, "need labels"),
    (partial(losses.multi_margin, ONES, EACH, power=3), tt.ArgumentValueError, "must be 1 or 2"),
    (partial(losses.poisson_nll, ONES, SIGNS), tt.DTypeError, "int64"),
    (partial(losses.poisson_nll, ONES, ONES, log_input=0), tt.ArgumentTypeError, "log_input"),
    (partial(losses.poisson_nll, -ONES, ONES, log_input=False), tt.ArgumentValueError, ">= 0"),
    (partial(losses.poisson_nll, ONES, ONES, reduction="max"), tt.ArgumentValueError, "reduction"),
    *[
        (partial(losses.cosine_embedding, *operands), tt.ShapeError, "do not fit|leaves nothing")
        for operands in (
            (ONES, tt.ones((2, 4)), EACH),
            (ONES, ONES, tt.ones((3,), np.int64)),
            (ONES, ONES, EACH[:, None]),
            (ONES[:0], ONES[:0], EACH[:0]),
            (ONES.sum(), ONES.sum(), EACH[0]),
        )
    ],
    (partial(losses.cosine_embedding, ONES, ONES, ONES[:, 0]), tt.DTypeError, "signed integers"),
    (partial(losses.cosine_embedding, ONES, WIDE, EACH), tt.DTypeError, "float32 and float64"),
    (partial(losses.cosine_embedding, EACH, EACH, EACH), tt.DTypeError, "not defined for dtype"),
    (partial(losses.cosine_embedding, ONES, ONES, EACH * 0), tt.ArgumentValueError, "found are 0"),
    (partial(losses.cosine_embedding, ONES, ONES, EACH.trace()), tt.UntracedTensorError, "plain"),
]


@pytest.mark.parametrize(("call", "error", "message"), REFUSED)
def test_what_does_not_fit_is_refused(call: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=f"^{call.func.__name__}: .*({message})"):
        call()
