"""Losses of distributions: over classes, or of yes and no."""

from __future__ import annotations

from tapetensor.arrays.stand_ins import plain
from tapetensor.errors import ArgumentValueError
from tapetensor.kernels import losses
from tapetensor.losses.checks import check_labels_of, check_pair
from tapetensor.tape import NoneTape
from tapetensor.tensor.apply import apply
from tapetensor.tensor.indexing import I
from tapetensor.tensor.tensor import Tensor, Tensor0D
from tapetensor.typing import Ds, F, N, S, T


def cross_entropy(
    logits: Tensor[tuple[*Ds, N], T, F], labels: Tensor[tuple[*Ds], NoneTape, I]
) -> Tensor0D[T, F]:
    """Return the cross entropy between class labels and the softmax of logits.

        mean(-log_softmax(logits)[label])

    Shape: ``(*Ds, N), (*Ds) -> ()``.
    Derivative: ``(softmax(logits) - one_hot(labels)) / n`` for `n` labels.
    Tape: the result owns the tape of `logits`, which is then spent.

    Args:
        logits: one score per class along the last axis, in natural-log units; finite at any size.
        labels: the right classes, plain integers from 0 to ``N - 1``.

    Raises:
        ShapeError: if `labels` do not have the leading shape of `logits`, or there are none.
        DTypeError: if `logits` are not floating or `labels` not integers.
        AxisError: if a label is not a class.
        UntracedTensorError: if `labels` own a tape.

    Source: Goodfellow, Bengio & Courville (2016), "Deep learning", section 6.2.2.3.

    >>> import numpy as np
    >>> import tapetensor as tt
    >>> logits = tt.from_numpy([[2.0, 2.0], [1000.0, 0.0]], shape=(2, 2))
    >>> cross_entropy(logits, tt.from_numpy([1, 0], shape=(2,), dtype=np.int64))
    Tensor(0.3465736, shape=(), dtype=float32, NoneTape)
    """
    other = "cross_entropy_with_probabilities"
    check_labels_of("cross_entropy", logits, labels, "logits", other)
    return apply(losses.cross_entropy, (logits, labels), keeps_dtype=False)


def nll(
    log_probabilities: Tensor[tuple[*Ds, N], T, F], labels: Tensor[tuple[*Ds], NoneTape, I]
) -> Tensor0D[T, F]:
    """Return the negative log-likelihood of class labels.

        mean(-log_probabilities[label])

    ``nll(logits.log_softmax(), labels)`` is ``cross_entropy(logits, labels)``.

    Shape: ``(*Ds, N), (*Ds) -> ()``.
    Derivative: ``-one_hot(labels) / n`` for `n` labels.
    Tape: the result owns the tape of `log_probabilities`, which is then spent.

    Args:
        log_probabilities: natural logarithms, one per class along the last axis.
        labels: the right classes, plain integers from 0 to ``N - 1``.

    Raises:
        ShapeError: if `labels` do not have the leading shape of `log_probabilities`, or there are
            none.
        DTypeError: if `log_probabilities` are not floating or `labels` not integers.
        AxisError: if a label is not a class.
        UntracedTensorError: if `labels` own a tape.

    Source: Goodfellow, Bengio & Courville (2016), "Deep learning", section 5.5.

    >>> import numpy as np
    >>> import tapetensor as tt
    >>> scores = tt.from_numpy([[-2.0, -0.5], [-1.0, -3.0]], shape=(2, 2))
    >>> nll(scores, tt.from_numpy([1, 0], shape=(2,), dtype=np.int64))
    Tensor(0.75, shape=(), dtype=float32, NoneTape)
    """
    check_labels_of("nll", log_probabilities, labels, "log_probabilities", "kl_div")
    return apply(losses.nll, (log_probabilities, labels), keeps_dtype=False)


def cross_entropy_with_probabilities(
    logits: Tensor[tuple[*Ds, N], T, F], probabilities: Tensor[tuple[*Ds, N], NoneTape, F]
) -> Tensor0D[T, F]:
    """Return the cross entropy between distributions and the softmax of logits.

        mean over rows of -sum(p * log_softmax(logits))

    Shape: ``(*Ds, N), (*Ds, N) -> ()``.
    Derivative: ``(softmax(logits) * sum(p) - p) / n`` for `n` rows; none for `probabilities`.
    Tape: the result owns the tape of `logits`, which is then spent.

    Args:
        logits: one score per class along the last axis, in natural-log units; finite at any size.
        probabilities: a distribution along the last axis. It is not checked to sum to 1; where it
            is 0 nothing is counted, whatever the logit.

    Raises:
        ShapeError: if the shapes differ, or there are no rows or no classes.
        DTypeError: if the dtypes differ or are not floating.
        UntracedTensorError: if `probabilities` own a tape.

    Source: Goodfellow, Bengio & Courville (2016), "Deep learning", section 3.13.

    >>> import tapetensor as tt
    >>> cross_entropy_with_probabilities(tt.zeros((1, 2)), tt.full((1, 2), 0.5))
    Tensor(0.6931472, shape=(), dtype=float32, NoneTape)
    """
    op = "cross_entropy_with_probabilities"
    check_pair(op, logits, probabilities, "logits", "probabilities", rank=1)
    return apply(losses.cross_entropy_with_probabilities, (logits, probabilities))


