"""Optimizers against PyTorch's in what no textbook says: their defaults."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

from tapetensor.optim import Adagrad, Adam, AdamW, RMSprop, Sgd

torch: Any = pytest.importorskip("torch")


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (Adam, torch.optim.Adam),
        (AdamW, torch.optim.AdamW),
        (RMSprop, torch.optim.RMSprop),
        (Adagrad, torch.optim.Adagrad),
        (Sgd, torch.optim.SGD),
    ],
)
def test_the_defaults_of_what_both_have_are_torchs(ours: Any, theirs: Any) -> None:
    parameters = inspect.signature(ours).parameters
    torch_parameters = inspect.signature(theirs).parameters

    for name in parameters.keys() & torch_parameters.keys():
        parameter = parameters[name]
        expected = torch_parameters[name].default
        # PyTorch's own default learning rate of SGD is 1e-3; ours is dfdx's.
        assert parameter.default == (1e-2 if (ours, name) == (Sgd, "lr") else expected)
