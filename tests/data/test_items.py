"""Items that are no tensors: shuffled, in lists, taken apart."""

from __future__ import annotations

from typing import Any, assert_type

import numpy as np
import pytest

import tapetensor as tt
from tapetensor.data import batched, collate, shuffled


class Squares:
    """A dataset that makes its items when they are asked for."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.asked: list[int] = []

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> tuple[int, str]:
        self.asked.append(index)
        return index * index, f"square {index}"


def test_shuffled_items_are_all_there_once_in_an_order_that_the_generator_draws() -> None:
    def draw(seed: int) -> list[tuple[int, str]]:
        return list(shuffled(Squares(20), np.random.default_rng(seed)))

    assert sorted(draw(0)) == [(n * n, f"square {n}") for n in range(20)]
    assert draw(0) == draw(0)
    assert draw(0) != draw(1)


def test_items_in_order_come_in_order() -> None:
    assert list(batched(range(5), 2)) == [[0, 1], [2, 3], [4]]
    assert list(batched(range(5), 2, exact=True)) == [[0, 1], [2, 3]]
    assert list(batched(range(4), 2)) == list(batched(range(4), 2, exact=True))
    assert list(batched([], 2)) == list(batched([], 2, exact=True)) == []
    assert list(batched(iter("abc"), 5)) == [["a", "b", "c"]]


def test_a_whole_chain_makes_typed_tensors(rng: np.random.Generator) -> None:
    dataset = [(tt.full((2,), float(n)), n) for n in range(6)]
    seen = []
    for rows in batched(shuffled(dataset, rng), size=4, exact=True):
        tensors, numbers = collate(rows)
        assert_type(numbers, list[int])
        x = tt.stack(tensors)
        assert x.shape == (4, 2)
        np.testing.assert_array_equal(x.numpy()[:, 0], numbers)
        seen += numbers
    assert len(set(seen)) == 4


def test_triples_are_taken_apart_too() -> None:
    parts = assert_type(
        collate([(1, "a", 1.5), (2, "b", 2.5)]), tuple[list[int], list[str], list[float]]
    )

    assert parts == ([1, 2], ["a", "b"], [1.5, 2.5])


def test_rows_that_do_not_go_together_are_refused() -> None:
    ragged: Any = [(1, 2), (1, 2, 3)]
    lists: Any = [[1, 2]]

    with pytest.raises(tt.ShapeError, match=r"^collate: .*same number of parts, got 2 and 3"):
        collate(ragged)
    with pytest.raises(tt.ShapeError, match=r"^collate: .*got no rows"):
        collate(iter([]))
    with pytest.raises(tt.ArgumentTypeError, match=r"^collate: a row must be a tuple, got list"):
        collate(lists)


def test_sizes_and_datasets_of_the_wrong_kind_are_refused(rng: np.random.Generator) -> None:
    generator: Any = iter([1, 2])
    number: Any = 3
    seed: Any = 0

    for size in (0, -1):
        with pytest.raises(tt.ArgumentValueError, match=r"^batched: size must"):
            batched([1], size)
    with pytest.raises(tt.ArgumentTypeError, match=r"^batched: size must be an int"):
        batched([1], 2.0)  # type: ignore[arg-type]  # on purpose
    with pytest.raises(tt.ArgumentTypeError, match=r"^batched: items must be an iterable, got int"):
        batched(number, 2)
    with pytest.raises(tt.ArgumentTypeError, match=r"^shuffled: .*got list_iterator; make a list"):
        shuffled(generator, rng)
    with pytest.raises(tt.ArgumentTypeError, match=r"^shuffled: rng must be a numpy Generator"):
        shuffled([1], seed)
