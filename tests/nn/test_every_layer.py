"""Every layer has the right gradients, also by what is strided, has one element, or has none."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest

from tapetensor import nn
from tests.nn.gradients import check_layer
from tests.nn.layer_rows import ROWS
from tests.ops.calling import strided


def test_every_layer_has_a_row() -> None:
    layers = {one for one in vars(nn).values() if inspect.isclass(one) and hasattr(one, "forward")}

    assert set(ROWS) == layers


# A variance needs two values or more; fewer are refused.
_VARIANCES = {nn.BatchNorm1d, nn.BatchNorm2d}


@pytest.mark.parametrize(
    ("kind", "rows", "size"),
    [
        pytest.param(kind, rows, size, id=f"{kind.__name__}-{name}")
        for kind in ROWS
        for name, rows, size in [("strided", 2, 4), ("empty", 0, 4), ("one", 1, 1)]
        if name == "strided" or kind not in _VARIANCES
    ],
)
def test_the_gradients_of_a_layer(
    kind: Any, rows: int, size: int, rng: np.random.Generator
) -> None:
    row = ROWS[kind]
    layer = row.make(size, rng)
    x = strided(np.asarray(rng.standard_normal(row.shape(rows, size))))

    check_layer(layer, x, rng, lambda x: row.run(layer, x))
