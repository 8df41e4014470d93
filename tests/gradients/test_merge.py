"""Merging two stores: the sum of both, or nothing at all."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tapetensor as tt


def vector(*values: float) -> tt.Tensor[Any, tt.NoneTape, np.float32]:
    return tt.from_numpy(list(values), shape=(len(values),))


def values(grads: tt.Gradients) -> dict[int, list[float]]:
    arrays = {key: grads.array(key) for key in grads}
    return {key: array.tolist() for key, array in arrays.items() if array is not None}


def test_merge_sums_and_leaves_the_other_store_as_it_is() -> None:
    x, y, z = vector(0.0), vector(0.0), vector(0.0)
    lhs, rhs = tt.Gradients(), tt.Gradients()
    lhs.insert(x, vector(1.0))
    lhs.insert(y, vector(2.0))
    rhs.insert(y, vector(10.0))
    rhs.insert(z, vector(20.0))
    lhs.merge(rhs)
    lhs.insert(z, vector(5.0))

    assert values(lhs) == {x.id: [1.0], y.id: [12.0], z.id: [25.0]}
    assert values(rhs) == {y.id: [10.0], z.id: [20.0]}


class _Renumbered:
    """A tensor under the id of another: what only a mistake in a caller's class can make."""

    def __init__(self, tensor: tt.Tensor[Any, Any, Any], unique_id: int) -> None:
        self.id = unique_id
        self.shape = tensor.shape
        self.dtype = tensor.dtype

    def wrap_gradient(self, array: Any, origins: tuple[Any, ...] = ()) -> Any:
        return array


@pytest.mark.parametrize(
    ("odd", "error", "message"),
    [
        (tt.ones((2,)), tt.ShapeError, r"shape \(1,\), the other of its id \(2,\)"),
        (tt.ones((1,), np.float64), tt.DTypeError, "dtype float32, the other of its id float64"),
    ],
)
def test_a_merge_that_fails_changes_nothing(
    odd: tt.Tensor[Any, Any, Any], error: type[Exception], message: str
) -> None:
    x, y = vector(1.0), vector(2.0)
    lhs, rhs = tt.Gradients(), tt.Gradients.leaky()
    for tensor in (x, y):
        lhs.insert(tensor, tensor)
    rhs.insert(x, x)
    rhs.insert(_Renumbered(odd, y.id), odd.numpy())
    rhs.retain_leafs([x, y])

    with pytest.raises(error, match=f"Gradients.merge: a gradient has {message}"):
        lhs.merge(rhs)
    assert values(lhs) == {x.id: [1.0], y.id: [2.0]}
    assert lhs.leafs is None
    assert not lhs.is_leaky


@pytest.mark.parametrize("other", [None, {}, {1: np.ones(2)}, tt.ones((1,))])
def test_only_gradients_can_be_merged(other: Any) -> None:
    with pytest.raises(
        tt.ArgumentTypeError, match=r"Gradients.merge: other must be Gradients, got"
    ):
        tt.Gradients().merge(other)
