"""Scores of predictions and labels, or targets, over all rows: of one call, or of all batches."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, Literal, TypeAlias

import numpy as np
import numpy.typing as npt
from typing_extensions import TypeVar

from tapetensor.arguments import as_size, check_choice, check_function
from tapetensor.errors import ArgumentTypeError, ArgumentValueError, DTypeError, ShapeError
from tapetensor.tape import NoneTape
from tapetensor.tensor import Tensor

_Integers: TypeAlias = np.ndarray[tuple[int], np.dtype[np.int64]]
_Floats: TypeAlias = np.ndarray[Any, np.dtype[np.float64]]
# An array, or what becomes one; a plain tensor.
Values: TypeAlias = npt.ArrayLike | Tensor[Any, NoneTape, Any]
Average: TypeAlias = Literal["macro", "weighted", "micro"]


def accuracy(predictions: Values, labels: Values) -> float:
    """Return the share of the predictions that are right.

    Shape: scores ``(*Ds, C)`` and labels ``(*Ds)``, or classes ``(*Ds)`` and labels ``(*Ds)``.

    Args:
        predictions: scores, of which the largest of a row counts (logits or probabilities), or the
            classes themselves, as integers or bools.
        labels: the right classes.

    Raises:
        ShapeError: if the shapes do not go together, or there are no rows.
        DTypeError: if labels are no integers; or scores have no axis of classes.
        ArgumentValueError: if there is a NaN among the scores.

    >>> accuracy([[0.1, 0.9], [0.8, 0.2]], [1, 1])
    0.5
    """
    predicted, right = _classes("accuracy", predictions, labels)
    return float(np.mean(predicted == right))


def top_k_accuracy(scores: Values, labels: Values, k: int) -> float:
    """Return the share of the rows whose class is among the k largest scores.

    Of equal scores the class that comes first counts as larger.

    Shape: ``(*Ds, C)`` and ``(*Ds)``.

    Args:
        scores: logits or probabilities.
        labels: the right classes.
        k: how many guesses there are, 1 to `C`.

    Raises:
        ShapeError: if the shapes do not go together, or there are no rows.
        DTypeError: if labels are no integers.
        ArgumentValueError: if there is a NaN among the scores, a label that is no class, or `k`
            is out of its range.

    >>> top_k_accuracy([[0.5, 0.3, 0.2], [0.5, 0.3, 0.2]], [1, 2], k=2)
    0.5
    """
    found, right = _scores("top_k_accuracy", scores), _labels("top_k_accuracy", labels)
    if found.ndim != right.ndim + 1:
        raise _unlike("top_k_accuracy", found, right)
    count = as_size("top_k_accuracy", "k", k, low=1, high=found.shape[-1])
    rows, flat = _rows("top_k_accuracy", found, right)
    _check_range("top_k_accuracy", flat, rows.shape[1])
    best = np.argsort(-rows, axis=1, kind="stable")[:, :count]
    return float(np.mean((best == flat[:, None]).any(axis=1)))


def confusion_matrix(
    predictions: Values, labels: Values, classes: int | None = None
) -> np.ndarray[tuple[int, int], np.dtype[np.int64]]:
    """Return the counts of pairs of classes: rows are right classes, columns predicted ones.

    Args:
        predictions: scores or classes, as for `accuracy`.
        labels: the right classes.
        classes: how many there are; by default as many as the scores have, or the largest number
            that occurs says.

    Raises:
        ShapeError: if the shapes do not go together, or there are no rows.
        DTypeError: if labels are no integers.
        ArgumentValueError: if a class is negative, or not less than `classes`.

    >>> confusion_matrix([0, 1, 1, 1], [0, 0, 1, 1])
    array([[1, 1],
           [0, 2]])
    """
    predicted, right = _classes("confusion_matrix", predictions, labels)
    scores = np.asarray(predictions)
    known = scores.shape[-1] if scores.ndim > np.ndim(np.asarray(labels)) else 0
    most = max(known, int(max(predicted.max(), right.max())) + 1)
    count = most if classes is None else as_size("confusion_matrix", "classes", classes, low=1)
    for one in (predicted, right):
        _check_range("confusion_matrix", one, count)
    pairs = np.bincount(right * count + predicted, minlength=count * count)
    return pairs.astype(np.int64).reshape((count, count))


def precision(predictions: Values, labels: Values, average: Average | int = "macro") -> float:
    """Return the share of the guesses of a class that are right; 0 for a class that is not guessed.

    Args:
        predictions: scores or classes, as for `accuracy`.
        labels: the right classes.
        average: as for `f1`.

    >>> precision([1, 1, 0, 0], [1, 0, 0, 0], average=1)
    0.5
    """
    hits, guessed, there = _counts("precision", predictions, labels)
    return _averaged("precision", hits, guessed, guessed, there, average)


def recall(predictions: Values, labels: Values, average: Average | int = "macro") -> float:
    """Return the share of the rows of a class that are found; 0 for a class of no rows.

    Args:
        predictions: scores or classes, as for `accuracy`.
        labels: the right classes.
        average: as for `f1`.

    >>> recall([1, 0, 0, 0], [1, 1, 0, 0], average=1)
    0.5
    """
    hits, guessed, there = _counts("recall", predictions, labels)
    return _averaged("recall", hits, there, guessed, there, average)


def f1(predictions: Values, labels: Values, average: Average | int = "macro") -> float:
    """Return the harmonic mean of precision and recall; 0 for a class that is never found.

        2 * hits / (guesses + rows)

    Args:
        predictions: scores or classes, as for `accuracy`.
        labels: the right classes.
        average: over the classes that occur: ``"macro"`` takes each alike, ``"weighted"`` by its
            rows, ``"micro"`` counts all together, which is the accuracy; a number is the one class
            that is asked for, 1 for the positive one of two.

    Raises:
        ShapeError: if the shapes do not go together, or there are no rows.
        DTypeError: if labels are no integers.
        ArgumentValueError: if `average` is none of these, or a class is negative.

    Source: van Rijsbergen (1979), "Information Retrieval", chapter 7.

    >>> round(f1([1, 1, 0, 0], [1, 0, 0, 0], average=1), 3)
    0.667
    """
    hits, guessed, there = _counts("f1", predictions, labels)
    return _averaged("f1", 2 * hits, guessed + there, guessed, there, average)


def roc_auc(scores: Values, labels: Values) -> float:
    """Return the area under the ROC curve: how often a positive row has the larger score.

    Equal scores count one half.

    Shape: ``(N,)`` and ``(N,)``.

    Args:
        scores: larger for rows that are more likely to be positive: logits or probabilities.
        labels: 1 or True for a positive row, 0 or False for a negative one.

    Raises:
        ShapeError: if the shapes differ or there is not one axis.
        DTypeError: if labels are no integers.
        ArgumentValueError: if there is a NaN among the scores, a label that is neither 0 nor 1, or
            one class only, of which there is no curve.

    Source: Hanley & McNeil (1982), "The meaning and use of the area under a ROC curve".

    >>> roc_auc([0.1, 0.4, 0.35, 0.8], [0, 0, 1, 1])
    0.75
    """
    found, right = _scores("roc_auc", scores), _labels("roc_auc", labels)
    if found.ndim != 1 or found.shape != right.shape:
        raise ShapeError(
            f"roc_auc: scores and labels are both of shape (N,), got {found.shape} and "
            f"{right.shape}; of two columns take the second, scores[:, 1]"
        )
    _check_range("roc_auc", right, 2)
    positives = int(right.sum())
    negatives = right.size - positives
    if not positives or not negatives:
        raise ArgumentValueError(
            f"roc_auc: needs rows of both classes, got {positives} positive and {negatives} "
            "negative ones"
        )
    _, places, counts = np.unique(found, return_inverse=True, return_counts=True)
    ends = np.cumsum(counts)
    ranks = (ends - (counts - 1) / 2.0)[places]
    above = float(ranks[right == 1].sum()) - positives * (positives + 1) / 2
    return above / (positives * negatives)


def r2(predictions: Values, targets: Values) -> float:
    """Return the share of the variance of the targets that the predictions explain.

        1 - sum((target - prediction)**2) / sum((target - mean(target))**2)

    1 for a perfect fit, 0 for one that is no better than the mean. Of several columns the mean.

    Shape: ``(N,)`` and ``(N,)``, or ``(N, K)`` and ``(N, K)``.

    Args:
        predictions: the output of the model.
        targets: the right output.

    Raises:
        ShapeError: if the shapes differ, or there are fewer than two rows.
        ArgumentValueError: if there is a NaN, or the targets of a column are all equal, whose
            variance is 0.

    >>> r2([1.0, 2.0, 4.0], [1.0, 2.0, 3.0])
    0.5
    """
    found, right = _scores("r2", predictions), _scores("r2", targets)
    if found.shape != right.shape or found.ndim not in (1, 2):
        raise ShapeError(
            f"r2: predictions and targets are both of shape (N,) or (N, K), got {found.shape} and "
            f"{right.shape}"
        )
    if len(found) < 2:
        raise ShapeError(f"r2: needs two rows or more, got {len(found)}")
    total = np.square(right - right.mean(axis=0)).sum(axis=0)
    if not np.all(total):
        raise ArgumentValueError(
            "r2: the targets are all equal, so there is no variance to explain"
        )
    return float(np.mean(1.0 - np.square(right - found).sum(axis=0) / total))


def _scores(op: str, values: Values) -> _Floats:
    found = np.asarray(values)
    if found.dtype.kind not in "fiub":
        raise DTypeError(f"{op}: expected numbers, got {found.dtype}")
    if np.isnan(found).any():
        raise ArgumentValueError(f"{op}: there is a NaN among the numbers")
    return found.astype(np.float64)


def _labels(op: str, values: Values) -> _Integers:
    found = np.asarray(values)
    if found.dtype.kind not in "iub":
        raise DTypeError(
            f"{op}: labels and classes must be integers or bools, got {found.dtype}; of scores of "
            "two classes write scores > 0.5, of logits logits > 0.0"
        )
    return found.astype(np.int64)


def _classes(op: str, predictions: Values, labels: Values) -> tuple[_Integers, _Integers]:
    """Return what was predicted and what is right, each along one axis."""
    right = _labels(op, labels)
    given = np.asarray(predictions)
    if given.ndim == right.ndim + 1:
        rows, flat = _rows(op, _scores(op, predictions), right)
        return rows.argmax(axis=1), flat
    found = _labels(op, predictions)
    if found.shape != right.shape:
        raise _unlike(op, found, right)
    if not right.size:
        raise ShapeError(f"{op}: there are no rows")
    return found.reshape(-1), right.reshape(-1)


def _rows(op: str, scores: _Floats, labels: _Integers) -> tuple[_Floats, _Integers]:
    if scores.shape[:-1] != labels.shape:
        raise _unlike(op, scores, labels)
    if not scores.size:
        raise ShapeError(f"{op}: there are no rows")
    return scores.reshape((-1, scores.shape[-1])), labels.reshape(-1)


def _unlike(op: str, predictions: Any, labels: _Integers) -> ShapeError:
    return ShapeError(
        f"{op}: scores of shape (*Ds, C) or classes of shape (*Ds) go with labels of shape (*Ds), "
        f"got {predictions.shape} and {labels.shape}"
    )


def _check_range(op: str, classes: _Integers, count: int) -> None:
    if classes.size and not 0 <= classes.min() <= classes.max() < count:
        raise ArgumentValueError(
            f"{op}: classes are 0 to {count - 1}, found {classes.min()} to {classes.max()}"
        )


def _counts(op: str, predictions: Values, labels: Values) -> tuple[_Integers, _Integers, _Integers]:
    """Return for each class how many rows were found, guessed and there."""
    predicted, right = _classes(op, predictions, labels)
    count = int(max(predicted.max(), right.max())) + 1
    for one in (predicted, right):
        _check_range(op, one, count)
    found, guessed, there = (
        np.bincount(one, minlength=count) for one in (right[predicted == right], predicted, right)
    )
    return found, guessed, there


def _averaged(
    op: str,
    parts: _Integers,
    wholes: _Integers,
    guessed: _Integers,
    there: _Integers,
    average: Average | int,
) -> float:
    """Return the shares of the classes as one number; a share of nothing is 0."""
    if isinstance(average, int | np.integer) and not isinstance(average, bool):
        asked = as_size(op, "average", average)
        return float(parts[asked] / wholes[asked]) if asked < len(wholes) and wholes[asked] else 0.0
    check_choice(op, "average", average, ("macro", "weighted", "micro"))
    if average == "micro":
        return float(parts.sum() / wholes.sum())
    shares = parts / np.maximum(wholes, 1)
    weights = there if average == "weighted" else (guessed + there > 0).astype(np.int64)
    return float((shares * weights).sum() / weights.sum())


M_contra = TypeVar("M_contra", contravariant=True)
Batch_contra = TypeVar("Batch_contra", contravariant=True)


class Pooled(Generic[M_contra, Batch_contra]):
    """A metric of the rows of all batches together, for `fit` and `evaluate`.

    Several that share one `outputs` have the model run once for each batch.

    Args:
        score: a function of this module, or one of your own: of predictions and labels, as arrays
            of all rows, to a number.
        outputs: function of model and batch that returns predictions and labels of the batch.

    Raises:
        ArgumentTypeError: if one is no such function.

    >>> import numpy as np
    >>> import tapetensor as tt
    >>> from tapetensor import metrics, nn, training
    >>> from tapetensor.data import batches
    >>> def outputs(model, batch):
    ...     x, labels = batch
    ...     return model.forward(x), labels
    >>> model = nn.Linear(2, 2, rng=np.random.default_rng(0))
    >>> x, labels = tt.eye(2), tt.arange(2)
    >>> model.weight, model.bias = tt.eye(2), tt.zeros((2,))
    >>> scores = {"f1": metrics.Pooled(metrics.f1, outputs)}
    >>> training.evaluate(model, scores, batches(x, labels, size=1))
    {'f1': 1.0}
    """

    def __init__(
        self,
        score: Callable[[Any, Any], float],
        outputs: Callable[[M_contra, Batch_contra], tuple[Values, Values]],
    ) -> None:
        check_function("Pooled", "score", score, ("predictions", "labels"))
        check_function("Pooled", "outputs", outputs, ("model", "batch"))
        self.score = score
        self.outputs = outputs

    def __call__(self, model: M_contra, batch: Batch_contra) -> float:
        """Return the score of one batch."""
        return float(self.score(*self.rows(model, batch)))

    def rows(self, model: M_contra, batch: Batch_contra) -> tuple[Any, Any]:
        """Return predictions and labels of one batch as arrays.

        Raises:
            ArgumentTypeError: if `outputs` returns anything but a pair.
        """
        found: object = self.outputs(model, batch)
        if not isinstance(found, tuple) or len(found) != 2:
            raise ArgumentTypeError(
                "Pooled: outputs must return predictions and labels, a tuple of two, got "
                f"{type(found).__name__}"
            )
        predictions, labels = found
        return np.asarray(predictions), np.asarray(labels)
