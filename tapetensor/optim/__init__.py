"""Optimizers: ``Optimizer(model, lr=...).step(grads)`` updates the parameters of a model."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tapetensor.arguments.spellings import missing_from as _missing_from
from tapetensor.optim import schedules as schedules
from tapetensor.optim.adam import Adam as Adam
from tapetensor.optim.adam import AdamW as AdamW
from tapetensor.optim.adam import SparseAdam as SparseAdam
from tapetensor.optim.descent import Adagrad as Adagrad
from tapetensor.optim.descent import RMSprop as RMSprop
from tapetensor.optim.descent import Sgd as Sgd
from tapetensor.optim.group import State as State
from tapetensor.optim.optimizer import Optimizer as Optimizer
from tapetensor.optim.parameters import Raveled as Raveled
from tapetensor.optim.parameters import exponential_moving_average as exponential_moving_average

if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        """Say what a name of other libraries is here."""
        raise _missing_from(__name__, name)
