"""Trajectories against PyTorch's optimizers, where it is installed."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest

import tapetensor as tt
from tapetensor.optim import Adagrad, Adam, AdamW, RMSprop, Sgd, schedules
from tests.optim.models import drawn, gradients_of, small_model

torch: Any = pytest.importorskip("torch")

MODES: list[tuple[Any, Any, dict[str, Any]]] = [
    (Sgd, torch.optim.SGD, {"lr": 0.1}),
    (Sgd, torch.optim.SGD, {"lr": 0.1, "weight_decay": 0.3}),
    (Sgd, torch.optim.SGD, {"lr": 0.1, "momentum": 0.8}),
    (Sgd, torch.optim.SGD, {"lr": 0.1, "momentum": 0.8, "weight_decay": 0.3}),
    (Sgd, torch.optim.SGD, {"lr": 0.1, "momentum": 0.8, "nesterov": True}),
    (
        Sgd,
        torch.optim.SGD,
        {"lr": 0.1, "momentum": 0.8, "nesterov": True, "weight_decay": 0.3},
    ),
    (Adam, torch.optim.Adam, {}),
    (Adam, torch.optim.Adam, {"lr": 0.1, "betas": (0.5, 0.7), "eps": 1e-3}),
    (Adam, torch.optim.Adam, {"lr": 0.1, "weight_decay": 0.3}),
    (AdamW, torch.optim.AdamW, {}),
    (AdamW, torch.optim.AdamW, {"lr": 0.1, "weight_decay": 0.3}),
    (Adam, torch.optim.Adam, {"lr": 0.1, "betas": (0.5, 0.4), "amsgrad": True}),
    (AdamW, torch.optim.AdamW, {"lr": 0.1, "betas": (0.5, 0.4), "amsgrad": True}),
    (Sgd, torch.optim.SGD, {"lr": 0.1, "momentum": 0.8, "dampening": 0.4}),
    (Adagrad, torch.optim.Adagrad, {}),
    (
        Adagrad,
        torch.optim.Adagrad,
        {"lr": 0.1, "lr_decay": 0.2, "weight_decay": 0.3, "initial_accumulator_value": 0.5},
    ),
    (RMSprop, torch.optim.RMSprop, {}),
    (
        RMSprop,
        torch.optim.RMSprop,
        {"lr": 0.1, "alpha": 0.7, "eps": 1e-3, "weight_decay": 0.3, "momentum": 0.8},
    ),
    (RMSprop, torch.optim.RMSprop, {"alpha": 0.9, "eps": 1e-3, "centered": True}),
]


@pytest.mark.parametrize("missing", [set(), {0, 5, 6}])
@pytest.mark.parametrize(("ours", "theirs", "options"), MODES)
def test_a_trajectory_agrees_with_torch(
    ours: Any, theirs: Any, options: dict[str, Any], missing: set[int], rng: np.random.Generator
) -> None:
    model = small_model(rng)
    tensors = {name: torch.tensor(array) for name, array in model.arrays().items()}
    optimizer = ours(model, **options)
    torch_optimizer = theirs(list(tensors.values()), **options)
    for step in range(50):
        arrays = drawn(model, rng)
        if step in missing:
            # PyTorch's would update the others; ours says so, and updates nothing.
            del arrays["hidden.bias"]
            with pytest.raises(tt.UnusedParametersError):
                optimizer.step(gradients_of(model, **arrays))
            continue
        for name, tensor in tensors.items():
            tensor.grad = torch.tensor(arrays[name])
        torch_optimizer.step()
        optimizer.step(gradients_of(model, **arrays))
        for name, array in model.arrays().items():
            np.testing.assert_allclose(array, tensors[name].numpy(), rtol=1e-11, atol=1e-13)


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


def test_one_cycle_is_torchs() -> None:
    parameter = torch.zeros(1, requires_grad=True)
    optimizer = torch.optim.SGD([parameter], lr=0.1)
    theirs = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=0.5, total_steps=40)
    ours = schedules.one_cycle(0.5, steps=40)

    for step in range(40):
        assert ours(step) == pytest.approx(optimizer.param_groups[0]["lr"], rel=1e-12)
        optimizer.step()
        if step < 39:
            theirs.step()


def test_a_cosine_is_torchs() -> None:
    parameter = torch.zeros(1, requires_grad=True)
    optimizer = torch.optim.SGD([parameter], lr=0.5)
    theirs = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=40, eta_min=0.1)
    ours = schedules.cosine(0.5, steps=40, final_lr=0.1)

    for step in range(41):
        assert ours(step) == pytest.approx(optimizer.param_groups[0]["lr"], rel=1e-12)
        optimizer.step()
        theirs.step()


def test_steps_are_torchs() -> None:
    parameter = torch.zeros(1, requires_grad=True)
    optimizer = torch.optim.SGD([parameter], lr=0.5)
    theirs = torch.optim.lr_scheduler.StepLR(optimizer, step_size=7, gamma=0.3)
    ours = schedules.step_decay(0.5, every=7, factor=0.3)

    for step in range(40):
        assert ours(step) == pytest.approx(optimizer.param_groups[0]["lr"], rel=1e-12)
        optimizer.step()
        theirs.step()
