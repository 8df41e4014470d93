"""Every loss over arrays that are not numpy's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tapetensor as tt
from tapetensor import losses
from tests.arrays.placing import abroad, home
from tests.higher_order.test_layers import LOSSES

_SHAPE = (4, 3)
_X = np.random.default_rng(0).standard_normal(_SHAPE)
_TARGETS = np.random.default_rng(1).standard_normal(_SHAPE)
_P = np.random.default_rng(2).dirichlet([1.0, 2.0, 3.0], 4)
_LABELS = np.array([0, 2, 1, 1])
_SIGNS = np.array([1, -1, 1, -1])
_EACH_SIGN = np.where(np.arange(12).reshape(4, 3) % 2 == 0, 1, -1)

# A function of the input and of the way that targets are made.
Loss = Callable[[Any, Callable[[Any], Any]], Any]

BY_NAME: dict[str, Loss] = {
    "mse": lambda x, t: losses.mse(x, t(_TARGETS)),
    "rmse": lambda x, t: losses.rmse(x, t(_TARGETS)),
    "mae": lambda x, t: losses.mae(x, t(_TARGETS)),
    "huber": lambda x, t: losses.huber(x, t(_TARGETS), delta=0.6),
    "smooth_l1": lambda x, t: losses.smooth_l1(x, t(_TARGETS), beta=0.6),
    "quantile": lambda x, t: losses.quantile(x, t(_TARGETS), 0.9),
    "nll": lambda x, t: losses.nll(x.log_softmax(), t(_LABELS)),
    "cross_entropy": lambda x, t: losses.cross_entropy(x, t(_LABELS)),
    "cross_entropy_with_probabilities": lambda x, t: losses.cross_entropy_with_probabilities(
        x, t(_P)
    ),
    "kl_div": lambda x, t: losses.kl_div(x, t(_P)),
    "binary_cross_entropy": lambda x, t: losses.binary_cross_entropy(x.sigmoid(), t(_P)),
    "binary_cross_entropy_with_logits": lambda x, t: losses.binary_cross_entropy_with_logits(
        x, t(_P)
    ),
    "cosine_embedding": lambda x, t: losses.cosine_embedding(x, t(_TARGETS), t(_SIGNS)),
    "hinge_embedding": lambda x, t: losses.hinge_embedding(x, t(_EACH_SIGN), margin=0.4),
    "soft_margin": lambda x, t: losses.soft_margin(x, t(_EACH_SIGN)),
    "margin_ranking": lambda x, t: losses.margin_ranking(x, t(_TARGETS), t(_EACH_SIGN), 0.3),
    "multi_margin": lambda x, t: losses.multi_margin(x, t(_LABELS)),
    "triplet_margin": lambda x, t: losses.triplet_margin(x, t(_TARGETS), t(_P)),
    "gaussian_nll": lambda x, t: losses.gaussian_nll(x, t(_TARGETS), t(_P)),
    "poisson_nll": lambda x, t: losses.poisson_nll(x, t(_P), full=True),
}


def _of_integers_at_home(array: Any) -> Any:
    return tt.from_numpy(array) if array.dtype.kind == "i" else abroad(array)


def test_every_loss_is_in_the_table() -> None:
    assert set(BY_NAME) == set(LOSSES)


@pytest.mark.parametrize("make", [abroad, _of_integers_at_home])
@pytest.mark.parametrize("name", BY_NAME)
def test_a_loss_has_the_value_and_the_gradient_that_it_has_over_numpy(
    name: str, make: Callable[[Any], Any]
) -> None:
    x, twin = abroad(_X), tt.from_numpy(_X)

    value, tape = BY_NAME[name](x.trace(), make).split_tape()
    expected, expected_tape = BY_NAME[name](twin.trace(), tt.from_numpy).split_tape()

    np.testing.assert_allclose(home(value), expected.numpy(), rtol=1e-12)
    gradient = value.put_tape(tape).backward()[x]
    wanted = expected.put_tape(expected_tape).backward()[twin]
    np.testing.assert_allclose(home(gradient), wanted.numpy(), rtol=1e-12, atol=1e-15)


def test_labels_that_are_no_classes_are_named_wherever_they_lie() -> None:
    with pytest.raises(tt.AxisError, match="found 7"):
        losses.cross_entropy(abroad(_X), abroad(np.array([0, 7, 1, 1])))
    with pytest.raises(tt.ArgumentValueError, match="1 or -1"):
        losses.cosine_embedding(abroad(_X), abroad(_TARGETS), abroad(np.array([0, 1, 1, 1])))
