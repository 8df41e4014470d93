"""Models as estimators of scikit-learn."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest

pytest.importorskip("sklearn")

from sklearn.base import BaseEstimator
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator

import tapetensor as tt
from tapetensor import losses, nn, optim
from tapetensor.training.estimators import Classifier, Regressor


def deep(features: int, outputs: int, rng: np.random.Generator) -> nn.Module:
    return nn.Sequential(
        nn.Linear(features, 8, rng=rng),
        nn.BatchNorm1d(8),
        nn.ReLU(),
        nn.Dropout(0.1, rng=rng),
        nn.Linear(8, outputs, rng=rng),
    )


@pytest.mark.parametrize("estimator", [Classifier(), Regressor()])
def test_scikit_learns_own_checks_of_estimators_pass(estimator: BaseEstimator) -> None:
    results = check_estimator(estimator, on_fail=None, on_skip=None)

    assert len(results) > 40
    # What is skipped needs pandas or a setting of scipy's.
    assert {r["check_name"]: r["exception"] for r in results if r["status"] == "failed"} == {}


def test_a_model_of_ones_own_stands_in_a_pipeline_and_in_a_grid_search() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(120, 3)) * 100
    y = np.where(x[:, 0] > x[:, 1], "right", "left")
    pipeline = make_pipeline(StandardScaler(), Classifier(deep, epochs=3, random_state=0))
    search = GridSearchCV(pipeline, {"classifier__lr": [0.0, 0.05]}, cv=2).fit(x, y)

    assert search.best_params_ == {"classifier__lr": 0.05}
    assert search.best_score_ > 0.8


def test_loss_optimizer_and_early_stopping_are_choices() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(300, 1)).astype(np.float32)
    y = rng.normal(size=300)
    high = Regressor(
        loss=partial(losses.quantile, q=0.9),
        optimizer=partial(optim.Adam, lr=0.02),
        validation=0.2,
        patience=5,
        epochs=200,
        random_state=0,
    ).fit(x, y)

    assert 0.8 < (y < high.predict(x)).mean() < 0.98
    assert high.history_.ended == "early stopping"
    assert len(high.history_["val_loss"]) == len(high.history_) < 200
    smoothed = Classifier(loss=partial(losses.cross_entropy, label_smoothing=0.2), epochs=5)
    assert smoothed.fit(x, x[:, 0] > 0).score(x, x[:, 0] > 0) > 0.9


def test_arguments_out_of_range_or_of_a_wrong_kind_go_by_their_names() -> None:
    wrong: Any = {"epochs": "3"}
    with pytest.raises(tt.ArgumentTypeError, match="epochs"):
        Regressor(**wrong).fit(np.ones((4, 1)), np.ones(4))
    with pytest.raises(tt.ArgumentValueError, match=r"held_out must be in \(0, 1\), got 1.5"):
        Regressor(validation=1.5).fit(np.ones((4, 1)), np.ones(4))
