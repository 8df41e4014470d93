"""Losses of distributions: over classes, or of yes and no."""

from __future__ import annotations

from typing import Any, Literal, overload

from tapetensor.arguments import as_int, as_number
from tapetensor.kernels import losses
from tapetensor.losses.checks import (
    as_reduction,
    check_alike,
    check_between,
    check_labels_of,
    check_weights,
    classes_last,
)
from tapetensor.tape import NoneTape
from tapetensor.tensor.apply import apply
from tapetensor.tensor.creation import zeros_beside
from tapetensor.tensor.indexing import I
from tapetensor.tensor.tensor import Joins, Tensor, Tensor0D
from tapetensor.typing import B, Ds, F, N, S, T


@overload
def cross_entropy(
    logits: Tensor[tuple[*Ds, N], T, F],
    labels: Tensor[tuple[*Ds], NoneTape, I],
    *,
    axis: Literal[-1] = -1,
    class_weights: Tensor[tuple[N], NoneTape, F] | None = None,
    label_smoothing: float = 0.0,
    ignore_index: int | None = None,
    reduction: Literal["mean", "sum"] = "mean",
) -> Tensor0D[T, F]: ...
@overload
def cross_entropy(
    logits: Tensor[tuple[*Ds, N], T, F],
    labels: Tensor[tuple[*Ds], NoneTape, I],
    *,
    axis: Literal[-1] = -1,
    class_weights: Tensor[tuple[N], NoneTape, F] | None = None,
    label_smoothing: float = 0.0,
    ignore_index: int | None = None,
    reduction: Literal["none"],
) -> Tensor[tuple[*Ds], T, F]: ...
@overload
def cross_entropy(
    logits: Tensor[tuple[B, N, *Ds], T, F],
    labels: Tensor[tuple[B, *Ds], NoneTape, I],
    *,
    axis: Literal[1],
    class_weights: Tensor[tuple[N], NoneTape, F] | None = None,
    label_smoothing: float = 0.0,
    ignore_index: int | None = None,
    reduction: Literal["mean", "sum"] = "mean",
) -> Tensor0D[T, F]: ...
@overload
def cross_entropy(
    logits: Tensor[tuple[B, N, *Ds], T, F],
    labels: Tensor[tuple[B, *Ds], NoneTape, I],
    *,
    axis: Literal[1],
    class_weights: Tensor[tuple[N], NoneTape, F] | None = None,
    label_smoothing: float = 0.0,
    ignore_index: int | None = None,
    reduction: Literal["none"],
) -> Tensor[tuple[B, *Ds], T, F]: ...
def cross_entropy(
    logits: Tensor[Any, Any, Any],
    labels: Tensor[Any, Any, Any],
    *,
    axis: int = -1,
    class_weights: Tensor[Any, Any, Any] | None = None,
    label_smoothing: float = 0.0,
    ignore_index: int | None = None,
    reduction: Literal["mean", "sum", "none"] = "mean",
) -> Tensor[Any, Any, Any]:
    """Return the cross entropy between class labels and the softmax of logits.

        mean(-log_softmax(logits)[label]),  or with weights w, smoothing s and N classes
        sum(-q * log_softmax(logits)) / sum(w[label]),  q = w * ((1 - s) * one_hot(label) + s / N)

    Shape: ``(*Ds, N), (*Ds) -> ()``; ``(*Ds)`` with ``reduction="none"``. With ``axis=1``
        ``(B, N, *Ds), (B, *Ds) -> ()``, or ``(B, *Ds)``, as PyTorch's of images and sequences.
    Derivative: ``(softmax(logits) - one_hot(labels)) / n`` for `n` labels; with weights and
        smoothing ``(softmax(logits) * sum(q) - q) / sum(w[label])``.

    Args:
        logits: one score per class along the last axis, in natural-log units; finite at any size.
        labels: the right classes, plain integers from 0 to ``N - 1``.
        axis: the axis of the classes: the last axis, or 1.
        class_weights: how much each class counts, >= 0; the mean is divided by the sum of the
            weights of the labels, as PyTorch's.
        label_smoothing: the share of a label that is spread over all classes alike, in [0, 1].
        ignore_index: a label that is left out, such as that of padding; None for no such label.
            Its row has the derivative 0. If no label is left, the mean is NaN, as in PyTorch, and
            every derivative 0.
        reduction: "mean", "sum", or "none" for the loss of each label.

    Raises:
        ShapeError: if `labels` do not have the leading shape of `logits`, or there are none.
        DTypeError: if `logits` are not floating or `labels` not integers.
        AxisError: if a label is not a class.
        UntracedTensorError: if `labels` or `class_weights` own a tape.
        ArgumentValueError: if `reduction` is none of the three, or `label_smoothing` no share.
        ArgumentTypeError: if an argument is of the wrong kind.

    Source: Goodfellow, Bengio & Courville (2016), "Deep learning", section 6.2.2.3; label smoothing
        is Szegedy et al. (2016), "Rethinking the inception architecture for computer vision".

    >>> import numpy as np
    >>> import tapetensor as tt
    >>> logits = tt.from_numpy([[2.0, 2.0], [1000.0, 0.0]], shape=(2, 2))
    >>> cross_entropy(logits, tt.from_numpy([1, 0], shape=(2,), dtype=np.int64))
    Tensor(0.3465736, shape=(), dtype=float32, NoneTape)
    """
    op, other = "cross_entropy", "cross_entropy_with_probabilities"
    ignored = None if ignore_index is None else as_int(op, "ignore_index", ignore_index)
    place = check_labels_of(op, logits, labels, "logits", other, ignored, axis)
    how = as_reduction(op, reduction)
    if class_weights is None and ignored is None and label_smoothing == 0:
        rows = classes_last(logits, place)
        return apply(losses.cross_entropy, (rows, labels), (how,), keeps_dtype=False)
    smoothing = as_number(op, "label_smoothing", label_smoothing, at_least=0, at_most=1)
    weights = _weights_of(op, logits, place, class_weights)
    options = smoothing, ignored, how
    operands = classes_last(logits, place), labels, weights
    return apply(losses.weighted_cross_entropy, operands, options, keeps_dtype=False)


