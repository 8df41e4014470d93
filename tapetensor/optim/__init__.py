"""Optimizers: ``Optimizer(model, lr=...).step(grads)`` updates the parameters of a model."""

from __future__ import annotations

from tapetensor.optim.adam import Adam as Adam
from tapetensor.optim.adam import AdamW as AdamW
from tapetensor.optim.optimizer import Optimizer as Optimizer
from tapetensor.optim.sgd import Sgd as Sgd