def binary_cross_entropy(
    predictions: Tensor[S, T, F], probabilities: Tensor[S, NoneTape, F]
) -> Tensor0D[T, F]:
    """Return the cross entropy between probabilities of yes and predicted ones.

        mean(-p * log(q) - (1 - p) * log(1 - q)),  logarithms at least -100

    As PyTorch's. `binary_cross_entropy_with_logits` keeps the accuracy that a sigmoid loses.

    Shape: ``S, S -> ()``.
    Derivative: ``(q - p) / (q * (1 - q)) / n`` for `n` elements, the product at least 1e-12; none
        for `probabilities`.
    Tape: the result owns the tape of `predictions`, which is then spent.

    Args:
        predictions: what the model says, in [0, 1].
        probabilities: what it should say, in [0, 1], which is not checked.

    Raises:
        ShapeError: if the shapes differ, or there are no elements.
        DTypeError: if the dtypes differ or are not floating.
        UntracedTensorError: if `probabilities` own a tape.
        ArgumentValueError: if a prediction is no probability.

    Source: Goodfellow, Bengio & Courville (2016), "Deep learning", section 6.2.2.2.

    >>> import tapetensor as tt
    >>> binary_cross_entropy(tt.full((1,), 0.5), tt.ones((1,)))
    Tensor(0.6931472, shape=(), dtype=float32, NoneTape)
    """
    check_pair("binary_cross_entropy", predictions, probabilities, "predictions", "probabilities")
    values = plain(predictions.array)
    lowest, highest = values.min(), values.max()
    if not 0 <= lowest <= highest <= 1:
        raise ArgumentValueError(
            "binary_cross_entropy: predictions must be in [0, 1], "
            f"found {lowest:g} to {highest:g}; for scores use binary_cross_entropy_with_logits"
        )
    return apply(losses.binary_cross_entropy, (predictions, probabilities))


def binary_cross_entropy_with_logits(
    logits: Tensor[S, T, F], probabilities: Tensor[S, NoneTape, F]
) -> Tensor0D[T, F]:
    """Return the cross entropy between probabilities of yes and the sigmoid of logits.

        mean(-p * log(sigmoid(l)) - (1 - p) * log(1 - sigmoid(l)))
        = mean(max(l, 0) - l * p + log(1 + exp(-abs(l))))

    Shape: ``S, S -> ()``.
    Derivative: ``(sigmoid(l) - p) / n`` for `n` elements; none for `probabilities`.
    Tape: the result owns the tape of `logits`, which is then spent.

    Args:
        logits: scores in natural-log units; finite at any size.
        probabilities: in [0, 1], which is not checked.

    Raises:
        ShapeError: if the shapes differ, or there are no elements.
        DTypeError: if the dtypes differ or are not floating.
        UntracedTensorError: if `probabilities` own a tape.

    Source: Goodfellow, Bengio & Courville (2016), "Deep learning", section 6.2.2.2.

    >>> import tapetensor as tt
    >>> binary_cross_entropy_with_logits(tt.zeros((1,)), tt.ones((1,)))
    Tensor(0.6931472, shape=(), dtype=float32, NoneTape)
    """
    op = "binary_cross_entropy_with_logits"
    check_pair(op, logits, probabilities, "logits", "probabilities")
    return apply(losses.binary_cross_entropy_with_logits, (logits, probabilities))


def kl_div(
    logits: Tensor[tuple[*Ds, N], T, F], probabilities: Tensor[tuple[*Ds, N], NoneTape, F]
) -> Tensor0D[T, F]:
    """Return the Kullback-Leibler divergence of the softmax of logits from distributions.

        mean over rows of sum(p * (log(p) - log_softmax(logits))),  0 * log(0) = 0

    Shape: ``(*Ds, N), (*Ds, N) -> ()``.
    Derivative: ``(softmax(logits) * sum(p) - p) / n`` for `n` rows; none for `probabilities`.
    Tape: the result owns the tape of `logits`, which is then spent.

    Args:
        logits: one score per class along the last axis, in natural-log units; finite at any size.
        probabilities: a distribution along the last axis. It is not checked to sum to 1; where it
            is 0 nothing is counted, whatever the logit.

    Raises:
        ShapeError: if the shapes differ, or there are no rows or no classes.
        DTypeError: if the dtypes differ or are not floating.
        UntracedTensorError: if `probabilities` own a tape.

    Source: Kullback & Leibler (1951), "On information and sufficiency".

    >>> import tapetensor as tt
    >>> kl_div(tt.zeros((1, 2)), tt.from_numpy([[0.0, 1.0]], shape=(1, 2)))
    Tensor(0.6931472, shape=(), dtype=float32, NoneTape)
    """
    check_pair("kl_div", logits, probabilities, "logits", "probabilities", rank=1)
    return apply(losses.kl_div, (logits, probabilities))