@overload
def nll(
    log_probabilities: Tensor[tuple[*Ds, N], T, F],
    labels: Tensor[tuple[*Ds], NoneTape, I],
    *,
    axis: Literal[-1] = -1,
    class_weights: Tensor[tuple[N], NoneTape, F] | None = None,
    ignore_index: int | None = None,
    reduction: Literal["mean", "sum"] = "mean",
) -> Tensor0D[T, F]: ...
@overload
def nll(
    log_probabilities: Tensor[tuple[*Ds, N], T, F],
    labels: Tensor[tuple[*Ds], NoneTape, I],
    *,
    axis: Literal[-1] = -1,
    class_weights: Tensor[tuple[N], NoneTape, F] | None = None,
    ignore_index: int | None = None,
    reduction: Literal["none"],
) -> Tensor[tuple[*Ds], T, F]: ...
@overload
def nll(
    log_probabilities: Tensor[tuple[B, N, *Ds], T, F],
    labels: Tensor[tuple[B, *Ds], NoneTape, I],
    *,
    axis: Literal[1],
    class_weights: Tensor[tuple[N], NoneTape, F] | None = None,
    ignore_index: int | None = None,
    reduction: Literal["mean", "sum"] = "mean",
) -> Tensor0D[T, F]: ...
@overload
def nll(
    log_probabilities: Tensor[tuple[B, N, *Ds], T, F],
    labels: Tensor[tuple[B, *Ds], NoneTape, I],
    *,
    axis: Literal[1],
    class_weights: Tensor[tuple[N], NoneTape, F] | None = None,
    ignore_index: int | None = None,
    reduction: Literal["none"],
) -> Tensor[tuple[B, *Ds], T, F]: ...
def nll(
    log_probabilities: Tensor[Any, Any, Any],
    labels: Tensor[Any, Any, Any],
    *,
    axis: int = -1,
    class_weights: Tensor[Any, Any, Any] | None = None,
    ignore_index: int | None = None,
    reduction: Literal["mean", "sum", "none"] = "mean",
) -> Tensor[Any, Any, Any]:
    """Return the negative log-likelihood of class labels.

        mean(-log_probabilities[label]),  or with weights w
        sum(-w[label] * log_probabilities[label]) / sum(w[label])

    ``nll(logits.log_softmax(), labels)`` is ``cross_entropy(logits, labels)``.

    Shape: ``(*Ds, N), (*Ds) -> ()``; ``(*Ds)`` with ``reduction="none"``. With ``axis=1``
        ``(B, N, *Ds), (B, *Ds) -> ()``, or ``(B, *Ds)``.
    Derivative: ``-one_hot(labels) / n`` for `n` labels; with weights
        ``-w[label] * one_hot(labels) / sum(w[label])``.

    Args:
        log_probabilities: natural logarithms, one per class along the last axis.
        labels: the right classes, plain integers from 0 to ``N - 1``.
        axis: the axis of the classes: the last axis, or 1.
        class_weights: how much each class counts, plain numbers; the mean is over the weights of
            the labels, as PyTorch's.
        ignore_index: a label that is left out, such as that of padding; None for no such label.
            Its row has the derivative 0. If no label is left, the mean is NaN, as in PyTorch, and
            every derivative 0.
        reduction: "mean", "sum", or "none" for the loss of each label.

    Raises:
        ShapeError: if `labels` do not have the leading shape of `log_probabilities`, or there are
            none.
        DTypeError: if `log_probabilities` are not floating or `labels` not integers.
        AxisError: if a label is not a class.
        UntracedTensorError: if `labels` or `class_weights` own a tape.
        ArgumentValueError: if `reduction` is not one of the three.
        ArgumentTypeError: if an argument is of the wrong kind.

    Source: Goodfellow, Bengio & Courville (2016), "Deep learning", section 5.5.

    >>> import numpy as np
    >>> import tapetensor as tt
    >>> scores = tt.from_numpy([[-2.0, -0.5], [-1.0, -3.0]], shape=(2, 2))
    >>> nll(scores, tt.from_numpy([1, 0], shape=(2,), dtype=np.int64))
    Tensor(0.75, shape=(), dtype=float32, NoneTape)
    """
    scores, name = log_probabilities, "log_probabilities"
    ignored = None if ignore_index is None else as_int("nll", "ignore_index", ignore_index)
    place = check_labels_of("nll", scores, labels, name, "kl_div", ignored, axis)
    how = as_reduction("nll", reduction)
    if class_weights is None and ignored is None:
        rows = classes_last(scores, place)
        return apply(losses.nll, (rows, labels), (how,), keeps_dtype=False)
    weights = _weights_of("nll", scores, place, class_weights)
    operands = classes_last(scores, place), labels, weights
    return apply(losses.weighted_nll, operands, (ignored, how), keeps_dtype=False)


