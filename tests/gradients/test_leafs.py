"""Which entries a store keeps: leafs, declared leafs, or everything."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tapetensor as tt


def vector(*values: float) -> tt.Tensor[Any, tt.NoneTape, np.float32]:
    return tt.from_numpy(list(values), shape=(len(values),))


def filled(*tensors: tt.Tensor[Any, tt.NoneTape, np.float32]) -> tt.Gradients:
    grads = tt.Gradients()
    for tensor in tensors:
        grads.insert(tensor, tensor)
    return grads


def test_by_default_a_backward_pass_leaves_the_leafs() -> None:
    x, w = vector(1.0), vector(2.0)
    middle = x.trace() * w
    grads = middle.exp().sum().backward()

    assert set(grads) == {x.id, w.id}
    assert middle not in grads


def test_retain_leafs_drops_what_is_not_declared() -> None:
    x, y = vector(1.0), vector(2.0)
    grads = filled(x, y)
    grads.retain_leafs([x])

    assert list(grads) == [x.id]


def test_declarations_add_up() -> None:
    x, y, z = vector(1.0), vector(2.0), vector(3.0)
    grads = filled(x, y, z)
    grads.retain_leafs([x, y])
    grads.retain_leafs([z])

    assert grads.leafs == frozenset({x.id, y.id, z.id})
    # What an earlier declaration dropped stays dropped.
    assert set(grads) == {x.id, y.id}


def test_drop_non_leafs_drops_what_was_inserted_since_the_declaration() -> None:
    x, y = vector(1.0), vector(2.0)
    grads = filled(x)
    grads.retain_leafs(iter([x]))
    grads.insert(y, y)
    assert set(grads) == {x.id, y.id}
    grads.drop_non_leafs()

    assert list(grads) == [x.id]


def test_the_declaration_passes_to_the_store_that_backward_returns() -> None:
    x, w = vector(1.0), vector(2.0)
    grads = tt.Gradients()
    grads.retain_leafs([w])
    for _ in range(3):
        grads = (vector(1.0).trace(grads) * w * x).sum().backward()

    assert list(grads) == [w.id]
    assert grads.leafs == frozenset({w.id})
    assert grads[w].numpy().tolist() == [3.0]


def test_merging_joins_declarations_and_leakiness() -> None:
    x, y = vector(1.0), vector(2.0)
    lhs, rhs = filled(x), tt.Gradients.leaky()
    lhs.retain_leafs([x])
    rhs.retain_leafs([y])
    lhs.merge(rhs)

    assert lhs.leafs == frozenset({x.id, y.id})
    assert lhs.is_leaky


def test_a_store_that_declares_nothing_keeps_its_gradients_when_another_is_merged_into_it() -> None:
    w, v = vector(1.0), vector(2.0)
    declaring, store = filled(w), filled(v)
    declaring.retain_leafs([w])
    store.merge(declaring)
    grads = (vector(1.0).trace(store) * w * v).sum().backward()

    assert set(grads) == {w.id, v.id}
    assert grads[w].item() == 1.0 + v.item()
    assert grads[v].item() == 2.0 + w.item()


def test_a_leaky_store_that_is_carried_keeps_the_temporaries_of_every_pass() -> None:
    x = vector(1.0)
    first = x.trace(tt.Gradients.leaky()).exp().sum().backward()
    second = x.trace(first).exp().sum().backward()

    # x, and per pass exp(x) and the sum.
    assert len(first) == 3
    assert len(second) == 5


@pytest.mark.parametrize("tensors", [tt.ones((2, 2)), 5, None, [tt.ones((1,)), "w"], [3], "ab"])
def test_retain_leafs_takes_several_tensors_and_changes_nothing_otherwise(tensors: Any) -> None:
    x = vector(1.0)
    grads = filled(x)

    with pytest.raises(tt.ArgumentTypeError, match=r"^Gradients.retain_leafs: expected"):
        grads.retain_leafs(tensors)
    assert list(grads) == [x.id]
    assert grads.leafs is None


def test_zero_keeps_the_entries_with_their_shapes_and_dtypes() -> None:
    x, y = tt.ones((2, 3)), tt.ones((), np.float64)
    grads = tt.Gradients()
    grads.insert(x, x)
    grads.insert(y, y)
    grads.zero()

    assert grads[x].numpy().tolist() == [[0.0] * 3] * 2
    assert (grads[y].item(), grads[y].shape, grads[y].dtype) == (0.0, (), np.dtype(np.float64))
