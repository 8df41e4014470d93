"""Values and gradients of the losses, against numpy formulas and finite differences."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, TypeAlias, assert_type

import numpy as np
import pytest

import tapetensor as tt
from tapetensor import losses
from tapetensor.testing import check_grad

Plain: TypeAlias = tt.Tensor[Any, tt.NoneTape, np.float64]
Array: TypeAlias = np.ndarray[Any, np.dtype[np.float64]]

SHAPES = [(1, 1), (4, 3), (2, 3, 4), (5,)]


def normal(shape: tuple[int, ...], rng: np.random.Generator) -> Plain:
    return tt.normal(shape, np.float64, rng=rng)


def distribution(shape: tuple[int, ...], rng: np.random.Generator) -> Plain:
    return normal(shape, rng).softmax()


def softmax(x: Array) -> Array:
    exponentials = np.exp(x)
    result: Array = exponentials / exponentials.sum(axis=-1, keepdims=True)
    return result


def huber_by_cases(x: Array, y: Array) -> float:
    d = np.abs(x - y)
    return float(np.mean(np.where(d <= 0.7, d**2 / 2, 0.7 * (d - 0.35))))


def binary_by_definition(x: Array, p: Array) -> float:
    s = 1 / (1 + np.exp(-x))
    return float(np.mean(-p * np.log(s) - (1 - p) * np.log(1 - s)))


def huber(x: Any, y: Any) -> Any:
    return losses.huber(x, y, delta=0.7)


def smooth_l1(x: Any, y: Any) -> Any:
    return losses.smooth_l1(x, y, beta=0.7)


def quantile(x: Any, y: Any) -> Any:
    return losses.quantile(x, y, 0.9)


PAIRED: list[tuple[Callable[[Any, Any], Any], Callable[[Array, Array], float]]] = [
    (losses.mse, lambda x, y: float(np.mean((x - y) ** 2))),
    (losses.rmse, lambda x, y: float(np.sqrt(np.mean((x - y) ** 2)))),
    (losses.mae, lambda x, y: float(np.mean(np.abs(x - y)))),
    (huber, huber_by_cases),
    (smooth_l1, lambda x, y: huber_by_cases(x, y) / 0.7),
    (quantile, lambda x, y: float(np.mean(np.maximum(0.9 * (y - x), 0.1 * (x - y))))),
    (losses.binary_cross_entropy_with_logits, binary_by_definition),
    (
        losses.cross_entropy_with_probabilities,
        lambda x, p: float(np.mean(-np.sum(p * np.log(softmax(x)), axis=-1))),
    ),
    (
        losses.kl_div,
        lambda x, p: float(np.mean(np.sum(p * (np.log(p) - np.log(softmax(x))), axis=-1))),
    ),
]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(("loss", "reference"), PAIRED)
def test_a_loss_has_the_value_and_the_gradient_of_its_formula(
    loss: Callable[[Any, Any], Any],
    reference: Callable[[Array, Array], float],
    shape: tuple[int, ...],
    rng: np.random.Generator,
) -> None:
    x, target = normal(shape, rng), distribution(shape, rng)

    assert loss(x, target).item() == pytest.approx(reference(x.numpy(), target.numpy()), rel=1e-12)
    check_grad(lambda traced: loss(traced, target), x, rng=rng)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", [np.int64, np.uint8, np.int32])
def test_cross_entropy_is_the_mean_negative_log_softmax_at_the_labels(
    shape: tuple[int, ...], dtype: type[np.integer[Any]], rng: np.random.Generator
) -> None:
    logits = normal(shape, rng)
    labels = tt.from_numpy(rng.integers(0, shape[-1], shape[:-1]), dtype=dtype)
    at_labels = np.expand_dims(labels.numpy().astype(np.int64), -1)
    picked = np.take_along_axis(softmax(logits.numpy()), at_labels, axis=-1)

    assert losses.cross_entropy(logits, labels).item() == pytest.approx(-np.log(picked).mean())
    check_grad(lambda traced: losses.cross_entropy(traced, labels), logits, rng=rng)


@pytest.mark.parametrize("shape", SHAPES)
def test_nll_of_log_softmax_is_cross_entropy(
    shape: tuple[int, ...], rng: np.random.Generator
) -> None:
    logits = normal(shape, rng)
    labels = tt.from_numpy(rng.integers(0, shape[-1], shape[:-1]))
    by_nll, by_logits = (
        losses.nll(logits.trace().log_softmax(), labels),
        losses.cross_entropy(logits.trace(), labels),
    )

    assert by_nll.item() == pytest.approx(by_logits.item(), rel=1e-13)
    np.testing.assert_allclose(
        by_nll.backward()[logits].numpy(), by_logits.backward()[logits].numpy(), atol=1e-14
    )
    check_grad(lambda traced: losses.nll(traced, labels), logits, rng=rng)


@pytest.mark.parametrize("shape", SHAPES)
def test_binary_cross_entropy_of_a_sigmoid_is_that_of_the_logits(
    shape: tuple[int, ...], rng: np.random.Generator
) -> None:
    logits = normal(shape, rng)
    target = normal(shape, rng).sigmoid()
    by_sigmoid = losses.binary_cross_entropy(logits.trace().sigmoid(), target)
    by_logits = losses.binary_cross_entropy_with_logits(logits.trace(), target)

    assert by_sigmoid.item() == pytest.approx(by_logits.item(), rel=1e-13)
    np.testing.assert_allclose(
        by_sigmoid.backward()[logits].numpy(), by_logits.backward()[logits].numpy(), atol=1e-14
    )
    check_grad(lambda q: losses.binary_cross_entropy(q, target), logits.sigmoid(), rng=rng)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_certain_probability_costs_a_hundred_at_most(dtype: Any) -> None:
    q = tt.from_numpy([0.0, 1.0], dtype=dtype)
    right, wrong = q, tt.from_numpy([1.0, 0.0], dtype=dtype)

    assert losses.binary_cross_entropy(q, right).item() == 0.0
    assert losses.binary_cross_entropy(q, wrong).item() == 100.0
    gradient = losses.binary_cross_entropy(q.trace(), wrong).backward()[q]
    np.testing.assert_allclose(gradient.numpy(), [-0.5e12, 0.5e12], rtol=1e-6)


def test_the_result_is_a_scalar_of_the_tape_and_dtype_of_the_prediction() -> None:
    x: tt.Tensor2D[Literal[2], Literal[3]] = tt.zeros((2, 3))
    labels: tt.Tensor1D[Literal[2], tt.NoneTape, np.int64] = tt.zeros((2,), np.int64)
    plain = assert_type(losses.mse(x, x), tt.Tensor0D[tt.NoneTape, np.float32])
    assert_type(losses.rmse(x.trace(), x), tt.Tensor0D[tt.OwnedTape, np.float32])
    assert_type(losses.smooth_l1(x, x), tt.Tensor0D[tt.NoneTape, np.float32])
    assert_type(losses.binary_cross_entropy(x, x), tt.Tensor0D[tt.NoneTape, np.float32])
    assert_type(losses.nll(x.trace(), labels), tt.Tensor0D[tt.OwnedTape, np.float32])
    traced = assert_type(
        losses.cross_entropy(x.trace(), labels), tt.Tensor0D[tt.OwnedTape, np.float32]
    )

    assert (plain.shape, plain.dtype.name, plain.owns_tape) == ((), "float32", False)
    assert (traced.shape, traced.dtype.name, traced.owns_tape) == ((), "float32", True)
    assert traced.backward()[x].dtype == np.float32


@pytest.mark.parametrize("loss", [loss for loss, _ in PAIRED])
def test_a_gradient_flows_to_a_target_too(loss: Any, rng: np.random.Generator) -> None:
    x, target = normal((2, 3), rng), distribution((2, 3), rng)

    assert target in loss(x.trace(), target).backward()
    check_grad(loss, x, target, rng=rng)


def test_at_a_kink_the_stated_convention_holds() -> None:
    x = tt.from_numpy([0.0, 2.0, -2.0], shape=(3,))
    zero = tt.zeros((3,))
    of_mae = losses.mae(x.trace(), zero).backward()[x]
    of_smooth_l1 = losses.smooth_l1(x.trace(), zero, beta=2.0).backward()[x]
    of_huber = losses.huber(x.trace(), zero, delta=2.0).backward()[x]

    np.testing.assert_allclose(of_mae.numpy() * 3, [0.0, 1.0, -1.0], rtol=1e-6)
    np.testing.assert_allclose(of_smooth_l1.numpy() * 3, [0.0, 1.0, -1.0], rtol=1e-6)
    np.testing.assert_allclose(of_huber.numpy() * 3, [0.0, 2.0, -2.0], rtol=1e-6)
    of_quantile = losses.quantile(x.trace(), zero, 0.75).backward()[x]
    np.testing.assert_allclose(of_quantile.numpy() * 3, [-0.25, 0.25, -0.75], rtol=1e-6)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_cross_entropies_stay_finite_at_logits_of_a_thousand(dtype: Any) -> None:
    x = tt.from_numpy([[1000.0, -1000.0], [-1000.0, 1000.0]], dtype=dtype)
    right = tt.from_numpy([[1.0, 0.0], [0.0, 1.0]], dtype=dtype)
    wrong = tt.from_numpy([[0.0, 1.0], [1.0, 0.0]], dtype=dtype)
    labels = tt.from_numpy([1, 0], shape=(2,), dtype=np.int64)

    for loss, at_worst in (
        (losses.cross_entropy_with_probabilities, 2000.0),
        (losses.kl_div, 2000.0),
        (losses.binary_cross_entropy_with_logits, 1000.0),
    ):
        assert loss(x, right).item() == 0.0
        assert loss(x, wrong).item() == at_worst
        assert np.isfinite(loss(x.trace(), wrong).backward()[x].numpy()).all()
    assert losses.cross_entropy(x, labels).item() == 2000.0
    np.testing.assert_array_equal(
        losses.cross_entropy(x.trace(), labels).backward()[x].numpy(), [[0.5, -0.5], [-0.5, 0.5]]
    )


REDUCED: list[Any] = [
    losses.mse,
    losses.mae,
    losses.huber,
    losses.smooth_l1,
    losses.binary_cross_entropy,
    losses.binary_cross_entropy_with_logits,
    losses.cross_entropy_with_probabilities,
    losses.kl_div,
]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("loss", REDUCED)
def test_the_mean_and_the_sum_are_those_of_the_single_errors(
    loss: Any, shape: tuple[int, ...], rng: np.random.Generator
) -> None:
    x, target = distribution(shape, rng) * 0.9, distribution(shape, rng)
    each = loss(x, target, reduction="none")

    assert each.shape in (shape, shape[:-1])
    assert loss(x, target).item() == pytest.approx(each.mean().item(), rel=1e-12, abs=1e-15)
    assert loss(x, target, reduction="sum").item() == pytest.approx(
        each.sum().item(), rel=1e-12, abs=1e-15
    )
    check_grad(lambda p: loss(p, target, reduction="none").square().sum(), x, rng=rng)


def test_smoothed_and_weighed_labels_are_a_distribution_of_classes(
    rng: np.random.Generator,
) -> None:
    logits = normal((5, 3), rng)
    labels = tt.from_numpy(np.array([0, 2, 1, 2, -1]))
    weights = tt.from_numpy(rng.random(3))
    options: Any = {"class_weights": weights, "label_smoothing": 0.3, "ignore_index": -1}
    one_hot = np.eye(3)[labels.numpy()[:4]]
    wanted = weights.numpy() * (0.7 * one_hot + 0.1)
    total = -(wanted * np.log(softmax(logits.numpy()[:4]))).sum()

    loss = losses.cross_entropy(logits, labels, **options)
    assert loss.item() == pytest.approx(total / (one_hot * weights.numpy()).sum(), rel=1e-12)
    check_grad(lambda p: losses.cross_entropy(p, labels, **options), logits, rng=rng)
    each = losses.cross_entropy(logits, labels, **options, reduction="none")
    assert each.numpy()[4] == 0.0


@pytest.mark.parametrize("shape", [(5, 3), (2, 3, 4), (3,)])
@pytest.mark.parametrize("ignored", [None, -1])
@pytest.mark.parametrize("weights", [None, tt.from_numpy(np.array([0.5, 2.0, 0.25]))])
def test_nll_of_log_softmax_is_cross_entropy_with_weights_and_ignored_labels_too(
    shape: tuple[int, ...], ignored: int | None, weights: Any, rng: np.random.Generator
) -> None:
    axis: Any = 1 if len(shape) == 3 else -1
    logits: Any = normal(shape, rng)
    classes = rng.integers(0, 3, (*shape[:1], *shape[2:])[: len(shape) - 1])
    if ignored is not None and classes.ndim:
        classes[0] = ignored
    labels = tt.from_numpy(np.asarray(classes))
    for reduction in ("mean", "sum", "none"):
        how: Any = {"axis": axis, "class_weights": weights, "ignore_index": ignored}
        how |= {"reduction": reduction}
        found = losses.nll(logits.log_softmax(axis), labels, **how)
        wanted = losses.cross_entropy(logits, labels, **how)

        np.testing.assert_allclose(found.numpy(), wanted.numpy(), rtol=1e-12, atol=1e-14)
        check_grad(lambda x, h=how: losses.nll(x, labels, **h).square().sum(), logits, rng=rng)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("ignored", [-100, 1])
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize(
    ("loss", "options"),
    [
        (losses.nll, {}),
        (losses.cross_entropy, {}),
        (losses.cross_entropy, {"label_smoothing": 0.3}),
    ],
)
@pytest.mark.parametrize("weights", [None, [0.5, 2.0, 0.25]])
def test_an_ignored_row_counts_nothing_whatever_is_in_it(
    loss: Any, options: Any, weights: Any, reduction: str, ignored: int, dtype: Any
) -> None:
    scores = np.array([[1.0, 2.0, 0.5], [-np.inf] * 3, [np.nan, 1.0, np.inf]], dtype)
    weight: Any = None if weights is None else tt.from_numpy(weights, (3,), dtype)
    how = {"reduction": reduction, "ignore_index": ignored, "class_weights": weight, **options}

    def gradient(rows: Any, labels: list[int]) -> Any:
        x, classes = tt.from_numpy(rows), tt.from_numpy(labels, (len(labels),), np.int64)
        slopes = loss(x.trace(), classes, **how).sum().backward()[x].numpy()
        return loss(x, classes, **how).numpy(), slopes

    value, slopes = gradient(scores, [2, ignored, ignored])
    alone, wanted = gradient(scores[:1], [2])
    np.testing.assert_allclose(value.sum(), alone.sum(), rtol=1e-6)
    np.testing.assert_allclose(slopes[:1], wanted, rtol=1e-6)
    assert not slopes[1:].any()
    nothing, slopes = gradient(scores, [ignored] * 3)
    assert np.isnan(nothing) if reduction == "mean" else not nothing.any()
    assert nothing.dtype == slopes.dtype == dtype
    assert not slopes.any()


def test_a_yes_without_weight_counts_nothing_whatever_its_logit() -> None:
    x = tt.from_numpy([np.nan, -np.inf, 0.0])
    yes, weight = tt.ones((3,)), tt.from_numpy([0.0, 0.0, 2.0])
    loss = losses.binary_cross_entropy_with_logits(x.trace(), yes, pos_weight=weight)

    assert loss.item() == pytest.approx(2 / 3 * np.log(2))
    np.testing.assert_allclose(loss.backward()[x].numpy(), [0.0, 0.0, -1 / 3], rtol=1e-6)
