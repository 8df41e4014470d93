"""Losses: how far a prediction is from its target, as a scalar to run `backward` on.

The prediction may own a tape, which the loss takes over. The target is a constant: it must be a
plain value, and no gradient flows to it. All losses are means, so that their size does not depend
on the batch, and a loss over no elements, which would be NaN, is refused.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tapetensor.errors import (
    ArgumentTypeError,
    ArgumentValueError,
    ShapeError,
    UntracedTensorError,
)
from tapetensor.kernels import losses
from tapetensor.tape import NoneTape
from tapetensor.tensor.apply import apply
from tapetensor.tensor.base import (
    TensorBase,
    check_floating,
    check_not_spent,
    check_same_dtype,
    check_tensor,
    tape_state,
)
from tapetensor.tensor.indexing import I
from tapetensor.tensor.labels import check_labels
from tapetensor.tensor.tensor import Tensor, Tensor0D
from tapetensor.typing import Ds, F, N, S, T


def mse(prediction: Tensor[S, T, F], target: Tensor[S, NoneTape, F]) -> Tensor0D[T, F]:
    """Return the mean squared error.

        mean((prediction - target)**2)

    Shape: ``S, S -> ()``.
    Derivative: ``2 * (prediction - target) / n`` for `n` elements; none for `target`.
    Tape: the result owns the tape of `prediction`, which is then spent.

    Args:
        prediction: what the model says.
        target: what it should say, a plain value of the same shape and dtype.

    Raises:
        ShapeError: if the shapes differ, or there are no elements.
        DTypeError: if the dtypes differ or are not floating.
        UntracedTensorError: if `target` owns a tape.

    >>> import tapetensor as tt
    >>> mse(tt.from_numpy([1.0, 4.0], shape=(2,)), tt.from_numpy([1.0, 2.0], shape=(2,)))
    Tensor(2., shape=(), dtype=float32, NoneTape)
    """
    _check_pair("mse", prediction, target)
    return apply(losses.mse, (prediction, target))


def mae(prediction: Tensor[S, T, F], target: Tensor[S, NoneTape, F]) -> Tensor0D[T, F]:
    """Return the mean absolute error.

        mean(abs(prediction - target))

    Shape: ``S, S -> ()``.
    Derivative: ``sign(prediction - target) / n`` for `n` elements, 0 where the two are equal;
        none for `target`.
    Tape: the result owns the tape of `prediction`, which is then spent.

    Args:
        prediction: what the model says.
        target: what it should say, a plain value of the same shape and dtype.

    Raises:
        ShapeError: if the shapes differ, or there are no elements.
        DTypeError: if the dtypes differ or are not floating.
        UntracedTensorError: if `target` owns a tape.

    >>> import tapetensor as tt
    >>> mae(tt.from_numpy([1.0, 4.0], shape=(2,)), tt.from_numpy([1.0, 2.0], shape=(2,)))
    Tensor(1., shape=(), dtype=float32, NoneTape)
    """
    _check_pair("mae", prediction, target)
    return apply(losses.mae, (prediction, target))


def huber(
    prediction: Tensor[S, T, F], target: Tensor[S, NoneTape, F], delta: float = 1.0
) -> Tensor0D[T, F]:
    """Return the Huber loss: squared for small errors, linear for large ones.

        mean(d**2 / 2 where abs(d) <= delta else delta * (abs(d) - delta / 2)),
        d = prediction - target

    Shape: ``S, S -> ()``.
    Derivative: ``clip(d, -delta, delta) / n`` for `n` elements, the same from both sides where
        ``abs(d) == delta``; none for `target`.
    Tape: the result owns the tape of `prediction`, which is then spent.

    Args:
        prediction: what the model says.
        target: what it should say, a plain value of the same shape and dtype.
        delta: where the loss turns linear, > 0 and finite.

    Raises:
        ShapeError: if the shapes differ, or there are no elements.
        DTypeError: if the dtypes differ or are not floating.
        UntracedTensorError: if `target` owns a tape.
        ArgumentValueError: if `delta` is not positive and finite.
        ArgumentTypeError: if `delta` is not a number.

    Source: Huber (1964), "Robust estimation of a location parameter".

    >>> import tapetensor as tt
    >>> huber(tt.from_numpy([1.0, 5.0], shape=(2,)), tt.from_numpy([0.0, 2.0], shape=(2,)))
    Tensor(1.5, shape=(), dtype=float32, NoneTape)
    """
    if isinstance(delta, bool) or not isinstance(delta, int | float | np.integer | np.floating):
        raise ArgumentTypeError(f"huber: delta must be a number, got {delta!r}")
    if not 0 < delta < math.inf:
        raise ArgumentValueError(f"huber: delta must be > 0 and finite, got {delta!r}")
    _check_pair("huber", prediction, target)
    return apply(losses.huber, (prediction, target), (float(delta),))


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

    >>> import tapetensor as tt
    >>> logits = tt.from_numpy([[2.0, 2.0], [1000.0, 0.0]], shape=(2, 2))
    >>> cross_entropy(logits, tt.from_numpy([1, 0], shape=(2,), dtype=np.int64))
    Tensor(0.3465736, shape=(), dtype=float32, NoneTape)
    """
    _check_target("cross_entropy", logits, labels, "labels")
    shape = logits._data.shape
    if not shape or labels._data.shape != shape[:-1] or logits._data.size == 0:
        raise ShapeError(
            f"cross_entropy: logits of shape {shape} and labels of shape {labels._data.shape} "
            "do not fit; logits (*Ds, N) go with labels (*Ds), and there is at least one"
        )
    check_labels(
        "cross_entropy",
        labels,
        shape[-1],
        "for targets that are probabilities use cross_entropy_with_probabilities",
    )
    return apply(losses.cross_entropy, (logits, labels), keeps_dtype=False)


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
    _check_pair(op, logits, probabilities, "logits", "probabilities", rank=1)
    return apply(losses.cross_entropy_with_probabilities, (logits, probabilities))


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
    _check_pair(op, logits, probabilities, "logits", "probabilities")
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
    _check_pair("kl_div", logits, probabilities, "logits", "probabilities", rank=1)
    return apply(losses.kl_div, (logits, probabilities))


