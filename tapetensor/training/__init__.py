"""The training loop that most programs write, once: `fit`, and the parts that it is made of.

It is thin by intent: docs/training.md shows it beside the same loop written by hand.
"""

from __future__ import annotations

from tapetensor.training.evaluation import Metric as Metric
from tapetensor.training.evaluation import Source as Source
from tapetensor.training.evaluation import evaluate as evaluate
from tapetensor.training.evaluation import predict as predict
from tapetensor.training.fit import fit as fit
from tapetensor.training.history import EarlyStopping as EarlyStopping
from tapetensor.training.history import History as History
from tapetensor.training.history import Row as Row
from tapetensor.training.logs import CsvLog as CsvLog
from tapetensor.training.logs import Log as Log
from tapetensor.training.logs import TensorBoardLog as TensorBoardLog
