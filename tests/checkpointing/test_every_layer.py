"""A layer in a checkpoint trains as it does without, over numpy's arrays and over another's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tapetensor as tt
from tests.arrays import foreign
from tests.arrays.placing import abroad, home
from tests.nn.layer_rows import ROWS


@pytest.mark.parametrize("is_foreign", [False, True])
@pytest.mark.parametrize("kind", ROWS)
def test_a_layer_in_a_checkpoint_trains_as_without(kind: Any, is_foreign: bool) -> None:
    row = ROWS[kind]
    values = np.random.default_rng(3).standard_normal(row.shape(2, 4))
    read = home if is_foreign else tt.Tensor.numpy
    results: list[list[Any]] = []
    for is_checkpointed in (False, True):
        layer, x = row.make(4, np.random.default_rng(5)), tt.from_numpy(values)
        if is_foreign:
            layer, x = layer.to(foreign), abroad(values)

        def run(x: Any, layer: Any = layer) -> Any:
            return row.run(layer, x)

        y = tt.checkpoint(run, x.trace()) if is_checkpointed else run(x.trace())
        grads = y.sin().sum().backward()
        found = [grads.get(one) for one in (x, *layer.parameters().values())]
        found += layer.buffers().values()
        results.append([one if one is None else read(one).tolist() for one in found])
    assert results[0] == results[1]