def _check_pair(
    op: str,
    prediction: TensorBase[Any, Any, Any],
    target: TensorBase[Any, Any, Any],
    prediction_name: str = "prediction",
    target_name: str = "target",
    rank: int = 0,
) -> None:
    """Refuse a target that is not a plain value of the shape and dtype of the prediction."""
    _check_target(op, prediction, target, target_name, prediction_name)
    shape = prediction._data.shape
    if target._data.shape != shape:
        raise ShapeError(
            f"{op}: {prediction_name} of shape {shape} and {target_name} of shape "
            f"{target._data.shape} differ; nothing is broadcast, reshape or broadcast_to one"
        )
    if prediction._data.size == 0 or len(shape) < rank:
        raise ShapeError(
            f"{op}: shape {shape} leaves nothing to take the mean of; "
            + ("give (*Ds, N), with at least one row and one class" if rank else "give an element")
        )
    check_same_dtype(op, (prediction, target))


def _check_target(
    op: str, prediction: object, target: object, target_name: str, prediction_name: str = "logits"
) -> None:
    check_tensor(op, prediction, prediction_name)
    check_tensor(op, target, target_name)
    assert isinstance(prediction, TensorBase)
    assert isinstance(target, TensorBase)
    check_floating(op, prediction)
    if target._tape is not None:
        check_not_spent(op, target)
        raise UntracedTensorError(
            f"{op}: {target_name} must be a plain value and own {tape_state(target)}; "
            f"no gradient flows to them: write {target_name}.detach()"
        )