def _weights_of(op: str, scores: Any, place: int, class_weights: Any) -> Tensor[Any, Any, Any]:
    """Return the weights of the classes, 1 for each where none are given."""
    classes = (scores._array.shape[place],)
    weights = zeros_beside(scores, classes) + 1 if class_weights is None else class_weights
    check_weights(op, "class_weights", weights, scores, classes)
    return weights


@overload
def cross_entropy_with_probabilities(
    logits: Tensor[tuple[*Ds, N], T, F],
    probabilities: Joins[tuple[*Ds, N], T, F],
    *,
    reduction: Literal["mean", "sum"] = "mean",
) -> Tensor0D[T, F]: ...
@overload
def cross_entropy_with_probabilities(
    logits: Tensor[tuple[*Ds, N], T, F],
    probabilities: Joins[tuple[*Ds, N], T, F],
    *,
    reduction: Literal["none"],
) -> Tensor[tuple[*Ds], T, F]: ...
def cross_entropy_with_probabilities(
    logits: Tensor[Any, Any, Any],
    probabilities: Tensor[Any, Any, Any],
    *,
    reduction: Literal["mean", "sum", "none"] = "mean",
) -> Tensor[Any, Any, Any]:
    """Return the cross entropy between distributions and the softmax of logits.

        mean over rows of -sum(p * log_softmax(logits))

    Shape: ``(*Ds, N), (*Ds, N) -> ()``; ``(*Ds)`` with ``reduction="none"``.
    Derivative: ``(softmax(logits) * sum(p) - p) / n`` for `n` rows;
        ``-log_softmax(logits) / n`` for `probabilities`.

    Args:
        logits: one score per class along the last axis, in natural-log units; finite at any size.
        probabilities: a distribution along the last axis. It is not checked to sum to 1; where it
            is 0 nothing is counted, whatever the logit.
        reduction: "mean", "sum", or "none" for the loss of each row.

    Raises:
        ShapeError: if the shapes differ, or there are no rows or no classes.
        DTypeError: if the dtypes differ or are not floating.
        ArgumentValueError: if `reduction` is not one of the three.

    Source: Goodfellow, Bengio & Courville (2016), "Deep learning", section 3.13.

    >>> import tapetensor as tt
    >>> cross_entropy_with_probabilities(tt.zeros((1, 2)), tt.full((1, 2), 0.5))
    Tensor(0.6931472, shape=(), dtype=float32, NoneTape)
    """
    op = "cross_entropy_with_probabilities"
    check_alike(op, 1, logits=logits, probabilities=probabilities)
    options = (as_reduction(op, reduction),)
    return apply(losses.cross_entropy_with_probabilities, (logits, probabilities), options)


