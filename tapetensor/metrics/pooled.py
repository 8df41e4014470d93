"""Metrics of the rows of all batches together."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic

import numpy as np
from typing_extensions import TypeVar

from tapetensor.arguments import check_function
from tapetensor.errors import ArgumentTypeError
from tapetensor.metrics.scores import Values

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
