"""Metrics: their values by hand and by scikit-learn, what they refuse, and `fit` with them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tapetensor as tt
from tapetensor import losses, metrics, nn, training
from tapetensor.data import batches
from tapetensor.metrics import Pooled


def test_an_accuracy_is_of_scores_or_of_classes_along_any_axes() -> None:
    scores = np.array([[[0.1, 0.9], [0.8, 0.2]], [[0.3, 0.7], [0.6, 0.4]]])
    labels = np.array([[1, 1], [1, 0]])

    assert metrics.accuracy(scores, labels) == 0.75
    assert metrics.accuracy(scores.argmax(-1), labels) == 0.75
    assert metrics.accuracy(tt.from_numpy(scores), tt.from_numpy(labels)) == 0.75
    assert metrics.accuracy(np.array([0.3, 0.7]) > 0.5, np.array([False, True])) == 1.0


def test_of_equal_scores_the_first_class_is_the_guess() -> None:
    assert metrics.top_k_accuracy(np.zeros((3, 3)), np.array([0, 1, 2]), k=2) == pytest.approx(
        2 / 3
    )
    assert metrics.top_k_accuracy(np.zeros((3, 3)), np.array([0, 1, 2]), k=3) == 1.0


def test_a_confusion_matrix_has_a_row_for_each_class_that_is_right() -> None:
    found = metrics.confusion_matrix([0, 2, 2, 1], [0, 1, 2, 1])

    assert found.tolist() == [[1, 0, 0], [0, 1, 1], [0, 0, 1]]
    assert found.dtype == np.int64
    assert metrics.confusion_matrix([0], [0], classes=3).shape == (3, 3)
    assert metrics.confusion_matrix(np.zeros((1, 4)), [0]).shape == (4, 4)


@pytest.mark.parametrize("seed", range(3))
def test_the_values_are_those_of_scikit_learn(seed: int) -> None:
    theirs = pytest.importorskip("sklearn.metrics")
    rng = np.random.default_rng(seed)
    scores = rng.integers(0, 6, (60, 5)) / 6
    labels = rng.integers(0, 5, 60)
    guesses, positive = scores.argmax(axis=1), labels > 2

    pairs: list[tuple[Any, Any]] = [
        (metrics.accuracy(scores, labels), theirs.accuracy_score(labels, guesses)),
        (metrics.confusion_matrix(scores, labels), theirs.confusion_matrix(labels, guesses)),
        (metrics.roc_auc(scores[:, 0], positive), theirs.roc_auc_score(positive, scores[:, 0])),
        (metrics.r2(scores[:, 0], scores[:, 1]), theirs.r2_score(scores[:, 1], scores[:, 0])),
        (metrics.r2(scores[:, :2], scores[:, 2:4]), theirs.r2_score(scores[:, 2:4], scores[:, :2])),
    ]
    for name, other in [
        ("precision", theirs.precision_score),
        ("recall", theirs.recall_score),
        ("f1", theirs.f1_score),
    ]:
        ours = getattr(metrics, name)
        for average in ("macro", "weighted", "micro"):
            expected = other(labels, guesses, average=average, zero_division=0)
            pairs.append((ours(scores, labels, average), expected))
        pairs.append((ours(guesses == 1, labels == 1, 1), other(labels == 1, guesses == 1)))
    # Without ties, which the two break otherwise.
    distinct = rng.normal(size=(60, 5))
    expected = theirs.top_k_accuracy_score(labels, distinct, k=2, labels=range(5))
    pairs.append((metrics.top_k_accuracy(distinct, labels, k=2), expected))
    for found, expected in pairs:
        np.testing.assert_allclose(found, expected, rtol=1e-12)


# Of which type checkers know nothing.
_TRACED: Any = tt.ones((1, 2)).trace()
_WRONG: Any = "all"


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: metrics.accuracy([0.2, 0.7], [0, 1]), tt.DTypeError, "write scores > 0.5"),
        (lambda: metrics.accuracy([0, 1], [0.0, 1.0]), tt.DTypeError, "must be integers"),
        (lambda: metrics.accuracy([["a"]], [0]), tt.DTypeError, "expected numbers, got <U1"),
        (lambda: metrics.accuracy([[0.1, np.nan]], [0]), tt.ArgumentValueError, "a NaN"),
        (lambda: metrics.accuracy(np.ones((2, 3)), [0]), tt.ShapeError, "got (2, 3) and (1,)"),
        (lambda: metrics.accuracy([0, 1], [0]), tt.ShapeError, "got (2,) and (1,)"),
        (lambda: metrics.accuracy(np.ones((0, 3)), np.ones(0, int)), tt.ShapeError, "no rows"),
        (lambda: metrics.accuracy(np.ones(0, int), np.ones(0, int)), tt.ShapeError, "no rows"),
        (lambda: metrics.accuracy(_TRACED, [0]), tt.UntracedTensorError, "detach"),
        (lambda: metrics.top_k_accuracy([[0.1]], [1], 1), tt.ArgumentValueError, "0 to 0, found 1"),
        (lambda: metrics.top_k_accuracy([[0.1]], [0], 2), tt.ArgumentValueError, "k is more"),
        (lambda: metrics.top_k_accuracy([0], [0], 1), tt.ShapeError, "got (1,) and (1,)"),
        (lambda: metrics.confusion_matrix([3], [0], 2), tt.ArgumentValueError, "0 to 1, found 3"),
        (lambda: metrics.f1([-1], [0]), tt.ArgumentValueError, "0 to 0, found -1"),
        (lambda: metrics.f1([0], [0], _WRONG), tt.ArgumentValueError, 'must be "macro" or'),
        (lambda: metrics.roc_auc([0.1, 0.2], [1, 1]), tt.ArgumentValueError, "2 positive and 0"),
        (lambda: metrics.roc_auc([0.1], [2]), tt.ArgumentValueError, "0 to 1, found 2"),
        (lambda: metrics.roc_auc(np.ones((2, 2)), [0, 1]), tt.ShapeError, "take the second"),
        (lambda: metrics.r2([1.0, 2.0], [1.0, 1.0]), tt.ArgumentValueError, "all equal"),
        (lambda: metrics.r2([1.0], [1.0]), tt.ShapeError, "two rows or more"),
        (lambda: metrics.r2([1.0], [[1.0]]), tt.ShapeError, "got (1,) and (1, 1)"),
        (lambda: Pooled(metrics.f1, _WRONG), tt.ArgumentTypeError, "outputs must be a function"),
    ],
)
def test_what_is_no_pair_of_predictions_and_labels_is_refused(
    call: Any, error: type[Exception], words: str
) -> None:
    with pytest.raises(error) as caught:
        call()

    assert words in str(caught.value)


def _outputs(model: Any, batch: Any) -> tuple[Any, Any]:
    x, labels = batch
    return model.forward(x), labels


def _data(rows: int) -> tuple[Any, Any, nn.Linear[Any, Any]]:
    rng = np.random.default_rng(0)
    x = tt.normal((rows, 3), rng=rng)
    return x, x.argmax(axis=1), nn.Linear(3, 3, rng=rng)


def test_a_pooled_metric_is_that_of_all_rows_and_not_the_mean_of_batches() -> None:
    x, labels, model = _data(50)
    whole = batches(x, labels, size=8)
    by_batch = training.evaluate(
        model, {"f1": lambda model, batch: Pooled(metrics.f1, _outputs)(model, batch)}, whole
    )
    pooled = training.evaluate(
        model,
        {"f1": Pooled(metrics.f1, _outputs), "loss": _loss, "right": Pooled(_share, _outputs)},
        whole,
    )

    assert list(pooled) == ["f1", "loss", "right"]
    assert pooled["f1"] == metrics.f1(model.forward(x), labels) != by_batch["f1"]
    assert pooled["right"] == metrics.accuracy(model.forward(x), labels)


def _loss(model: Any, batch: Any) -> Any:
    return losses.cross_entropy(model.forward(batch[0]), batch[1])


def _share(predictions: Any, labels: Any) -> float:
    return float((predictions.argmax(axis=1) == labels).mean())


def test_metrics_that_share_their_outputs_have_the_model_run_once() -> None:
    x, labels, model = _data(10)
    runs: list[int] = []

    def outputs(model: Any, batch: Any) -> tuple[Any, Any]:
        runs.append(1)
        return _outputs(model, batch)

    scores = {name: Pooled(getattr(metrics, name), outputs) for name in ("f1", "accuracy")}
    training.evaluate(model, scores, batches(x, labels, size=5))

    assert len(runs) == 2


def test_outputs_that_are_no_pair_are_refused() -> None:
    x, labels, model = _data(4)
    wrong: Any = lambda model, batch: model.forward(batch[0])  # noqa: E731 - it has no type

    with pytest.raises(tt.ArgumentTypeError, match="a tuple of two, got Tensor"):
        Pooled(metrics.f1, wrong)(model, (x, labels))
