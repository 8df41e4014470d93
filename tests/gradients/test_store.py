"""Looking up, inserting, removing, copying: the entries of a store."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest

import tapetensor as tt


def vector(*values: float) -> tt.Tensor[Any, tt.NoneTape, np.float32]:
    return tt.from_numpy(list(values), shape=(len(values),))


def contents(grads: tt.Gradients) -> dict[int, Any]:
    return {key: grads.array(key) for key in grads}


def values(grads: tt.Gradients) -> dict[int, list[float]]:
    return {key: array.tolist() for key, array in contents(grads).items()}


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


def test_iteration_gives_the_ids_and_allows_changes_on_the_way() -> None:
    tensors = [vector(float(i)) for i in range(4)]
    grads = tt.Gradients()
    for tensor in tensors:
        grads.insert(tensor, tensor)
    ids = []
    for unique_id in grads:
        ids.append(unique_id)
        grads.remove(tensors[len(ids) - 1])

    assert ids == [tensor.id for tensor in tensors]
    assert len(grads) == 0


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


def test_a_gradient_cannot_be_written_through_its_tensor() -> None:
    x = vector(3.0)
    array = x.trace().sum().backward()[x].numpy()

    with pytest.raises(ValueError, match="read-only"):
        array[0] = 1.0


class _Masked(np.ndarray[Any, Any]):
    """A subclass of numpy's array."""


def test_a_subclass_of_an_array_is_stored_as_a_plain_array() -> None:
    x = vector(0.0)
    grads = tt.Gradients()
    grads.insert(x, np.ones(1, np.float32).view(_Masked))
    grads.insert(x, np.ones(1, np.float32).view(_Masked))

    assert [type(array) for array in contents(grads).values()] == [np.ndarray]


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
