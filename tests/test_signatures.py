"""What `help`, `inspect.signature` and Jupyter's ``?`` show: names and types, not `Any`."""

from __future__ import annotations

import inspect
from typing import Any
from typing import Literal as L

import numpy as np
import pytest

import tapetensor as tt
from tapetensor import data, io, losses, metrics, nn, optim, training

ROOMS = (tt, data, io, losses, metrics, nn, optim, training)
# What takes whatever a function of the user's takes, or another library's arrays; what a class
# body calls a field, of any type; Python's own lists.
OF_ANY_TYPE = {
    *("checkpoint", "grad", "value_and_grad", "functional_call", "from_array", "from_memmap"),
    *("parameter", "buffer", "options", "repeat", "permute_dims", "tolist"),
}


def _public() -> list[tuple[str, Any]]:
    functions = [
        (name, value)
        for room in ROOMS
        for name, value in vars(room).items()
        if inspect.isfunction(value) and not name.startswith("_")
    ]
    methods = [(name, inspect.getattr_static(tt.Tensor, name)) for name in dir(tt.ones(()))]
    return functions + [
        (name, one) for name, one in methods if inspect.isfunction(one) and name[0] != "_"
    ]


def test_signatures_say_what_is_taken_and_what_is_given() -> None:
    untyped = set()
    for name, function in _public():
        signature = inspect.signature(function)
        said = [one.annotation for one in signature.parameters.values()]
        if "Any" in (*said, signature.return_annotation):
            untyped.add(name)

    assert untyped <= OF_ANY_TYPE
    assert str(inspect.signature(tt.where)).count("Tensor[Any, Any, Any]") == 3


def test_a_module_shows_its_fields_or_its_constructor() -> None:
    class Net(nn.Module):
        hidden: nn.Linear[L[4], L[8]]
        scale: float = 2.0

    class Own(Net):
        def __init__(self, size: int) -> None:
            super().__init__(hidden=nn.Linear(4, 8, rng=np.random.default_rng(0)))

    assert str(inspect.signature(Net)) == (
        "(*, hidden: 'nn.Linear[L[4], L[8]]', scale: 'float' = 2.0)"
    )
    assert [*inspect.signature(Own).parameters] == ["size"]
    assert [*inspect.signature(nn.ReLU).parameters] == []
    assert [*inspect.signature(nn.Linear).parameters][:2] == ["in_features", "out_features"]
    with pytest.raises(TypeError):
        inspect.signature(Net).bind(4, 8)
