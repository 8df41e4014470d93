"""Losses: how far a prediction is from its target, as a scalar to run `backward` on.

The prediction may own a tape, which the loss takes over. The target is a constant: it must be a
plain value, and no gradient flows to it. All losses are means, so that their size does not depend
on the batch, and a loss over no elements, which would be NaN, is refused.
"""

from __future__ import annotations

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
from tapetensor.losses.regression import huber as huber
from tapetensor.losses.regression import mae as mae
from tapetensor.losses.regression import mse as mse
from tapetensor.losses.regression import rmse as rmse
from tapetensor.losses.regression import smooth_l1 as smooth_l1
from tapetensor.losses.similarity import cosine_embedding as cosine_embedding
