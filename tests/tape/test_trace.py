"""How a tape begins, is handed on and copied; the tensor stays plain throughout."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tapetensor as tt
from tests.tape.test_backward import vector


@pytest.mark.parametrize("method", ["trace", "traced"])
def test_trace_leaves_the_tensor_plain_and_shares_its_data(method: str) -> None:
    # `traced` is the name that dfdx has for it.
    x: Any = vector(1.0, 2.0)
    traced = getattr(x, method)()

    assert traced.owns_tape
    assert traced.tape_type is tt.OwnedTape
    assert not x.owns_tape
    assert x.tape_type is tt.NoneTape
    assert x.id == traced.id
    assert np.shares_memory(x.numpy(), traced.detach().numpy())
    assert (x + x).numpy().tolist() == [2.0, 4.0]


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


def test_backward_of_an_integer_tensor_is_refused_and_uses_nothing_up() -> None:
    total: Any = tt.arange(3).trace().sum()

    with pytest.raises(tt.DTypeError, match="backward: a tensor of dtype int64 has no gradient"):
        total.backward()
    assert total.owns_tape


X: Any = tt.from_numpy([[1.0, 2.0], [3.0, 4.0]], shape=(2, 2))
DOUBLED = (2 * X.numpy()).tolist()


def gradient(y: Any, of: Any = X) -> list[Any]:
    found: list[Any] = y.sum().backward(retain=True)[of].numpy().tolist()
    return found


def test_handing_a_tape_on_keeps_the_id_and_arithmetic_makes_a_new_one() -> None:
    traced = X.trace()
    plain, tape = traced.split_tape()
    put = plain.put_tape(tape)

    same = [traced, traced.with_empty_tape(), plain, put, put.retaped(tt.NoneTape)]
    assert {one.id for one in [*same, X.retaped(tt.OwnedTape), X.traced()]} == {X.id}
    results = [plain + 1.0, plain * plain, put.exp(), plain.reshape((4,)), plain[0], put.detach()]
    assert len({X.id, *[result.id for result in results]}) == 7


def test_split_tape_gives_a_plain_value_and_leaves_the_tensor_as_it_is() -> None:
    y = X.trace().square()
    value, tape = y.split_tape()

    assert not value.owns_tape
    assert y.owns_tape
    assert repr(tape) == "OwnedTape(1 ops)"
    assert value.id == y.id
    assert gradient(y) == gradient(value.put_tape(tape)) == DOUBLED


def test_a_tape_is_split_off_and_put_on_twice() -> None:
    y = X.trace().square()
    parts = [y.split_tape() for _ in range(2)]
    handles = [value.put_tape(tape) for value, tape in parts for _ in range(2)]

    assert [gradient(handle) for handle in handles] == [DOUBLED] * 4
    total = handles[0]
    for handle in handles[1:]:
        total = total + handle
    assert gradient(total) == (8 * X.numpy()).tolist()


def test_a_tape_on_an_unrelated_tensor_brings_its_history_along() -> None:
    other = tt.full((2, 2), 5.0)
    squared, tape = X.trace().square().split_tape()
    loss = other.put_tape(tape) * squared

    assert gradient(loss) == (5 * 2 * X.numpy()).tolist()
    assert gradient(loss, of=other) == squared.numpy().tolist()


def test_what_was_joined_by_put_tape_is_used_up_on_both_sides_and_says_so() -> None:
    """It was once a leaf after the first pass, and the gradients of all before it were lost."""
    value, _ = X.trace().square().split_tape()
    _, tape = X.trace().exp().split_tape()
    y = value.put_tape(tape)
    assert gradient(y) == gradient(y) == DOUBLED
    y.sum().backward()

    for wrt in (None, X):
        with pytest.raises(tt.TapeUsedError, match="'square' recorded"):
            y.sum().backward(wrt=wrt)


def test_put_on_a_plain_value_a_tape_records_what_comes_after_and_not_what_came_before() -> None:
    _, tape = X.trace().split_tape()
    data = tt.from_numpy([1.0, 2.0])
    y = (data * 3.0).put_tape(tape)
    grads = y.square().sum().backward()

    assert grads[y].numpy().tolist() == [6.0, 12.0]
    with pytest.raises(tt.MissingGradientError, match="multiply made a plain value"):
        (data * 3.0).put_tape(tape).square().sum().backward(wrt=data)


def test_a_plain_tensor_splits_into_itself_and_no_tape() -> None:
    plain, tape = X.split_tape()

    assert isinstance(tape, tt.NoneTape)
    assert repr(tape) == "NoneTape"
    assert X.id == plain.id == plain.put_tape(tape).id
    assert not plain.put_tape(tape).owns_tape
    assert not X.with_empty_tape().owns_tape


@pytest.mark.parametrize("tape", [None, 1, tt.OwnedTape, tt.NoneTape, {}])
def test_only_a_tape_can_be_put_on_a_tensor(tape: object) -> None:
    with pytest.raises(tt.ArgumentTypeError, match="put_tape: the argument must be a tape, got"):
        X.put_tape(tape)


def test_a_handle_with_an_empty_tape_leads_where_the_tensor_leads() -> None:
    """Dfdx's empty tape forgets, for there only one of two handles may have what was recorded."""
    h = X.trace().square()
    twin = h.with_empty_tape()

    assert twin.id == h.id
    assert gradient(twin) == gradient(h) == DOUBLED
    assert gradient(twin.with_empty_tape() + h) == (4 * X.numpy()).tolist()


