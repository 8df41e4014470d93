"""Which values fit an annotation: the odd cases."""

from __future__ import annotations

import re
from typing import Any, Generic
from typing import Literal as L

import numpy as np
import pytest

import tapetensor as tt
from tapetensor import NoneTape, Tensor1D, nn
from tapetensor.errors import DTypeError, ShapeError
from tapetensor.nn.typing import W


def linear(fan_in: int, fan_out: int) -> Any:
    return nn.Linear(fan_in, fan_out, rng=np.random.default_rng(fan_in))


def test_what_an_annotation_leaves_open_fits_everything() -> None:
    names: dict[str, Any] = {"__name__": "somewhere"}
    source = """
from __future__ import annotations
from typing import Any, NewType
from tapetensor import Tensor, nn
Batch = NewType("Batch", int)
class Open(nn.Module):
    bare: Tensor
    nominal: Tensor[tuple[Batch, Any]]
    any_rank: Tensor[tuple[int, ...]]
    layer: nn.Linear
    sequence: nn.Sequential
    nowhere: OnlyForTypeCheckers
    anything: Any
"""
    exec(source, names)
    values = {
        "bare": tt.ones((2, 3), np.float32),
        "nominal": tt.ones((2, 3)),
        "any_rank": tt.ones((2, 3, 4)),
        "layer": linear(9, 8),
        "sequence": nn.Sequential(linear(2, 2), nn.ReLU()),
        "nowhere": 5,
        "anything": None,
    }

    model = names["Open"](**values)

    assert vars(model) == values
    with pytest.raises(ShapeError, match=re.escape("Open: nominal has shape (2,)")):
        names["Open"](**values | {"nominal": tt.ones((2,))})


def test_a_type_variable_for_the_dtype_has_one_meaning() -> None:
    class Pair(nn.Module, Generic[W]):
        first: Tensor1D[L[2], NoneTape, W]
        second: Tensor1D[L[2], NoneTape, W]

    Pair(first=tt.ones((2,), np.float64), second=tt.ones((2,), np.float64))
    mixed: Any = {"first": tt.ones((2,), np.float64), "second": tt.ones((2,))}
    message = "Pair: second has dtype float32, the annotation of second says W = float64"
    with pytest.raises(DTypeError, match=message):
        Pair(**mixed)
