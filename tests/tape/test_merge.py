"""Merging: in time order, each record once, whichever order the tapes meet in."""

from __future__ import annotations

from collections.abc import Callable
from itertools import permutations
from typing import Any

import numpy as np
import pytest

import tapetensor as tt
from tapetensor.tape import Pullbacks
from tapetensor.tensor.apply import apply


def vector(*values: float) -> tt.Tensor[Any, tt.NoneTape, np.float64]:
    return tt.from_numpy(list(values), shape=(len(values),), dtype=np.float64)


def logged(name: str, log: list[str], x: Any) -> Any:
    """Return `x`, by an op that writes its name to `log` when its pullback runs."""

    def kernel(x: Any) -> tuple[Any, Pullbacks]:
        def pullback(g: Any) -> Any:
            log.append(name)
            return g

        return 1.0 * x, (pullback,)

    return apply(kernel, (x,))


@pytest.mark.parametrize("order", list(permutations(range(3))))
@pytest.mark.parametrize("association", ["left", "right"])
@pytest.mark.parametrize("holder", range(3))
def test_three_branches_of_one_trunk_give_one_gradient_in_every_order_of_meeting(
    order: tuple[int, ...], association: str, holder: int
) -> None:
    x = vector(0.5)
    trunk = x.trace().exp()
    handles = [trunk.with_empty_tape() for _ in range(2)]
    handles.insert(holder, trunk)
    functions: tuple[Callable[[Any], Any], ...] = (
        lambda h: h.sin(),
        lambda h: h.square(),
        lambda h: h * 3.0,
    )
    branches = [function(handle) for function, handle in zip(functions, handles, strict=True)]
    first, second, third = (branches[i] for i in order)
    joined = (first + second) + third if association == "left" else first + (second + third)
    trunk_value = np.exp(0.5)

    assert joined.sum().backward()[x].item() == pytest.approx(
        (np.cos(trunk_value) + 2 * trunk_value + 3.0) * trunk_value, rel=1e-12
    )


def test_records_run_once_each_and_latest_first_however_the_tapes_were_merged() -> None:
    log: list[str] = []
    x = vector(1.0, 2.0)
    early, late = logged("trunk", log, x.trace()).split(2)
    late = logged("late", log, logged("middle", log, late))
    early = logged("last", log, early)
    (late + early).sum().backward()

    assert log == ["last", "late", "middle", "trunk"]


def test_a_trunk_replayed_by_the_smaller_tape_runs_after_both_branches() -> None:
    """Dfdx #507: the branch that holds the trunk may be merged last."""
    log: list[str] = []
    x = vector(1.0)
    trunk = logged("trunk", log, x.trace())
    long = trunk.with_empty_tape()
    for step in range(3):
        long = logged(f"long {step}", log, long)
    grads = (long * logged("short", log, trunk)).sum().backward()

    assert log == ["short", "long 2", "long 1", "long 0", "trunk"]
    assert grads[x].numpy().tolist() == [2.0]


def test_merging_keeps_what_each_side_recorded() -> None:
    _, lhs = vector(1.0).trace().exp().exp().split_tape()
    _, rhs = vector(1.0).trace().sin().split_tape()
    both = {*lhs.recorded(), *rhs.recorded()}
    lhs.merge(rhs)

    assert len(both) == 3
    assert both == set(lhs.recorded())


def test_parts_that_do_not_meet_are_each_complete() -> None:
    x = vector(1.0, 2.0)
    first, second = x.trace().square().split(2)

    assert first.sum().backward()[x].numpy().tolist() == [2.0, 0.0]
    assert second.sum().backward()[x].numpy().tolist() == [0.0, 4.0]


def test_an_op_on_one_part_is_not_seen_by_the_other() -> None:
    x = vector(1.0, 2.0)
    first, second = x.trace().split(2)
    first = first.exp().exp()
    _, tape = second.split_tape()

    assert len(tape.recorded()) == 1
    assert first.owns_tape


def test_a_tape_moved_to_an_unrelated_tensor_brings_its_records_along() -> None:
    x, y = vector(3.0), vector(5.0)
    squared, tape = x.trace().square().split_tape()
    grads = (y.put_tape(tape) * squared).sum().backward()

    assert grads[x].numpy().tolist() == [30.0]
    assert grads[y].numpy().tolist() == [9.0]


def test_a_trunk_whose_tape_was_dropped_is_a_leaf_for_those_who_ask_for_it() -> None:
    x = vector(3.0)
    trunk = x.trace().square()
    twin = trunk.with_empty_tape()
    del trunk
    grads = (twin * 2.0).sum().backward(wrt=[twin])

    assert [twin.id] == list(grads)
    assert grads[twin].numpy().tolist() == [2.0]


def test_carried_gradients_of_many_branches_are_summed() -> None:
    x = vector(1.0)
    stores = [tt.Gradients() for _ in range(3)]
    for power, store in enumerate(stores):
        store.insert(x, vector(10.0**power))
    first, second, third = (x.trace(store) for store in stores)

    assert (first + (second + third)).sum().backward()[x].numpy().tolist() == [114.0]


def test_carried_leafs_and_leakiness_survive_a_merge() -> None:
    x, w, v = vector(1.0), vector(2.0), vector(3.0)
    of_w, of_v = tt.Gradients.leaky(), tt.Gradients()
    of_w.retain_leafs([w])
    of_v.retain_leafs([v])
    grads = (x.trace(of_w) * w + x.trace(of_v) * v).sum().backward()

    assert {w.id, v.id} == set(grads)
