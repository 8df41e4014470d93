"""A layer in a checkpoint trains as it does without, over numpy's arrays and over another's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tapetensor as tt
from tests.arrays import foreign
from tests.arrays.placing import abroad, home
from tests.arrays.test_layers import LAYERS


@pytest.mark.parametrize("is_foreign", [False, True])
@pytest.mark.parametrize("name", [name for name, (_, shapes) in LAYERS.items() if len(shapes) == 1])
def test_a_layer_in_a_checkpoint_trains_as_without(name: str, is_foreign: bool) -> None:
    make, (shape,) = LAYERS[name]
    values = np.random.default_rng(3).standard_normal(shape)
    results: list[list[Any]] = []
    for is_checkpointed in (False, True):
        layer, x = make(np.random.default_rng(5)), tt.from_numpy(values)
        if is_foreign:
            layer, x = layer.to(foreign), abroad(values)

        def run(x: Any, layer: Any = layer) -> Any:
            y = layer.forward(x)
            return y[0] if isinstance(y, tuple) else y

        y = tt.checkpoint(run, x.trace()) if is_checkpointed else run(x.trace())
        grads = y.sin().sum().backward()

        found = [grads.get(one) for one in (x, *layer.parameters().values())]
        found += layer.buffers().values()
        results.append(
            [
                one if one is None else (home(one) if is_foreign else one.numpy()).tolist()
                for one in found
            ]
        )
    assert results[0] == results[1]
