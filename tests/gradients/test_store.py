"""A store of gradients: by tensor, merged, and cut down to its leafs."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest

import tapetensor as tt
from tests.tape.test_backward import vector


def values(grads: tt.Gradients) -> dict[int, list[float]]:
    arrays: dict[int, Any] = {key: grads.array(key) for key in grads}
    return {key: array.tolist() for key, array in arrays.items()}


def test_a_gradient_has_the_shape_and_dtype_of_its_tensor_and_a_new_id() -> None:
    x = tt.from_numpy([[1.0, 2.0]], shape=(1, 2), dtype=np.float64)
    grads = x.trace().square().sum().backward()
    gradient = grads[x]

    assert gradient.shape == (1, 2)
    assert gradient.dtype == np.float64
    assert not gradient.owns_tape
    assert len({gradient.id, grads[x].id, x.id}) == 3


def test_every_handle_of_a_tensor_finds_its_gradient() -> None:
    x = vector(1.0, 2.0)
    traced = x.trace()
    grads = traced.square().sum().backward()

    for handle in (x, traced, x.trace()):
        assert handle in grads
        assert grads[handle].numpy().tolist() == [2.0, 4.0]


def test_another_tensor_with_equal_elements_finds_nothing() -> None:
    x, same = vector(1.0), vector(1.0)
    grads = x.trace().sum().backward()

    assert same not in grads
    assert grads.get(same) is None
    assert grads.remove(same) is None
    assert len(grads) == 1


def test_a_missing_gradient_names_the_tensor_and_the_reasons() -> None:
    w = tt.ones((2, 3))

    with pytest.raises(tt.MissingGradientError) as caught:
        tt.Gradients()[w]
    assert isinstance(caught.value, KeyError)
    # As a sentence, not as the repr of one.
    assert str(caught.value).startswith(
        f"no gradient for the tensor of shape (2, 3) with id {w.id}: it did not take part"
    )
    assert "`wrt`" in str(caught.value)
    assert "Gradients.leaky()" in str(caught.value)


def test_remove_takes_the_gradient_out() -> None:
    x, y = vector(1.0), vector(2.0)
    grads = (x.trace() * y).sum().backward()
    removed = grads.remove(x)

    assert removed is not None
    assert removed.numpy().tolist() == [2.0]
    assert list(grads) == [y.id]


def test_insert_adds_on_collision() -> None:
    x = vector(0.0, 0.0)
    grads = tt.Gradients()
    grads.insert(x, vector(1.0, 2.0))
    grads.insert(x, np.array([10.0, 20.0], np.float32))

    assert grads[x].numpy().tolist() == [11.0, 22.0]
    assert len(grads) == 1


def test_one_array_under_two_ids_does_not_tie_the_two_together() -> None:
    x, y = vector(0.0), vector(0.0)
    array = np.array([1.0], np.float32)
    grads = tt.Gradients()
    grads.insert(x, array)
    grads.insert(y, array)
    grads.insert(x, np.array([5.0], np.float32))

    assert grads[x].numpy().tolist() == [6.0]
    assert grads[y].numpy().tolist() == [1.0]
    assert array.tolist() == [1.0]


def test_gradients_that_were_read_do_not_change_with_the_store() -> None:
    x, y = vector(3.0), vector(4.0)
    # An addition hands one and the same cotangent to both operands.
    grads = (x.trace() + y).sum().backward()
    before = grads[x]
    grads.insert(x, vector(10.0))
    middle = grads[x]
    grads.clip_by_global_norm(0.5)
    grads.zero()

    assert before.numpy().tolist() == [1.0]
    assert middle.numpy().tolist() == [11.0]
    assert grads[y].numpy().tolist() == [0.0]


def _traced() -> Any:
    return tt.ones((2,)).trace()


@pytest.mark.parametrize(
    ("gradient", "error", "message"),
    [
        (tt.ones((3,)), tt.ShapeError, r"gradient of shape \(3,\) .* tensor of shape \(2,\)"),
        (np.ones((1, 2), np.float32), tt.ShapeError, r"shape \(1, 2\)"),
        (tt.ones(()), tt.ShapeError, r"shape \(\)"),
        (tt.ones((2,), np.float64), tt.DTypeError, "dtype float64 .* dtype float32"),
        (np.ones(2, np.int64), tt.DTypeError, "dtype int64"),
        ([1.0, 2.0], tt.ArgumentTypeError, "a tensor or a numpy array, got list"),
        (None, tt.ArgumentTypeError, "got NoneType"),
        (1.0, tt.ArgumentTypeError, "got float"),
        (_traced(), tt.UntracedTensorError, r"owns a tape.*gradient\.detach\(\)"),
    ],
)
@pytest.mark.parametrize("occupied", [True, False])
def test_insert_refuses_what_does_not_fit_and_changes_nothing(
    gradient: Any, error: type[Exception], message: str, occupied: bool
) -> None:
    x, other = vector(0.0, 0.0), vector(1.0)
    grads = tt.Gradients()
    grads.insert(other, other)
    if occupied:
        grads.insert(x, vector(1.0, 2.0))
    before = values(grads)

    with pytest.raises(error, match=f"^Gradients.insert: .*{message}"):
        grads.insert(x, gradient)
    assert values(grads) == before


@pytest.mark.parametrize("key", [5, "weight", None, np.ones(2), tt.Tensor, [tt.ones((1,))]])
def test_only_tensors_have_gradients(key: Any) -> None:
    grads = tt.Gradients()
    calls: list[tuple[str, Any]] = [
        ("Gradients.get", lambda: grads[key]),
        ("Gradients.get", lambda: grads.get(key)),
        ("Gradients.remove", lambda: grads.remove(key)),
        ("Gradients.insert", lambda: grads.insert(key, np.ones(2))),
        ("in Gradients", lambda: key in grads),
    ]

    for op, call in calls:
        with pytest.raises(tt.ArgumentTypeError, match=f"^{op}: expected a tensor, got"):
            call()
    assert len(grads) == 0


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy])
def test_a_copy_of_a_store_changes_independently(copied: Any) -> None:
    x, y = vector(1.0), vector(2.0)
    grads = tt.Gradients.leaky()
    grads.insert(x, x)
    twin = copied(grads)
    twin.insert(x, vector(10.0))
    twin.insert(y, y)
    twin.retain_leafs([y])

    assert values(grads) == {x.id: [1.0]}
    assert grads.leafs is None
    assert twin.is_leaky


def test_a_store_cannot_be_pickled_for_its_ids_mean_nothing_elsewhere() -> None:
    with pytest.raises(tt.ArgumentTypeError, match=r"pickle: .*save them by name"):
        pickle.dumps(tt.Gradients())


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


def filled(*tensors: tt.Tensor[Any, tt.NoneTape, Any]) -> tt.Gradients:
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
    grads = filled(x, y)
    grads.zero()

    assert grads[x].numpy().tolist() == [[0.0] * 3] * 2
    assert (grads[y].item(), grads[y].shape, grads[y].dtype) == (0.0, (), np.dtype(np.float64))
