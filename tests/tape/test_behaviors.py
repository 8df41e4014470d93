"""The behaviors of dfdx's tape that tapetensor keeps, or mends, one test each."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tapetensor as tt


def vector(*values: float) -> tt.Tensor[Any, tt.NoneTape, np.float32]:
    return tt.from_numpy(list(values), shape=(len(values),))


def test_a_plain_tensor_records_nothing_and_its_backward_is_refused() -> None:
    x = vector(1.0, 2.0)
    loss: Any = (x * x).sum()

    assert not loss.owns_tape
    with pytest.raises(tt.UntracedTensorError, match=r"backward: .* owns no tape.*trace"):
        loss.backward()


def test_a_second_use_of_a_spent_tensor_is_refused() -> None:
    x = vector(1.0).trace()
    x.exp()

    with pytest.raises(tt.MovedTensorError, match="'exp' took its tape"):
        x.sin()


def test_tracing_a_traced_tensor_is_refused() -> None:
    x: Any = vector(1.0).trace()

    with pytest.raises(tt.UntracedTensorError, match=r"trace: .*share"):
        x.trace()
    with pytest.raises(tt.UntracedTensorError, match=r"traced: .*share"):
        x.traced()


def test_backward_runs_once() -> None:
    loss = vector(1.0).trace().sum()
    loss.backward()

    with pytest.raises(tt.MovedTensorError, match="'backward' took its tape; a tape is replayed"):
        loss.backward()


def test_a_default_cotangent_is_for_shape_nothing_only() -> None:
    one: Any = vector(3.0).trace()

    with pytest.raises(tt.ShapeError, match=r"backward: only a scalar .* shape \(1,\)"):
        one.backward()
    assert one.owns_tape


def test_handing_a_tape_on_keeps_the_id_and_arithmetic_makes_a_new_one() -> None:
    x = vector(1.0)
    traced = x.trace()
    second = traced.with_empty_tape()
    plain, tape = traced.split_tape()
    put = plain.put_tape(tape)

    assert {x.id} == {second.id, plain.id, put.id, put.retaped(tt.NoneTape).id}
    assert x.id == x.retaped(tt.OwnedTape).id == x.traced().id
    results: list[Any] = [plain + 1.0, plain * plain, put.exp(), plain.reshape((1, 1)), plain[0]]
    assert len({x.id, *[result.id for result in results]}) == 6


def test_two_uses_of_one_value_through_with_empty_tape_sum_when_they_meet() -> None:
    x = vector(1.0, 3.0)
    traced = x.trace()
    second = traced.with_empty_tape()
    grads = (traced.square() + second * 5.0).sum().backward()

    assert grads[x].numpy().tolist() == [7.0, 11.0]


@pytest.mark.parametrize("trunk_on_the_left", [True, False])
@pytest.mark.parametrize("holder_goes_first", [True, False])
def test_the_gradient_of_a_trunk_does_not_depend_on_which_branch_holds_its_records(
    trunk_on_the_left: bool, holder_goes_first: bool
) -> None:
    x = vector(2.0)
    trunk = x.trace().square()
    twin = trunk.with_empty_tape()
    if holder_goes_first:
        holder, other = trunk * 3.0, twin.square()
    else:
        other = twin.square()
        holder = trunk * 3.0
    joined = holder + other if trunk_on_the_left else other + holder

    # 3 x**2 + x**4
    assert joined.sum().backward()[x].numpy().tolist() == [6.0 * 2 + 4.0 * 8]


def test_a_record_that_both_sides_hold_runs_once() -> None:
    x = vector(1.0, 2.0, 3.0, 4.0)
    first, second = x.trace().square().split(2)

    assert tt.concat((first, second)).sum().backward()[x].numpy().tolist() == [2.0, 4.0, 6.0, 8.0]


def test_merging_tapes_that_carry_gradients_of_one_tensor_sums_them() -> None:
    x = vector(1.0)
    y = vector(1.0)
    of_lhs, of_rhs = tt.Gradients(), tt.Gradients()
    of_lhs.insert(x, vector(10.0))
    of_rhs.insert(x, vector(100.0))
    grads = (x.trace(of_lhs) + y.trace(of_rhs)).sum().backward()

    assert grads[x].numpy().tolist() == [111.0]
    assert grads[y].numpy().tolist() == [1.0]
    assert of_lhs[x].numpy().tolist() == [10.0]


def test_one_tensor_on_both_sides_of_an_op_gets_both_gradients() -> None:
    x = vector(3.0)

    assert (x.trace() * x).sum().backward()[x].numpy().tolist() == [6.0]
    assert (x * x.trace()).sum().backward()[x].numpy().tolist() == [6.0]
    assert (x.trace() * x.trace()).sum().backward()[x].numpy().tolist() == [6.0]


def test_a_leaky_store_keeps_the_gradients_of_temporaries() -> None:
    x = vector(3.0)
    middle = x.trace(tt.Gradients.leaky()).square()
    loss = (middle * 4.0).sum()
    middle_id, loss_id = middle, loss
    grads = loss.backward()

    assert grads[middle_id].numpy().tolist() == [4.0]
    assert grads[loss_id].item() == 1.0
    assert grads[x].numpy().tolist() == [24.0]
    assert len(grads) == 4


def test_with_leafs_declared_a_leaky_store_keeps_only_those_after_backward() -> None:
    x, w, early = vector(3.0), vector(2.0), vector(1.0)
    store = tt.Gradients.leaky()
    store.retain_leafs([w])
    store.insert(early, vector(5.0))
    grads = (x.trace(store) * w * early).sum().backward()

    assert [w.id] == list(grads)
    assert grads[w].numpy().tolist() == [3.0]


def test_three_passes_that_carry_their_gradients_give_three_times_one() -> None:
    x, w = vector(1.5), vector(2.0)
    once = (x.trace() * w).square().sum().backward()
    grads = tt.Gradients()
    for _ in range(3):
        grads = (x.trace(grads) * w).square().sum().backward()

    assert (3 * once[w].numpy()).tolist() == grads[w].numpy().tolist()
    assert (3 * once[x].numpy()).tolist() == grads[x].numpy().tolist()


def test_zeroed_gradients_are_present_and_zero() -> None:
    x, w = vector(1.5), vector(2.0)
    grads = (x.trace() * w).sum().backward()
    grads.zero()

    assert w in grads
    assert x in grads
    assert grads[w].numpy().tolist() == [0.0]
    assert (x.trace(grads) * 0.0).sum().backward()[w].numpy().tolist() == [0.0]


def test_a_parameter_that_took_no_part_has_no_gradient_and_the_others_have_theirs() -> None:
    x, used, unused = vector(1.0), vector(2.0), vector(3.0)
    grads = (x.trace() * used).sum().backward()

    assert grads[used].numpy().tolist() == [1.0]
    assert grads.get(unused) is None
    with pytest.raises(tt.MissingGradientError, match=rf"id {unused.id}.*did not take part"):
        grads[unused]


def test_rebinding_the_data_of_a_parameter_does_not_change_what_a_live_tape_sees() -> None:
    x, w = vector(3.0), vector(2.0)
    loss = (x.trace() * w * w).sum()
    # What an optimizer does: new values in a new buffer, under the same id.
    w.array = w.array - np.float32(1.5)
    grads = loss.backward()

    assert w.numpy().tolist() == [0.5]
    assert grads[x].numpy().tolist() == [4.0]
    assert grads[w].numpy().tolist() == [12.0]
