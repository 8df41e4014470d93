"""Batches: which rows, in which order, of which type."""

from __future__ import annotations

from typing import Any, Literal, NewType, assert_type

import numpy as np
import pytest

import tapetensor as tt
from tapetensor.data import batches, batches_exact

Rows = NewType("Rows", int)
Batch = NewType("Batch", int)
FIVE: Literal[5] = 5

Data = tt.Tensor2D[Rows, Literal[2], tt.NoneTape, np.float32]
Labels = tt.Tensor1D[Rows, tt.NoneTape, np.int64]


def data(rows: int) -> tuple[Data, Labels]:
    """Return rows of twice and thrice their number, and their numbers."""
    numbers = np.arange(rows)
    x: Data = tt.from_numpy(np.stack([numbers * 2, numbers * 3], axis=1), dtype=np.float32)
    y: Labels = tt.from_numpy(numbers, shape=(Rows(rows),), dtype=np.int64)
    return x, y


def numbers_in(epoch: Any) -> list[list[int]]:
    return [y.numpy().tolist() for _, y in epoch]


def test_exact_batches_leave_out_a_short_rest() -> None:
    epoch = batches_exact(*data(12), size=5)

    assert len(epoch) == 2
    assert numbers_in(epoch) == [[0, 1, 2, 3, 4], [5, 6, 7, 8, 9]]


def test_batches_end_with_a_short_one() -> None:
    epoch = batches(*data(12), size=5)

    assert len(epoch) == 3
    assert numbers_in(epoch) == [[0, 1, 2, 3, 4], [5, 6, 7, 8, 9], [10, 11]]


@pytest.mark.parametrize("make", [batches, batches_exact])
def test_rows_that_divide_evenly_are_all_there(make: Any) -> None:
    epoch = make(*data(6), size=3)

    assert len(epoch) == 2
    assert numbers_in(epoch) == [[0, 1, 2], [3, 4, 5]]


@pytest.mark.parametrize("make", [batches, batches_exact])
def test_the_rows_of_all_tensors_stay_together(make: Any, rng: np.random.Generator) -> None:
    for x, y in make(*data(13), size=4, rng=rng):
        np.testing.assert_array_equal(x.numpy()[:, 0], 2 * y.numpy())
        np.testing.assert_array_equal(x.numpy()[:, 1], 3 * y.numpy())


def test_with_a_generator_each_iteration_draws_a_new_order() -> None:
    epoch = batches(*data(50), size=8, rng=np.random.default_rng(0))
    once, again = numbers_in(epoch), numbers_in(epoch)

    assert once != again
    for order in (once, again):
        assert sorted(number for batch in order for number in batch) == list(range(50))
    assert once == numbers_in(batches(*data(50), size=8, rng=np.random.default_rng(0)))


def test_without_a_generator_each_iteration_is_the_same() -> None:
    epoch = batches(*data(7), size=3)

    assert numbers_in(epoch) == numbers_in(epoch)


def test_the_types_say_what_is_known_of_the_shape() -> None:
    x, y = data(12)
    for alone in batches_exact(x, size=FIVE):
        assert_type(alone, tt.Tensor2D[Literal[5], Literal[2], tt.NoneTape, np.float32])
        assert alone.shape == (5, 2)
    for first, second in batches_exact(x, y, size=Batch(5)):
        assert_type(first, tt.Tensor2D[Batch, Literal[2], tt.NoneTape, np.float32])
        assert_type(second, tt.Tensor1D[Batch, tt.NoneTape, np.int64])
        assert (first.shape, second.shape) == ((5, 2), (5,))
    for one, two, three in batches(x, y, x, size=12):
        assert_type(one, tt.Tensor2D[Any, Literal[2], tt.NoneTape, np.float32])
        assert_type(two, tt.Tensor1D[Any, tt.NoneTape, np.int64])
        assert_type(three, tt.Tensor2D[Any, Literal[2], tt.NoneTape, np.float32])
        assert three.shape == (12, 2)


def test_the_repr_says_how_many_of_which_size(rng: np.random.Generator) -> None:
    assert repr(batches(*data(12), size=5)) == "Batches(3 of 5, in order)"
    assert repr(batches_exact(*data(12), size=5, rng=rng)) == "Batches(2 of 5, shuffled)"


@pytest.mark.parametrize("make", [batches, batches_exact])
class TestRefusals:
    @pytest.mark.parametrize("size", [0, -1])
    def test_of_a_size_that_is_not_positive(self, make: Any, size: int) -> None:
        with pytest.raises(tt.ArgumentValueError, match=rf"^{make.__name__}: size must"):
            make(*data(3), size=size)

    @pytest.mark.parametrize("size", [2.0, float("nan"), "2", None, True])
    def test_of_a_size_that_is_no_int(self, make: Any, size: Any) -> None:
        with pytest.raises(tt.ArgumentTypeError, match=rf"^{make.__name__}: size must be an int"):
            make(*data(3), size=size)

    def test_of_lengths_that_differ(self, make: Any) -> None:
        with pytest.raises(tt.ShapeError, match=rf"^{make.__name__}: .*\(3, 2\) and \(4, 2\)"):
            make(data(3)[0], data(4)[0], size=2)

    def test_of_tensors_without_rows(self, make: Any) -> None:
        with pytest.raises(tt.ShapeError, match=rf"^{make.__name__}: .*at least 1, got .*\(0, 2\)"):
            make(tt.zeros((0, 2)), size=2)
        with pytest.raises(tt.ShapeError, match=rf"^{make.__name__}: .*got shape \(\)"):
            make(tt.zeros(()), size=2)

    def test_of_what_is_not_a_plain_tensor(self, make: Any) -> None:
        x, y = data(3)
        with pytest.raises(tt.ArgumentTypeError, match=r"argument 2 must be a tensor.*from_numpy"):
            make(x, y.numpy(), size=2)
        with pytest.raises(tt.UntracedTensorError, match="argument 1 must be a plain value"):
            make(x.trace(), y, size=2)
        with pytest.raises(tt.ArgumentTypeError, match="give at least one tensor"):
            make(size=2)

    def test_of_a_seed_in_place_of_a_generator(self, make: Any) -> None:
        with pytest.raises(tt.ArgumentTypeError, match="rng must be a numpy Generator"):
            make(*data(3), size=2, rng=0)


def test_an_exact_batch_larger_than_the_data_is_refused() -> None:
    with pytest.raises(
        tt.ArgumentValueError, match=r"^batches_exact: size must not exceed the 3 rows, got 4; .*"
    ):
        batches_exact(*data(3), size=4)
    assert len(batches(*data(3), size=4)) == 1