def test_retaped_follows_the_tape_of_another_tensor() -> None:
    for like in (X, X.trace()):
        for state in (X.retaped(like.tape_type), X.trace().retaped(like.tape_type)):
            assert like.owns_tape == state.owns_tape
            assert X.id == state.id


def test_what_is_taken_off_its_tape_is_recorded_no_longer_and_leads_back_all_the_same() -> None:
    h = X.trace().square()
    plain = h.retaped(tt.NoneTape)

    assert gradient(X.trace() * plain) == (3 * X.numpy() ** 2).tolist()
    assert gradient(plain.retaped(tt.OwnedTape)) == DOUBLED
    with pytest.raises(tt.MissingGradientError, match="multiply made a plain value"):
        (X.trace() * (plain * 2.0)).sum().backward(wrt=X)


@pytest.mark.parametrize("tape_type", [None, "OwnedTape", tt.NoneTape(), int])
def test_retaped_takes_the_two_tape_types_only(tape_type: Any) -> None:
    with pytest.raises(tt.ArgumentTypeError, match="retaped: expected OwnedTape or NoneTape"):
        X.retaped(tape_type)


@pytest.mark.parametrize("part_of", [lambda y: y, lambda y: y.split_tape()[0]])
def test_detach_cuts_a_value_off_from_all_that_it_was_computed_from(part_of: Any) -> None:
    y = X.trace().square()
    constant = part_of(y).detach()

    assert y.owns_tape
    assert not constant.owns_tape
    # d(x**2 * c)/dx with c = x**2.
    assert gradient(y * constant) == (2 * X.numpy() ** 3).tolist()
    assert gradient(X.trace() * X.detach()) == X.numpy().tolist()


COPIES: list[Any] = [
    pytest.param(copy.copy, id="copy"),
    pytest.param(copy.deepcopy, id="deepcopy"),
    pytest.param(lambda x: pickle.loads(pickle.dumps(x)), id="pickle"),
]


@pytest.mark.parametrize("copied", COPIES)
def test_a_copy_is_another_plain_tensor_with_equal_elements(copied: Callable[[Any], Any]) -> None:
    x = vector(1.0, 2.0)
    twin = copied(x)

    assert twin.id != x.id
    assert type(twin) is type(x)
    assert not twin.owns_tape
    assert twin.numpy().tolist() == [1.0, 2.0]
    assert twin.dtype == np.float32
    assert twin.trace().square().sum().backward()[twin].numpy().tolist() == [2.0, 4.0]


def test_a_deep_copy_of_a_structure_keeps_what_is_shared_in_it() -> None:
    x = vector(1.0, 2.0)
    first, second = copy.deepcopy([x, x])

    assert first is second


@pytest.mark.parametrize("copied", COPIES)
def test_a_tensor_that_has_a_tape_cannot_be_copied_and_stays_usable(
    copied: Callable[[Any], Any],
) -> None:
    x = vector(1.0, 2.0)
    y = x.trace().square()

    with pytest.raises(
        tt.UntracedTensorError, match=r"a tensor with a tape cannot be copied.*detach"
    ):
        copied(y)
    assert y.sum().backward()[x].numpy().tolist() == [2.0, 4.0]


@pytest.mark.parametrize("copied", COPIES)
def test_a_tape_cannot_be_copied(copied: Callable[[Any], Any]) -> None:
    plain, tape = vector(1.0, 2.0).trace().exp().split_tape()

    with pytest.raises(tt.UntracedTensorError, match="copy: a tape cannot be copied or pickled"):
        copied(tape)
    assert plain.put_tape(tape).owns_tape
