"""Pictures of plans: steps as ops, groups as one, views and constants left out, times if known."""

# Lambdas have no annotations.
# mypy: disable-error-code="no-untyped-call"

from __future__ import annotations

from typing import Any

import numpy as np

import tapetensor as tt
from tapetensor import nn, optim
from tapetensor.compiler import Plan, plans
from tests.pictures.test_page import data_of, ops_of


def plan_of(function: Any, *args: Any) -> Plan:
    """Return the plan of a function for arguments."""
    compiled = tt.compile(function)
    compiled(*args)
    (plan,) = plans(compiled)
    return plan


def data(shape: tuple[int, ...]) -> Any:
    return tt.from_numpy(np.ones(shape, np.float32))


def test_steps_are_drawn_with_inputs_shapes_memory_and_code() -> None:
    plan = plan_of(lambda x, w: (x.exp() @ w).relu(), data((4, 3)), data((3, 2)))

    ops = ops_of(plan.to_html())

    assert ops["matmul"]["operands"] == ["exp", "argument 1"]
    assert ops["exp"]["operands"] == ["argument 0"]
    assert ops["matmul"]["shape"] == "(4, 2)"
    assert ops["matmul"]["bytes"] == "32 (32 B)"
    assert ops["exp"]["memory"] == "planned"
    assert ops["exp"]["code"] in plan.source


def test_a_fused_group_is_one_op_that_lists_its_parts() -> None:
    plan = plan_of(lambda x: (x.exp() * x.sin()).max(axis=0), tt.ones((512, 512)))

    (name,) = [name for name in ops_of(plan.to_html()) if name.startswith("group of")]
    group = ops_of(plan.to_html())[name]

    assert group["operands"] == ["argument 0"]
    for part in ("= exp (512, 512)", "= sin (512, 512)", "= maximum.reduce"):
        assert part in group["group"]


def test_times_are_shown_after_a_profile() -> None:
    plan = plan_of(lambda x: x.exp().sum(), tt.ones((3,)))

    assert '<p id="note">Times are shown after plan.profile' in plan.to_html()
    plan.profile(tt.ones((3,)), repeats=2)

    assert '<p id="note">' not in plan.to_html()
    assert ops_of(plan.to_html())["exp"]["time"].endswith("s")
    assert ", time " in plan.tree().splitlines()[0]


def test_a_training_step_is_drawn_whole() -> None:
    rng = np.random.default_rng(0)
    model = nn.Linear(3, 2, rng=rng)
    optimizer = optim.Adam(model)

    def step(x: Any, dropout: np.random.Generator) -> Any:
        mask = tt.uniform((4, 3), rng=dropout) < 0.5
        loss = tt.where(mask, model.forward(x.trace()) @ model.weight, x).square().mean()
        value = loss.detach()
        optimizer.step(loss.backward(wrt=model))
        return value

    plan = plan_of(step, tt.ones((4, 3)), rng)
    page = plan.to_html()
    ops = data_of(page)["ops"]
    names = [op["name"] for op in ops.values()]

    assert {"argument 0", "argument 1", "model.weight", "model.bias", "update"} <= set(names)
    (update,) = [op for op in ops.values() if op["name"] == "update"]
    assert "shape" not in dict(update["facts"])
    assert len(update["operands"]) == 2
    codes = [dict(op["facts"]).get("code", "") for op in ops.values()]
    assert {step.line for step in plan.steps} <= {
        line for code in codes for line in code.split("\n")
    }
    assert "#" in plan.tree(ascii=True)


def test_a_notebook_shows_plans_and_compiled_functions_as_pictures() -> None:
    compiled: Any = tt.compile(lambda x: x.exp())
    assert compiled._repr_html_() is None
    compiled(tt.ones((3,)))

    assert "<iframe" in compiled._repr_html_()
    assert compiled._repr_html_() == plans(compiled)[0]._repr_html_()
