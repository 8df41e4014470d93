"""Values and gradients of the losses, against numpy formulas and finite differences."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, TypeAlias, assert_type

import numpy as np
import pytest

import tapetensor as tt
from tapetensor import losses
from tapetensor.testing import check_grad
from tests.ops.reduction_rows import softmax

Plain: TypeAlias = tt.Tensor[Any, tt.NoneTape, np.float64]
Array: TypeAlias = np.ndarray[Any, np.dtype[np.float64]]

RNG = np.random.default_rng(3)
SHAPE = (2, 3, 4)
X, Y, Z = (tt.from_numpy(one) for one in RNG.normal(size=(3, *SHAPE)))
POSITIVE = tt.from_numpy(RNG.uniform(0.2, 2.0, SHAPE))
P, Q = X.softmax(), Z.softmax()
SIGNS = tt.from_numpy(RNG.choice([-1, 1], SHAPE))
# A sign and a label for each row.
EACH_SIGN = tt.from_numpy(RNG.choice([-1, 1], SHAPE[:-1]))
LABELS = tt.from_numpy(RNG.integers(0, SHAPE[-1], SHAPE[:-1]))


def at_labels(x: Array) -> Array:
    found: Array = np.take_along_axis(x, LABELS.numpy()[..., None], axis=-1)[..., 0]
    return found


def huber(x: Array, y: Array) -> Any:
    d = np.abs(x - y)
    return np.where(d <= 0.7, d**2 / 2, 0.7 * (d - 0.35))


def of_yes_and_no(q: Array, p: Array) -> Any:
    return -p * np.log(q) - (1 - p) * np.log(1 - q)


def lacking_of_classes(x: Array, power: int) -> Any:
    missing = np.maximum(0, 0.7 - at_labels(x)[..., None] + x) ** power
    # Without that of the label itself.
    return (missing.sum(-1) - 0.7**power) / x.shape[-1]


def lengths(difference: Array) -> Any:
    return np.sqrt(((difference + 1e-6) ** 2).sum(-1))


def unlike(x: Array, y: Array, margin: float) -> Any:
    norms = [np.sqrt((one**2).sum(-1) + 1e-12) for one in (x, y)]
    cosines = (x * y).sum(-1) / (norms[0] * norms[1])
    return np.where(EACH_SIGN.numpy() == 1, 1 - cosines, np.maximum(0, cosines - margin))


# A loss of what is differentiated, that, and the error of each element or row by the formula.
Row = tuple[Callable[..., Any], tuple[Any, ...], Callable[..., Any]]
ROWS: dict[str, Row] = {
    "mse": (losses.mse, (X, Y), lambda x, y: (x - y) ** 2),
    "mae": (losses.mae, (X, Y), lambda x, y: np.abs(x - y)),
    "huber": (lambda x, y, **r: losses.huber(x, y, 0.7, **r), (X, Y), huber),
    "smooth_l1": (
        lambda x, y, **r: losses.smooth_l1(x, y, 0.7, **r),
        (X, Y),
        lambda x, y: huber(x, y) / 0.7,
    ),
    "quantile": (
        lambda x, y, **r: losses.quantile(x, y, 0.9, **r),
        (X, Y),
        lambda x, y: np.maximum(0.9 * (y - x), 0.1 * (x - y)),
    ),
    "binary_cross_entropy": (losses.binary_cross_entropy, (P, Q), of_yes_and_no),
    "binary_cross_entropy_with_logits": (
        losses.binary_cross_entropy_with_logits,
        (X, Q),
        lambda x, p: of_yes_and_no(1 / (1 + np.exp(-x)), p),
    ),
    "cross_entropy": (
        lambda x, **r: losses.cross_entropy(x, LABELS, **r),
        (X,),
        lambda x: -np.log(at_labels(softmax(x))),
    ),
    "nll": (lambda x, **r: losses.nll(x, LABELS, **r), (X,), lambda x: -at_labels(x)),
    "cross_entropy_with_probabilities": (
        losses.cross_entropy_with_probabilities,
        (X, Q),
        lambda x, p: -(p * np.log(softmax(x))).sum(-1),
    ),
    "kl_div": (
        losses.kl_div,
        (X, Q),
        lambda x, p: (p * (np.log(p) - np.log(softmax(x)))).sum(-1),
    ),
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
    **{
        f"multi_margin, power {power}": (
            lambda x, p=power, **r: losses.multi_margin(x, LABELS, 0.7, power=p, **r),
            (X,),
            lambda x, p=power: lacking_of_classes(x, p),
        )
        for power in (1, 2)
    },
    "triplet_margin": (
        lambda x, y, z, **r: losses.triplet_margin(x, y, z, 0.5, **r),
        (X, Y, Z),
        lambda x, y, z: np.maximum(0, lengths(x - y) - lengths(x - z) + 0.5),
    ),
    **{
        f"cosine_embedding, margin {margin}": (
            lambda x, y, m=margin, **r: losses.cosine_embedding(x, y, EACH_SIGN, m, **r),
            (X, Y),
            lambda x, y, m=margin: unlike(x, y, m),
        )
        for margin in (0.0, -0.4)
    },
    "gaussian_nll": (
        lambda x, y, v, **r: losses.gaussian_nll(x, y, v, full=True, **r),
        (X, Y, POSITIVE),
        lambda x, y, v: 0.5 * (np.log(2 * np.pi * v) + (x - y) ** 2 / v),
    ),
    "poisson_nll": (
        losses.poisson_nll,
        (X, POSITIVE),
        lambda x, counts: np.exp(x) - counts * x,
    ),
    "poisson_nll of rates": (
        lambda x, **r: losses.poisson_nll(x, POSITIVE, log_input=False, **r),
        (POSITIVE,),
        lambda x: x - POSITIVE.numpy() * np.log(x + 1e-8),
    ),
}


@pytest.mark.parametrize("name", ROWS)
def test_a_loss_has_the_values_and_the_gradients_of_its_formula(
    name: str, rng: np.random.Generator
) -> None:
    loss, tensors, formula = ROWS[name]
    terms = formula(*[one.numpy() for one in tensors])
    each = loss(*tensors, reduction="none").numpy()

    assert each.shape == terms.shape
    np.testing.assert_allclose(each, terms, rtol=1e-11, atol=1e-14)
    assert loss(*tensors).item() == pytest.approx(terms.mean(), rel=1e-12)
    assert loss(*tensors, reduction="sum").item() == pytest.approx(terms.sum(), rel=1e-12)
    for reduction in ("mean", "none"):
        check_grad(lambda *x, r=reduction: loss(*x, reduction=r).square().sum(), *tensors, rng=rng)


def test_the_root_of_the_mean_has_the_value_and_the_gradient_of_its_formula(
    rng: np.random.Generator,
) -> None:
    expected = np.sqrt(np.mean((X.numpy() - Y.numpy()) ** 2))

    assert losses.rmse(X, Y).item() == pytest.approx(expected, rel=1e-12)
    check_grad(losses.rmse, X, Y, rng=rng)


def test_labels_may_be_of_any_integer_dtype() -> None:
    expected = losses.cross_entropy(X, LABELS).item()
    for labels in (LABELS.astype(np.uint8), LABELS.astype(np.int32)):
        assert losses.cross_entropy(X, labels).item() == expected


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


def test_at_a_kink_the_derivative_is_the_stated_one() -> None:
    zero, one = tt.zeros((1, 1)), tt.ones((1, 1), np.int64)
    zeros = tt.zeros((3,))
    along: Any = tt.from_numpy([[3.0, 4.0]], shape=(1, 2))
    across: Any = tt.from_numpy([[4.0, -3.0]], shape=(1, 2))
    kinks: list[tuple[Any, Any, list[Any]]] = [
        ([0.0, 2.0, -2.0], lambda x: losses.mae(x, zeros) * 3, [0.0, 1.0, -1.0]),
        ([0.0, 2.0, -2.0], lambda x: losses.smooth_l1(x, zeros, 2.0) * 3, [0.0, 1.0, -1.0]),
        ([0.0, 2.0, -2.0], lambda x: losses.huber(x, zeros, 2.0) * 3, [0.0, 2.0, -2.0]),
        ([0.0, 2.0, -2.0], lambda x: losses.quantile(x, zeros, 0.75) * 3, [-0.25, 0.25, -0.75]),
        # Where a margin is just kept, it is that of what lacks.
        ([[1.0]], lambda x: losses.hinge_embedding(x, -one, 1.0), [[-1.0]]),
        ([[1.0]], lambda x: losses.margin_ranking(x, zero, one, 1.0), [[-1.0]]),
        ([[1.0]], lambda x: losses.margin_ranking(zero, x, -one, 1.0), [[-1.0]]),
        ([[0.0]], lambda x: losses.margin_ranking(x, zero, -one), [[1.0]]),
        ([[0.0]], lambda x: losses.triplet_margin(x, zero, zero, 0.0), [[0.0]]),
        ([[0.0]], lambda x: losses.triplet_margin(zero, x, zero, 0.0), [[-1.0]]),
        (along.numpy(), lambda x: losses.cosine_embedding(x, across, -one[0]), [[0.16, -0.12]]),
        # PyTorch's, too, is 0 here.
        ([[1.0, 0.0]], lambda x: losses.multi_margin(x, tt.zeros((1,), np.int64)), [[0.0, 0.0]]),
    ]
    for values, loss, slope in kinks:
        x = tt.from_numpy(values)
        np.testing.assert_allclose(loss(x.trace()).backward()[x].numpy(), slope, 1e-6)


def test_equal_vectors_and_variances_of_zero_leave_gradients_finite() -> None:
    x = tt.ones((2, 3))
    assert np.isfinite(losses.triplet_margin(x.trace(), x, x).backward()[x].numpy()).all()
    variance = tt.zeros((2, 3))
    loss = losses.gaussian_nll(x.trace(), x, variance.trace())
    assert (loss.backward()[variance].numpy() > 0).all()


def test_smoothed_and_weighed_labels_are_a_distribution_of_classes(
    rng: np.random.Generator,
) -> None:
    logits: Plain = tt.normal((5, 3), np.float64, rng=rng)
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
    logits: Any = tt.normal(shape, np.float64, rng=rng)
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
