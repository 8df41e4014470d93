"""Feeding data to a training loop: batches, held-out rows, images that vary, one-hot codes.

`batches` and `batches_exact` make batches of tensors. Three functions serve items that are no
tensors or are loaded one by one::

    for rows in batched(shuffled(dataset, rng), size=32):
        images, labels = collate(rows)
        x = tt.stack(images)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tapetensor.arguments.spellings import missing_from as _missing_from
from tapetensor.data.augmentation import random_crop as random_crop
from tapetensor.data.augmentation import random_erase as random_erase
from tapetensor.data.augmentation import random_flip as random_flip
from tapetensor.data.items import Dataset as Dataset
from tapetensor.data.items import batched as batched
from tapetensor.data.items import collate as collate
from tapetensor.data.items import one_hot as one_hot
from tapetensor.data.items import shuffled as shuffled
from tapetensor.data.rows import Batches as Batches
from tapetensor.data.rows import batches as batches
from tapetensor.data.rows import batches_exact as batches_exact
from tapetensor.data.rows import split as split

if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        """Say what a name of other libraries is here."""
        raise _missing_from(__name__, name)
