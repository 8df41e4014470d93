"""Python's protocols on tensors: iteration, reversed matrix products, logic on masks."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tapetensor as tt
from tapetensor import ArgumentTypeError, Tensor, UntracedTensorError


def test_a_scalar_does_not_iterate_as_numpys_do_not() -> None:
    scalar: Any = tt.zeros(())

    for read in (list, len):
        with pytest.raises(ArgumentTypeError, match="0-d"):
            read(scalar)
    assert not np.iterable(scalar)


def test_the_gradients_of_the_slices_of_a_traced_tensor_add_up() -> None:
    x = tt.from_numpy([[1.0, 2.0], [3.0, 4.0]], shape=(2, 2))
    first, second = x.trace()

    grads = (first * second).sum().backward()

    assert grads[x].numpy().tolist() == [[3.0, 4.0], [1.0, 2.0]]


def test_a_plain_tensor_is_an_array_to_others_who_cannot_write_into_it() -> None:
    x = tt.arange(3).astype(np.float32)
    array: Any = np.asarray(x)

    assert array.tolist() == [0.0, 1.0, 2.0]
    assert array.dtype == np.float32
    assert np.shares_memory(array, x.numpy())
    assert not array.flags.writeable
    assert np.asarray(x, np.float64).dtype == np.float64
    assert np.array(x).flags.writeable
    assert not np.shares_memory(np.array(x), x.numpy())
    exported: Any = x
    assert not np.shares_memory(np.from_dlpack(exported), x.numpy())


def test_functions_of_numpy_take_plain_tensors_for_arrays_wherever_they_stand() -> None:
    x = tt.arange(6).astype(np.float32).reshape((2, 3))
    array, plain = x.numpy(), _untyped(x)

    for found, expected in [
        (np.mean(plain, axis=0), array.mean(0)),
        (np.sum(plain), array.sum()),
        (np.std(plain, axis=1), array.std(1)),
        (np.concatenate([plain, array], axis=0), np.concatenate([array, array])),
        (np.histogram(plain, bins=3)[0], np.histogram(array, bins=3)[0]),
        (np.round(plain, decimals=1), np.round(array, decimals=1)),
    ]:
        assert not isinstance(found, Tensor)
        np.testing.assert_array_equal(found, expected)
    np.testing.assert_allclose(plain, array)


@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("mean", np.mean),
        ("dot", lambda x: np.dot(np.ones(2), x)),
        ("stack", lambda x: np.stack([x])),
        ("clip", lambda x: np.clip(x, 0.0, 1.0)),
    ],
)
def test_functions_of_numpy_refuse_a_tensor_that_owns_a_tape(name: str, call: Any) -> None:
    traced = _untyped(tt.ones((2,)).trace())

    with pytest.raises(UntracedTensorError, match=rf"np\.{name}: .* write x\.detach\(\)"):
        call(traced)
    assert traced.sum().item() == 2.0


def _untyped(tensor: Any) -> Any:
    # Type checkers refuse a tensor where numpy wants an array.
    return tensor


def test_functions_of_numpy_that_ask_for_the_shape_leave_a_tape_where_it_is() -> None:
    traced = _untyped(tt.ones((2, 3)).trace())

    assert (np.shape(traced), np.ndim(traced), np.size(traced), np.size(traced, 1)) == (
        (2, 3), 2, 6, 3,
    )  # fmt: skip
    assert traced.owns_tape


def test_a_tensor_lists_its_elements_as_numbers_of_python() -> None:
    assert tt.from_numpy([[1.0, 2.0]], (1, 2)).tolist() == [[1.0, 2.0]]
    assert type(tt.arange(2).tolist()[0]) is int
    assert tt.zeros(()).tolist() == 0.0


def test_values_of_other_libraries_are_refused_with_the_method_that_makes_them_arrays() -> None:
    class DataFrame:
        def to_numpy(self) -> None: ...

    class TorchTensor:
        def numpy(self) -> None: ...

    frame: Any = DataFrame()
    tensor: Any = TorchTensor()
    with pytest.raises(ArgumentTypeError, match=r"write tt.from_numpy\(x.to_numpy\(np.float32"):
        tt.from_numpy(frame)
    with pytest.raises(ArgumentTypeError, match=r"x\.detach\(\)\.cpu\(\)\.numpy\(\)"):
        tt.from_numpy(tensor)


@pytest.mark.parametrize(
    "read", [np.asarray, np.from_dlpack, lambda x: x.numpy(), lambda x: x.tolist()]
)
def test_a_tensor_that_has_a_tape_is_no_array(read: Any) -> None:
    traced: Any = tt.ones((2,)).trace()

    with pytest.raises(UntracedTensorError, match=r"write x\.detach\(\)"):
        read(traced)
    assert traced.sum().item() == 2.0


def test_ufuncs_of_numpy_do_not_take_tensors_whose_gradient_they_would_lose() -> None:
    weight: Any = tt.ones((2,))

    with pytest.raises(ArgumentTypeError, match=r"np\.exp: .* write x\.exp\(\) or np\.exp"):
        np.exp(weight)
    with pytest.raises(ArgumentTypeError, match="write x \\+ y or"):
        np.add(weight, 1.0)
    with pytest.raises(ArgumentTypeError, match=r"np\.add"):
        np.add.reduce(weight)
    with pytest.raises(ArgumentTypeError, match="from_numpy"):
        np.ones(2) + weight


def test_a_number_of_numpys_on_the_left_of_a_tensor_is_a_number_like_any_other() -> None:
    x: Any = tt.full((2,), 3.0)

    for found, expected in [
        (np.float64(1.0) + x, 4.0),
        (np.float64(1.0) - x, -2.0),
        (np.float32(2.0) * x, 6.0),
        (np.int64(6) / x, 2.0),
        (np.float64(2.0) ** x, 8.0),
        (np.float64(2.0) < x, True),
        (np.float64(2.0) >= x, False),
        (np.float64(3.0) == x, True),
    ]:
        assert found.tolist() == [expected] * 2
    assert (np.float64(2.0) * x).dtype == np.float32
    assert (np.float64(2.0) * x.trace()).sum().backward()[x].tolist() == [2.0, 2.0]


@pytest.mark.parametrize(
    "product", [lambda a, x: a @ x, lambda a, x: a + x, lambda a, x: a * x, lambda a, x: a == x]
)
def test_a_numpy_array_beside_a_tensor_is_refused_with_the_cure(product: Any) -> None:
    with pytest.raises(ArgumentTypeError, match="from_numpy"):
        product(np.ones((2, 2), np.float32), tt.ones((2, 2)))
