"""What a bucket takes for its message, and what a backward pass by groups holds on to."""

from __future__ import annotations

import weakref
from typing import Any

import numpy as np
import pytest

import tapetensor as tt
from tapetensor.distributed.reducer import Bucket, buckets_of
from tapetensor.tape.history import BackwardPass, gathered
from tapetensor.tape.replay import needed_for, replay_by_group


def large() -> Any:
    return tt.zeros((600, 500))


def test_a_large_gradient_that_nobody_else_holds_is_sent_from_where_it_lies() -> None:
    tensor = large()
    (bucket,) = buckets_of({"weight": tensor}, 1 << 20)
    parts = {tensor.id: np.ones((600, 500), np.float32)}
    flat = bucket.packed(parts)
    assert np.shares_memory(flat, parts[tensor.id])
    flat *= 2
    found = bucket.unpacked(flat, 4, is_used=True)
    np.testing.assert_array_equal(found[tensor.id], np.full((600, 500), 0.5, np.float32))
    assert bucket.unpacked(flat, 4) == {}


HELD: list[Any] = [
    lambda array: array,
    lambda array: array[:10],
    lambda array: memoryview(array),
]


@pytest.mark.parametrize("hold", HELD)
def test_a_gradient_that_somebody_holds_is_copied(hold: Any) -> None:
    tensor = large()
    bucket = Bucket([tensor])
    parts = {tensor.id: np.ones((600, 500), np.float32)}
    held = hold(parts[tensor.id])
    assert not np.shares_memory(bucket.packed(parts), parts[tensor.id])
    assert held is not None


@pytest.mark.parametrize("form", [np.transpose, lambda one: one[:, ::-1], np.asfortranarray])
def test_a_gradient_that_lies_in_another_order_is_copied(form: Any) -> None:
    tensor = tt.zeros((600, 600))
    bucket = Bucket([tensor])
    parts: Any = {tensor.id: form(np.arange(360_000, dtype=np.float32).reshape(600, 600))}
    np.testing.assert_array_equal(bucket.packed(parts), parts[tensor.id].ravel())


def test_small_parameters_travel_together_and_large_ones_alone() -> None:
    parameters = {"a": tt.zeros((3,)), "b": large(), "c": tt.zeros((4,)), "d": large()}
    sizes = [len(bucket.ids) for bucket in buckets_of(parameters, 1 << 20)]
    assert sizes == [1, 1, 2]


def test_a_backward_pass_by_groups_lets_go_of_what_it_has_handed_out() -> None:
    weights = [tt.full((2, 2), 0.5) for _ in range(3)]
    h = tt.ones((2, 2)).trace()
    for weight in weights:
        h = (h @ weight).tanh()
    steps, _ = gathered(h.history)
    groups = [frozenset([weight.id]) for weight in reversed(weights)]
    needed, _ = needed_for("backward", steps, int(h.id), {weight.id: weight for weight in weights})
    seen: list[tuple[int, Any]] = []
    ones: Any = np.ones((2, 2), np.float32)
    for part in replay_by_group(steps, {int(h.id): ones}, BackwardPass(), needed, groups):
        # What went before is gone while the rest is computed.
        assert all(one() is None for _, one in seen)
        (key,) = part
        seen.append((key, weakref.ref(part[key])))
        part.clear()
    assert [key for key, _ in seen] == [weight.id for weight in reversed(weights)]
