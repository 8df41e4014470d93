"""Models as estimators of scikit-learn, for its pipelines, cross validation and grid search.

It stands apart from the rest of the room, because importing it imports scikit-learn.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Self, TypeAlias

import numpy as np
from typing_extensions import override

from tapetensor import losses, nn, optim
from tapetensor.arrays.array import check_unmasked
from tapetensor.data import batches, split
from tapetensor.extras import import_extra
from tapetensor.nn import Module
from tapetensor.optim import Optimizer
from tapetensor.tensor import from_numpy
from tapetensor.training.evaluation import predict
from tapetensor.training.fit import fit
from tapetensor.training.history import EarlyStopping

import_extra("sklearn", "estimators", "sklearn")

from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin  # noqa: E402
from sklearn.utils import check_random_state  # noqa: E402
from sklearn.utils.multiclass import check_classification_targets  # noqa: E402
from sklearn.utils.validation import check_is_fitted, validate_data  # noqa: E402

# A function of what a model gives and of what it should.
Loss: TypeAlias = Callable[[Any, Any], Any]
# What makes a model: of how many features and outputs, and from which generator.
Model: TypeAlias = Callable[[int, int, np.random.Generator], Module]


def perceptron(features: int, outputs: int, rng: np.random.Generator) -> Module:
    """Return a multilayer perceptron with one hidden layer of 64 units."""
    return nn.Sequential(
        nn.Linear(features, 64, rng=rng), nn.ReLU(), nn.Linear(64, outputs, rng=rng)
    )


class _Estimator(BaseEstimator):
    """The base of both estimators: their arguments, training and prediction."""

    def __init__(
        self,
        model: Model = perceptron,
        *,
        epochs: int = 50,
        batch_size: int = 32,
        lr: float = 0.01,
        weight_decay: float = 0.01,
        loss: Loss | None = None,
        optimizer: Callable[[Any], Optimizer] | None = None,
        validation: float = 0.0,
        patience: int | None = None,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        # scikit-learn clones an estimator by what is given here, so nothing is changed or checked.
        self.model = model
        self.epochs = epochs
        self.batch_size = batch_size
        self.lr = lr
        self.weight_decay = weight_decay
        self.loss = loss
        self.optimizer = optimizer
        self.validation = validation
        self.patience = patience
        self.random_state = random_state

    def _validated(self, *arrays: Any, **options: Any) -> Any:
        """Return what scikit-learn makes of rows, and of labels, if there are."""
        for name, array in zip("Xy", arrays, strict=False):
            # Its own checks would drop the mask.
            check_unmasked(type(self).__name__, name, array)
        return validate_data(self, *arrays, **options)

    def _train(self, x: Any, targets: Any, outputs: int, default: Loss) -> None:
        seed = check_random_state(self.random_state).randint(np.iinfo(np.int32).max)
        rng = np.random.default_rng(seed)
        model: Any = self.model(x.shape[1], outputs, rng)
        loss = default if self.loss is None else self.loss
        adam = partial(optim.AdamW, lr=self.lr, weight_decay=self.weight_decay)
        seen, held_out = (_tensor(x), from_numpy(targets)), None
        if self.validation:
            seen, held_out = split(*seen, held_out=self.validation, rng=rng)
        watched = "loss" if held_out is None else "val_loss"
        self.history_ = fit(
            model,
            (self.optimizer or adam)(model),
            lambda model, batch: loss(model.forward(batch[0].trace()), batch[1]),
            batches(*seen, size=min(self.batch_size, len(seen[0])), rng=rng),
            epochs=self.epochs,
            validation=None if held_out is None else [held_out],
            stop=None
            if self.patience is None
            else EarlyStopping(watched, patience=self.patience, restore=True),
            rng=rng,
            progress=False,
        )
        self.model_ = model

    def _outputs(self, x: Any) -> Any:
        """Return what the model that was trained gives for each row."""
        check_is_fitted(self)
        rows = _tensor(self._validated(x, reset=False))
        return predict(self.model_.forward, batches(rows, size=1024))


class Classifier(ClassifierMixin, _Estimator):
    """A model that learns classes, by cross entropy and AdamW, as a classifier of scikit-learn.

    Args:
        model: makes a model from the number of features, the number of classes and a generator: a
            function, or a class. Its `forward` takes ``(N, features)`` and gives the logits,
            ``(N, classes)``. Without one a perceptron with 64 hidden units.
        epochs: how often it sees all rows.
        batch_size: the rows of a step.
        lr: the learning rate.
        weight_decay: the weight decay, decoupled.
        loss: function of logits and labels, a traced and a plain tensor, in place of the cross
            entropy: ``partial(losses.cross_entropy, label_smoothing=0.1)``, say.
        optimizer: makes an optimizer of the model, in place of AdamW with `lr` and `weight_decay`.
        validation: the share of the rows to hold out, or 0. `history_` has their loss as
            ``"val_loss"``.
        patience: stop after so many epochs without a smaller loss, of the held-out rows if there
            are any, and keep the best model; None for no early stopping.
        random_state: a seed, scikit-learn's way; None for another one at each `fit`.

    Attributes:
        model_: the model that was trained.
        history_: the `History` of its training.
        classes_: the labels, sorted, in the order of the outputs.

    Source: the protocol is scikit-learn's, "Developing scikit-learn estimators"; its own checks of
        estimators are among the tests.

    >>> import numpy as np
    >>> from tapetensor.training.estimators import Classifier
    >>> x = np.random.default_rng(0).normal(size=(100, 2))
    >>> Classifier(random_state=0).fit(x, np.where(x[:, 0] > 0, "right", "left")).predict([[3, 0]])
    array(['right'], dtype='<U5')
    """

    def fit(self, X: Any, y: Any) -> Self:  # noqa: N803  # scikit-learn's name
        """Train a new model on rows ``(N, features)`` and their labels ``(N,)``, of any dtype."""
        x, labels = self._validated(X, y)
        check_classification_targets(labels)
        self.classes_, numbers = np.unique(labels, return_inverse=True)
        self._train(x, numbers, len(self.classes_), losses.cross_entropy)
        return self

    def predict_proba(self, X: Any) -> Any:  # noqa: N803  # scikit-learn's name
        """Return the probability of every class, ``(N, classes)``."""
        return self._outputs(X).softmax(axis=-1).numpy()

    def predict(self, X: Any) -> Any:  # noqa: N803  # scikit-learn's name
        """Return the most probable class of every row, ``(N,)``."""
        numbers = self._outputs(X).numpy().argmax(axis=1)
        return self.classes_[numbers]


class Regressor(RegressorMixin, _Estimator):
    """A model that learns numbers, by the mean squared error, as a regressor of scikit-learn.

    It has the arguments of `Classifier`. The model has one output for each target. The loss is a
    function of outputs and targets, ``(N, targets)``: `losses.mae`, or
    ``partial(losses.quantile, q=0.9)``. If the sizes of the targets differ much, put it into
    scikit-learn's `TransformedTargetRegressor`.

    Attributes:
        model_: the model that was trained.
        history_: the `History` of its training.

    Source: the protocol is scikit-learn's, "Developing scikit-learn estimators"; its own checks of
        estimators are among the tests.

    >>> import numpy as np
    >>> from tapetensor.training.estimators import Regressor
    >>> x = np.random.default_rng(0).normal(size=(200, 2))
    >>> bool(Regressor(random_state=0).fit(x, x[:, 0] * x[:, 1]).score(x, x[:, 0] * x[:, 1]) > 0.9)
    True
    """

    def fit(self, X: Any, y: Any) -> Self:  # noqa: N803  # scikit-learn's name
        """Train a new model on rows ``(N, features)`` and targets ``(N,)`` or ``(N, targets)``."""
        x, targets = self._validated(X, y, multi_output=True, y_numeric=True)
        self._is_flat = targets.ndim == 1
        columns = targets.reshape((len(targets), -1)).astype(np.float32)
        self._train(x, columns, columns.shape[1], losses.mse)
        return self

    def predict(self, X: Any) -> Any:  # noqa: N803  # scikit-learn's name
        """Return the prediction for every row, of the shape that the targets had."""
        # scikit-learn wants the precision of its own targets.
        found = self._outputs(X).numpy().astype(np.float64)
        return found[:, 0] if self._is_flat else found

    @override
    def __sklearn_tags__(self) -> Any:
        """Return what scikit-learn asks of an estimator; this one takes several targets."""
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags


def _tensor(rows: Any) -> Any:
    return from_numpy(np.asarray(rows, np.float32))
