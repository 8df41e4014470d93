"""Losses: how far a prediction is from its target, as a scalar to run `backward` on.

Gradients flow to the prediction and to the target, where there is a derivative. Labels, signs and
weights are constants by convention: to ask for a gradient behind one is an error. Losses are means,
so that their size does not depend on the batch, unless `reduction` says otherwise, and a loss over
no elements is refused.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tapetensor.arguments.spellings import missing_from as _missing_from
from tapetensor.losses.classification import binary_cross_entropy as binary_cross_entropy
from tapetensor.losses.classification import (
    binary_cross_entropy_with_logits as binary_cross_entropy_with_logits,
)
from tapetensor.losses.classification import cross_entropy as cross_entropy
from tapetensor.losses.classification import (
    cross_entropy_with_probabilities as cross_entropy_with_probabilities,
)
from tapetensor.losses.classification import kl_div as kl_div
from tapetensor.losses.classification import nll as nll
from tapetensor.losses.margin import cosine_embedding as cosine_embedding
from tapetensor.losses.margin import hinge_embedding as hinge_embedding
from tapetensor.losses.margin import margin_ranking as margin_ranking
from tapetensor.losses.margin import multi_margin as multi_margin
from tapetensor.losses.margin import soft_margin as soft_margin
from tapetensor.losses.margin import triplet_margin as triplet_margin
from tapetensor.losses.regression import gaussian_nll as gaussian_nll
from tapetensor.losses.regression import huber as huber
from tapetensor.losses.regression import mae as mae
from tapetensor.losses.regression import mse as mse
from tapetensor.losses.regression import poisson_nll as poisson_nll
from tapetensor.losses.regression import quantile as quantile
from tapetensor.losses.regression import rmse as rmse
from tapetensor.losses.regression import smooth_l1 as smooth_l1

if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        """Say what a name of other libraries is here."""
        raise _missing_from(__name__, name)
