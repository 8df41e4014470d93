"""Losses with a margin and likelihoods: values, gradients, kinks, and what they refuse."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tapetensor as tt
from tapetensor import losses
from tapetensor.testing import check_grad

RNG = np.random.default_rng(3)
X, Y, Z = (tt.from_numpy(one) for one in RNG.normal(size=(3, 5, 4)))
POSITIVE = tt.from_numpy(RNG.uniform(0.2, 2.0, (5, 4)))
SIGNS = tt.from_numpy(RNG.choice([-1, 1], (5, 4)))
LABELS = tt.from_numpy(np.array([0, 3, 1, 1, 2]))


def lengths(difference: Any) -> Any:
    return np.sqrt(((difference + 1e-6) ** 2).sum(-1))


def lacking_of_classes(x: Any, labels: Any, power: int) -> Any:
    rows = []
    for row, label in zip(x, labels, strict=True):
        others = np.delete(row, label)
        rows.append((np.maximum(0, 0.7 - row[label] + others) ** power).sum() / len(row))
    return np.array(rows)


# A loss of what is differentiated, that, and the error of each element or row by the formula.
Row = tuple[Callable[..., Any], tuple[Any, ...], Callable[..., Any]]
ROWS: dict[str, Row] = {
    "hinge_embedding": (
        lambda x, **r: losses.hinge_embedding(x, SIGNS, 0.6, **r),
        (X,),
        lambda x: np.where(SIGNS.numpy() == 1, x, np.maximum(0, 0.6 - x)),
    ),
    "soft_margin": (
        lambda x, **r: losses.soft_margin(x, SIGNS, **r),
        (X,),
        lambda x: np.log(1 + np.exp(-SIGNS.numpy() * x)),
    ),
    "margin_ranking": (
        lambda x, y, **r: losses.margin_ranking(x, y, SIGNS, 0.3, **r),
        (X, Y),
        lambda x, y: np.maximum(0, 0.3 - SIGNS.numpy() * (x - y)),
    ),
    "multi_margin": (
        lambda x, **r: losses.multi_margin(x, LABELS, 0.7, **r),
        (X,),
        lambda x: lacking_of_classes(x, LABELS.numpy(), 1),
    ),
    "multi_margin of squares": (
        lambda x, **r: losses.multi_margin(x, LABELS, 0.7, power=2, **r),
        (X,),
        lambda x: lacking_of_classes(x, LABELS.numpy(), 2),
    ),
    "triplet_margin": (
        lambda x, y, z, **r: losses.triplet_margin(x, y, z, 0.5, **r),
        (X, Y, Z),
        lambda x, y, z: np.maximum(0, lengths(x - y) - lengths(x - z) + 0.5),
    ),
    "gaussian_nll": (
        lambda x, v, **r: losses.gaussian_nll(x, Y, v, full=True, **r),
        (X, POSITIVE),
        lambda x, v: 0.5 * (np.log(2 * np.pi * v) + (x - Y.numpy()) ** 2 / v),
    ),
    "poisson_nll": (
        lambda x, **r: losses.poisson_nll(x, POSITIVE, **r),
        (X,),
        lambda x: np.exp(x) - POSITIVE.numpy() * x,
    ),
    "poisson_nll of rates": (
        lambda x, **r: losses.poisson_nll(x, POSITIVE, log_input=False, **r),
        (POSITIVE,),
        lambda x: x - POSITIVE.numpy() * np.log(x + 1e-8),
    ),
}


@pytest.mark.parametrize("name", ROWS)
def test_a_loss_has_the_value_and_the_gradients_of_its_formula(
    name: str, rng: np.random.Generator
) -> None:
    loss, tensors, formula = ROWS[name]
    terms = formula(*[one.numpy() for one in tensors])

    np.testing.assert_allclose(loss(*tensors, reduction="none").numpy(), terms, rtol=1e-12)
    assert loss(*tensors).item() == pytest.approx(terms.mean(), rel=1e-12)
    assert loss(*tensors, reduction="sum").item() == pytest.approx(terms.sum(), rel=1e-12)
    for reduction in ("mean", "none"):
        check_grad(lambda *x, r=reduction: loss(*x, reduction=r).sum(), *tensors, rng=rng)


def test_where_a_margin_is_just_kept_the_derivative_is_that_of_what_lacks() -> None:
    x, zero, one = tt.full((1, 1), 1.0), tt.zeros((1, 1)), tt.ones((1, 1), np.int64)
    start, two = tt.zeros((1, 1)), tt.from_numpy([[1.0, 0.0]], shape=(1, 2))
    along: Any = tt.from_numpy([[3.0, 4.0]], shape=(1, 2))
    across: Any = tt.from_numpy([[4.0, -3.0]], shape=(1, 2))
    kept: list[tuple[Any, Any, list[list[float]]]] = [
        (x, lambda x: losses.hinge_embedding(x, -one, 1.0), [[-1.0]]),
        (x, lambda x: losses.margin_ranking(x, zero, one, 1.0), [[-1.0]]),
        (x, lambda x: losses.margin_ranking(zero, x, -one, 1.0), [[-1.0]]),
        (start, lambda x: losses.margin_ranking(x, zero, -one), [[1.0]]),
        (start, lambda x: losses.triplet_margin(x, zero, zero, 0.0), [[0.0]]),
        (start, lambda x: losses.triplet_margin(zero, x, zero, 0.0), [[-1.0]]),
        (along, lambda x: losses.cosine_embedding(x, across, -one[0]), [[4 / 25, -3 / 25]]),
        # PyTorch's, too, is 0 here.
        (two, lambda x: losses.multi_margin(x, zero[0].astype(np.int64), 1.0), [[0.0, 0.0]]),
    ]
    for tensor, loss, slope in kept:
        assert loss(tensor).item() == 0.0
        np.testing.assert_allclose(loss(tensor.trace()).backward()[tensor].numpy(), slope, 1e-6)


def test_equal_vectors_and_variances_of_zero_leave_gradients_finite() -> None:
    x = tt.ones((2, 3))
    assert np.isfinite(losses.triplet_margin(x.trace(), x, x).backward()[x].numpy()).all()
    variance = tt.zeros((2, 3))
    loss = losses.gaussian_nll(x.trace(), x, variance.trace())
    assert (loss.backward()[variance].numpy() > 0).all()


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


@pytest.mark.parametrize("loss", [losses.cross_entropy, losses.nll])
@pytest.mark.parametrize("shape", [(2, 3, 3), (2, 3), (2, 3, 4, 5)])
def test_classes_on_axis_one_are_those_of_the_last_axis_moved_there(
    loss: Any, shape: tuple[int, ...], rng: np.random.Generator
) -> None:
    scores = rng.normal(size=shape)
    labels = tt.from_numpy(rng.integers(0, 3, (shape[0], *shape[2:])))
    x, twin = tt.from_numpy(scores), tt.from_numpy(np.moveaxis(scores, 1, -1))

    found, expected = loss(x.trace(), labels, axis=1), loss(twin.trace(), labels)
    assert found.item() == pytest.approx(expected.item(), rel=1e-12)
    np.testing.assert_allclose(
        found.backward()[x].numpy(),
        np.moveaxis(expected.backward()[twin].numpy(), -1, 1),
        rtol=1e-12,
    )
    assert loss(x, labels, axis=1, reduction="none").shape == labels.shape


def test_labels_that_fit_no_axis_say_where_classes_may_be() -> None:
    images, labels = tt.ones((2, 5, 3)).trace(), tt.zeros((2, 3), np.int64)

    with pytest.raises(tt.ShapeError, match=r"for classes on axis 1, as of images, write axis=1"):
        losses.cross_entropy(images, labels)
    with pytest.raises(tt.ArgumentValueError, match="axis must be -1 or 1"):
        losses.cross_entropy(images, labels, axis=0)  # type: ignore[call-overload]  # on purpose
    assert images.owns_tape
