"""Starting a tape: the tensor stays plain, and the tape may carry gradients."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tapetensor as tt


def vector(*values: float) -> tt.Tensor[Any, tt.NoneTape, np.float32]:
    return tt.from_numpy(list(values), shape=(len(values),))


def test_trace_leaves_the_tensor_plain_and_shares_its_data() -> None:
    x = vector(1.0, 2.0)
    traced = x.trace()

    assert traced.owns_tape
    assert traced.tape_type is tt.OwnedTape
    assert not x.owns_tape
    assert x.tape_type is tt.NoneTape
    assert x.id == traced.id
    assert np.shares_memory(x.numpy(), traced.detach().numpy())
    assert (x + x).numpy().tolist() == [2.0, 4.0]


def test_traced_is_the_name_that_dfdx_has_for_trace() -> None:
    x = vector(1.0, 2.0)
    traced = x.traced()

    assert traced.owns_tape
    assert not x.owns_tape
    assert x.id == traced.id
    assert (traced * x).sum().backward()[x].numpy().tolist() == [2.0, 4.0]


@pytest.mark.parametrize("method", ["trace", "traced"])
def test_what_has_a_tape_is_not_traced_again(method: str) -> None:
    y: Any = vector(1.0).trace().exp()

    with pytest.raises(
        tt.UntracedTensorError,
        match=rf"^{method}: the tensor has OwnedTape\(1 ops\) already; drop the second",
    ):
        getattr(y, method)()


@pytest.mark.parametrize("method", ["trace", "traced"])
def test_carried_gradients_are_added_to_and_stay_as_they_were(method: str) -> None:
    x: Any = vector(1.0, 2.0)
    carried = tt.Gradients()
    carried.insert(x, vector(10.0, 20.0))
    grads = getattr(x, method)(carried).square().sum().backward()

    assert grads[x].numpy().tolist() == [12.0, 24.0]
    assert carried[x].numpy().tolist() == [10.0, 20.0]


@pytest.mark.parametrize("method", ["trace", "traced"])
def test_something_else_than_gradients_cannot_be_carried(method: str) -> None:
    x: Any = vector(1.0)
    owned_tape: Any = tt.OwnedTape

    with pytest.raises(
        tt.ArgumentTypeError, match=f"^{method}: carried gradients must be Gradients"
    ):
        getattr(x, method)({})
    with pytest.raises(tt.ArgumentTypeError, match=r"^OwnedTape: carried gradients must be"):
        x.put_tape(owned_tape({}))
    assert (x + x).numpy().tolist() == [2.0]


def test_a_carried_store_is_read_when_backward_runs() -> None:
    """So zeroing between the forward and the backward pass works as it does in PyTorch."""
    x = vector(1.0)
    carried = tt.Gradients()
    carried.insert(x, vector(10.0))
    loss = (x.trace(carried) * 3.0).sum()
    carried.zero()

    assert loss.backward()[x].numpy().tolist() == [3.0]


def test_every_handle_of_a_tape_carries_its_gradients() -> None:
    x = vector(1.0)
    carried = tt.Gradients()
    carried.insert(x, vector(10.0))
    first = x.trace(carried)
    second = first.with_empty_tape()
    value, tape = first.split_tape()

    assert second.sum().backward()[x].numpy().tolist() == [11.0]
    assert value.put_tape(tape).sum().backward()[x].numpy().tolist() == [11.0]
    assert (first + second + value.put_tape(tape)).sum().backward()[x].numpy().tolist() == [13.0]


def test_a_leaky_store_keeps_the_gradients_of_temporaries() -> None:
    x = vector(3.0)
    middle = x.trace(tt.Gradients.leaky()).square()
    loss = (middle * 4.0).sum()
    grads = loss.backward()

    assert grads[middle].numpy().tolist() == [4.0]
    assert grads[loss].item() == 1.0
    assert grads[x].numpy().tolist() == [24.0]
    assert len(grads) == 4


def test_a_tape_says_how_much_it_holds() -> None:
    x = vector(1.0)

    assert "OwnedTape(0 ops)" in repr(x.trace())
    assert "OwnedTape(2 ops)" in repr(x.trace().exp().sin())
    assert "OwnedTape(1 ops, carrying 1 Gradients)" in repr(x.trace(tt.Gradients()).exp())


def test_an_integer_tensor_can_carry_a_tape_into_an_embedding() -> None:
    table = tt.from_numpy([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], shape=(3, 2))
    ids = tt.from_numpy([2, 0, 2], shape=(3,), dtype=np.int64)
    plain, tape = ids.trace().split_tape()
    grads = table.put_tape(tape).take(plain).sum().backward()

    assert grads[table].numpy().tolist() == [[1.0, 1.0], [0.0, 0.0], [2.0, 2.0]]
    assert ids not in grads


def test_backward_of_an_integer_tensor_is_refused_and_uses_nothing_up() -> None:
    total: Any = tt.arange(3).trace().sum()

    with pytest.raises(tt.DTypeError, match="backward: a tensor of dtype int64 has no gradient"):
        total.backward()
    assert total.owns_tape
