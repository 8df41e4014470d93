"""How well predictions fit, as numbers to read: accuracy, confusion, F1, AUC, R2.

They take arrays or plain tensors, compute in numpy and have no derivative; what is trained on is in
`tapetensor.losses`. A number over all rows is not the mean of the numbers of batches, but for the
accuracies. So `fit` and `evaluate` are given `Pooled(f1, outputs)`, which computes it once, of the
rows of all batches.
"""

from __future__ import annotations

from tapetensor.metrics.scores import Average as Average
from tapetensor.metrics.scores import Pooled as Pooled
from tapetensor.metrics.scores import Values as Values
from tapetensor.metrics.scores import accuracy as accuracy
from tapetensor.metrics.scores import confusion_matrix as confusion_matrix
from tapetensor.metrics.scores import f1 as f1
from tapetensor.metrics.scores import precision as precision
from tapetensor.metrics.scores import r2 as r2
from tapetensor.metrics.scores import recall as recall
from tapetensor.metrics.scores import roc_auc as roc_auc
from tapetensor.metrics.scores import top_k_accuracy as top_k_accuracy