@overload
def binary_cross_entropy(
    predictions: Tensor[S, T, F],
    probabilities: Joins[S, T, F],
    *,
    reduction: Literal["mean", "sum"] = "mean",
) -> Tensor0D[T, F]: ...
@overload
def binary_cross_entropy(
    predictions: Tensor[S, T, F],
    probabilities: Joins[S, T, F],
    *,
    reduction: Literal["none"],
) -> Tensor[S, T, F]: ...
def binary_cross_entropy(
    predictions: Tensor[Any, Any, Any],
    probabilities: Tensor[Any, Any, Any],
    *,
    reduction: Literal["mean", "sum", "none"] = "mean",
) -> Tensor[Any, Any, Any]:
    """Return the cross entropy between probabilities of yes and predicted ones.

        mean(-p * log(q) - (1 - p) * log(1 - q)),  logarithms at least -100

    As PyTorch's. `binary_cross_entropy_with_logits` keeps the accuracy that a sigmoid loses.

    Shape: ``S, S -> ()``; ``S`` with ``reduction="none"``.
    Derivative: ``(q - p) / (q * (1 - q)) / n`` for `n` elements, the product at least 1e-12;
        ``(log(1 - q) - log(q)) / n`` for `probabilities`.

    Args:
        predictions: the predicted probabilities, in [0, 1].
        probabilities: the right probabilities, in [0, 1], which is not checked.
        reduction: "mean", "sum", or "none" for the loss of each element.

    Raises:
        ShapeError: if the shapes differ, or there are no elements.
        DTypeError: if the dtypes differ or are not floating.
        ArgumentValueError: if a prediction is no probability.

    Source: Goodfellow, Bengio & Courville (2016), "Deep learning", section 6.2.2.2.

    >>> import tapetensor as tt
    >>> binary_cross_entropy(tt.full((1,), 0.5), tt.ones((1,)))
    Tensor(0.6931472, shape=(), dtype=float32, NoneTape)
    """
    check_alike("binary_cross_entropy", predictions=predictions, probabilities=probabilities)
    cure = "; for scores use binary_cross_entropy_with_logits"
    check_between("binary_cross_entropy", predictions, "predictions", 0, 1, cure)
    options = (as_reduction("binary_cross_entropy", reduction),)
    return apply(losses.binary_cross_entropy, (predictions, probabilities), options)


@overload
def binary_cross_entropy_with_logits(
    logits: Tensor[S, T, F],
    probabilities: Joins[S, T, F],
    *,
    pos_weight: Tensor[Any, NoneTape, F] | None = None,
    reduction: Literal["mean", "sum"] = "mean",
) -> Tensor0D[T, F]: ...
@overload
def binary_cross_entropy_with_logits(
    logits: Tensor[S, T, F],
    probabilities: Joins[S, T, F],
    *,
    pos_weight: Tensor[Any, NoneTape, F] | None = None,
    reduction: Literal["none"],
) -> Tensor[S, T, F]: ...
def binary_cross_entropy_with_logits(
    logits: Tensor[Any, Any, Any],
    probabilities: Tensor[Any, Any, Any],
    *,
    pos_weight: Tensor[Any, Any, Any] | None = None,
    reduction: Literal["mean", "sum", "none"] = "mean",
) -> Tensor[Any, Any, Any]:
    """Return the cross entropy between probabilities of yes and the sigmoid of logits.

        mean(-p * log(sigmoid(l)) - (1 - p) * log(1 - sigmoid(l)))
        = mean(max(l, 0) - l * p + log(1 + exp(-abs(l))))

    Shape: ``S, S -> ()``; ``S`` with ``reduction="none"``.
    Derivative: ``(sigmoid(l) - p) / n`` for `n` elements; ``-l / n`` for `probabilities`.
        `pos_weight` is a constant: to ask for its gradient is an error.

    Args:
        logits: scores in natural-log units; finite at any size.
        probabilities: in [0, 1], which is not checked.
        pos_weight: how much a yes counts, a number in a 0-d tensor or one for each element of the
            last axis; a no counts 1.
        reduction: "mean", "sum", or "none" for the loss of each element.

    Raises:
        ShapeError: if the shapes differ, or there are no elements.
        DTypeError: if the dtypes differ or are not floating.
        ArgumentValueError: if `reduction` is not one of the three.

    Source: Goodfellow, Bengio & Courville (2016), "Deep learning", section 6.2.2.2.

    >>> import tapetensor as tt
    >>> binary_cross_entropy_with_logits(tt.zeros((1,)), tt.ones((1,)))
    Tensor(0.6931472, shape=(), dtype=float32, NoneTape)
    """
    op = "binary_cross_entropy_with_logits"
    check_alike(op, logits=logits, probabilities=probabilities)
    options = (as_reduction(op, reduction),)
    if pos_weight is None:
        return apply(losses.binary_cross_entropy_with_logits, (logits, probabilities), options)
    check_weights(op, "pos_weight", pos_weight, logits, logits._array.shape[-1:])
    operands = logits, probabilities, pos_weight
    return apply(losses.weighted_binary_cross_entropy, operands, options)


@overload
def kl_div(
    logits: Tensor[tuple[*Ds, N], T, F],
    probabilities: Joins[tuple[*Ds, N], T, F],
    *,
    reduction: Literal["mean", "sum"] = "mean",
) -> Tensor0D[T, F]: ...
@overload
def kl_div(
    logits: Tensor[tuple[*Ds, N], T, F],
    probabilities: Joins[tuple[*Ds, N], T, F],
    *,
    reduction: Literal["none"],
) -> Tensor[tuple[*Ds], T, F]: ...
def kl_div(
    logits: Tensor[Any, Any, Any],
    probabilities: Tensor[Any, Any, Any],
    *,
    reduction: Literal["mean", "sum", "none"] = "mean",
) -> Tensor[Any, Any, Any]:
    """Return the Kullback-Leibler divergence of the softmax of logits from distributions.

        mean over rows of sum(p * (log(p) - log_softmax(logits))),  0 * log(0) = 0

    Shape: ``(*Ds, N), (*Ds, N) -> ()``; ``(*Ds)`` with ``reduction="none"``.
    Derivative: ``(softmax(logits) * sum(p) - p) / n`` for `n` rows;
        ``(log p + 1 - log_softmax(logits)) / n`` for `probabilities`, without the first two terms
        where `p` is 0.

    Args:
        logits: one score per class along the last axis, in natural-log units; finite at any size.
        probabilities: a distribution along the last axis. It is not checked to sum to 1; where it
            is 0 nothing is counted, whatever the logit.
        reduction: "mean", "sum", or "none" for the divergence of each row.

    Raises:
        ShapeError: if the shapes differ, or there are no rows or no classes.
        DTypeError: if the dtypes differ or are not floating.
        ArgumentValueError: if `reduction` is not one of the three.

    Source: Kullback & Leibler (1951), "On information and sufficiency".

    >>> import tapetensor as tt
    >>> kl_div(tt.zeros((1, 2)), tt.from_numpy([[0.0, 1.0]], shape=(1, 2)))
    Tensor(0.6931472, shape=(), dtype=float32, NoneTape)
    """
    check_alike("kl_div", 1, logits=logits, probabilities=probabilities)
    return apply(losses.kl_div, (logits, probabilities), (as_reduction("kl_div", reduction),))
