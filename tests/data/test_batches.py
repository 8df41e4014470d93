"""Batches of tensors, of files and of items, splits, one-hot rows and changed images."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal, NewType, assert_type

import numpy as np
import pytest

import tapetensor as tt
from tapetensor import data
from tapetensor.data import batched, batches, batches_exact, collate, one_hot, shuffled

Rows = NewType("Rows", int)
Batch = NewType("Batch", int)
FIVE: Literal[5] = 5

Data = tt.Tensor2D[Rows, Literal[2], tt.NoneTape, np.float32]
Labels = tt.Tensor1D[Rows, tt.NoneTape, np.int64]


def numbered(rows: int) -> tuple[Data, Labels]:
    """Return rows of twice and thrice their number, and their numbers."""
    numbers = np.arange(rows)
    x: Data = tt.from_numpy(np.stack([numbers * 2, numbers * 3], axis=1), dtype=np.float32)
    y: Labels = tt.from_numpy(numbers, shape=(Rows(rows),), dtype=np.int64)
    return x, y


def numbers_in(epoch: Any) -> list[list[int]]:
    return [y.numpy().tolist() for _, y in epoch]


def test_batches_end_with_a_short_one_which_exact_batches_leave_out() -> None:
    whole = [[0, 1, 2, 3, 4], [5, 6, 7, 8, 9]]
    for epoch, rows in (
        (batches(*numbered(12), size=5), [*whole, [10, 11]]),
        (batches_exact(*numbered(12), size=5), whole),
        (batches(*numbered(10), size=5), whole),
        (batches_exact(*numbered(10), size=5), whole),
    ):
        assert len(epoch) == len(rows)
        assert numbers_in(epoch) == numbers_in(epoch) == rows


@pytest.mark.parametrize("make", [batches, batches_exact])
def test_the_rows_of_all_tensors_stay_together(make: Any, rng: np.random.Generator) -> None:
    for x, y in make(*numbered(13), size=4, rng=rng):
        np.testing.assert_array_equal(x.numpy()[:, 0], 2 * y.numpy())
        np.testing.assert_array_equal(x.numpy()[:, 1], 3 * y.numpy())


def test_with_a_generator_each_iteration_draws_a_new_order() -> None:
    epoch = batches(*numbered(50), size=8, rng=np.random.default_rng(0))
    once, again = numbers_in(epoch), numbers_in(epoch)

    assert once != again
    for order in (once, again):
        assert sorted(number for batch in order for number in batch) == list(range(50))
    assert once == numbers_in(batches(*numbered(50), size=8, rng=np.random.default_rng(0)))


def test_the_types_say_what_is_known_of_the_shape() -> None:
    x, y = numbered(12)
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
    assert repr(batches(*numbered(12), size=5)) == "Batches(3 of 5, in order)"
    assert repr(batches_exact(*numbered(12), size=5, rng=rng)) == "Batches(2 of 5, shuffled)"


@pytest.mark.parametrize("make", [batches, batches_exact])
def test_what_are_no_rows_and_no_size_is_refused(make: Any) -> None:
    (x, y), four = numbered(3), numbered(4)[0]
    refused: list[tuple[Any, type[Exception], str]] = [
        *[(lambda n=n: make(x, size=n), tt.ArgumentValueError, "size must") for n in (0, -1)],
        *[
            (lambda n=n: make(x, size=n), tt.ArgumentTypeError, "size must be an int")
            for n in (2.0, float("nan"), "2", None, True)
        ],
        (lambda: make(x, four, size=2), tt.ShapeError, r".*\(3, 2\) and \(4, 2\)"),
        (lambda: make(x[:0], size=2), tt.ShapeError, r".*at least 1, got .*\(0, 2\)"),
        (lambda: make(tt.zeros(()), size=2), tt.ShapeError, r".*got shape \(\)"),
        (lambda: make(x, y.numpy(), size=2), tt.ArgumentTypeError, "argument 2 must be a tensor"),
        (lambda: make(x.trace(), y, size=2), tt.UntracedTensorError, "argument 1 must be a plain"),
        (lambda: make(size=2), tt.ArgumentTypeError, "give at least one tensor"),
        (lambda: make(x, size=2, rng=0), tt.ArgumentTypeError, "rng must be a numpy Generator"),
    ]
    for call, error, message in refused:
        with pytest.raises(error, match=rf"^{make.__name__}: {message}"):
            call()


def test_an_exact_batch_larger_than_the_data_is_refused() -> None:
    with pytest.raises(
        tt.ArgumentValueError, match=r"^batches_exact: size must not exceed the 3 rows, got 4; .*"
    ):
        batches_exact(*numbered(3), size=4)
    assert len(batches(*numbered(3), size=4)) == 1


ROWS, COLUMNS = 50_000, 8


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A file of rows of their number."""
    rows = np.repeat(np.arange(ROWS, dtype=np.float32)[:, None], COLUMNS, axis=1)
    np.save(tmp_path / "rows.npy", rows)
    return tmp_path / "rows.npy"


@pytest.mark.parametrize("order", ["C", "F"])
def test_an_epoch_of_a_file_holds_no_more_than_a_batch(path: Path, order: Any) -> None:
    whole = np.load(path)
    np.save(path, np.asarray(whole, order=order))
    tracemalloc.start()
    try:
        x: Any = tt.from_memmap(np.load(path, mmap_mode="r"), (ROWS, COLUMNS))
        total = 0.0
        for batch in batches(x, size=100):
            total += batch.sum().item()
        # A random order is one number for each row, and the batches are copies.
        for batch in batches(x, size=100, rng=np.random.default_rng(0)):
            total += batch.sum().item()
        assert tracemalloc.get_traced_memory()[1] < whole.nbytes / 2
    finally:
        tracemalloc.stop()
    assert total == pytest.approx(2 * whole.sum(dtype=np.float64), rel=1e-6)


def test_parts_of_a_file_are_borrowed_too(path: Path) -> None:
    mapped = np.load(path, mmap_mode="r")
    x = tt.from_memmap(mapped[10:20, :2], (10, 2))
    assert x.numpy()[:, 0].tolist() == list(range(10, 20))
    assert np.shares_memory(x.numpy(), mapped)


@pytest.mark.parametrize("mode", ["r+", "c"])
def test_what_can_be_written_through_is_refused(path: Path, mode: Any) -> None:
    mapped = np.load(path, mmap_mode=mode)
    mapped.flags.writeable = False
    for array in (np.load(path, mmap_mode=mode), mapped):
        with pytest.raises(tt.ArgumentValueError, match="can be written through"):
            tt.from_memmap(array)


def test_a_tensor_over_a_file_cannot_be_written_to(path: Path) -> None:
    x = tt.from_memmap(np.load(path, mmap_mode="r"))
    array = x.numpy()
    with pytest.raises(ValueError, match="read-only"):
        array[0, 0] = 1
    with pytest.raises(ValueError, match="cannot set WRITEABLE"):
        array.flags.writeable = True


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


def test_every_row_is_in_one_part_beside_its_label(rng: np.random.Generator) -> None:
    x: tt.Tensor2D[int, int] = tt.normal((20, 3), rng=rng)
    labels = tt.arange(20)
    (x1, labels1), (x2, labels2) = data.split(x, labels, held_out=0.25, rng=rng)
    assert_type(labels1, tt.Tensor1D[Any, tt.NoneTape, np.int64])
    assert_type(x2, tt.Tensor2D[Any, int])

    assert (len(x1), len(x2)) == (15, 5)
    assert sorted(labels1.tolist() + labels2.tolist()) == list(range(20))
    assert labels1.tolist() != sorted(labels1.tolist())
    for part, chosen in ((x1, labels1), (x2, labels2)):
        np.testing.assert_array_equal(part.numpy(), x.numpy()[chosen.numpy()])


def test_without_a_generator_the_last_rows_are_held_out() -> None:
    first, last = data.split(tt.arange(4), held_out=0.5)

    assert (first.tolist(), last.tolist()) == ([0, 1], [2, 3])


THREE: Literal[3] = 3


@pytest.mark.parametrize("shape", [(), (4,), (2, 3), (0,)])
def test_each_label_becomes_a_row_of_the_identity(
    shape: tuple[int, ...], rng: np.random.Generator
) -> None:
    labels = rng.integers(0, 5, shape)

    np.testing.assert_array_equal(
        one_hot(tt.from_numpy(np.asarray(labels)), 5).numpy(), np.eye(5)[labels]
    )


def test_the_type_says_the_classes_and_the_dtype() -> None:
    labels: tt.Tensor1D[Literal[2], tt.NoneTape, np.uint8] = tt.zeros((2,), np.uint8)
    by_default = assert_type(
        one_hot(labels, THREE), tt.Tensor2D[Literal[2], Literal[3], tt.NoneTape, np.float32]
    )
    asked_for = assert_type(
        one_hot(labels, THREE, np.float64),
        tt.Tensor2D[Literal[2], Literal[3], tt.NoneTape, np.float64],
    )

    assert (by_default.shape, by_default.dtype.name) == ((2, 3), "float32")
    assert (asked_for.shape, asked_for.dtype.name) == ((2, 3), "float64")


# Of which type checkers know better.
untyped: Any = data
RNG = np.random.default_rng(0)
REFUSED: list[tuple[Callable[[], Any], type[Exception], str]] = [
    (lambda: untyped.collate([(1, 2), (1, 2, 3)]), tt.ShapeError, "collate: .*got 2 and 3"),
    (lambda: collate(iter([])), tt.ShapeError, "collate: .*got no rows"),
    (lambda: untyped.collate([[1, 2]]), tt.ArgumentTypeError, "collate: a row must be a tuple"),
    *[(lambda n=n: batched([1], n), tt.ArgumentValueError, "batched: size must") for n in (0, -1)],
    (lambda: untyped.batched([1], 2.0), tt.ArgumentTypeError, "batched: size must be an int"),
    (lambda: untyped.batched(3, 2), tt.ArgumentTypeError, "batched: items must be an"),
    (lambda: untyped.shuffled(iter([1]), RNG), tt.ArgumentTypeError, "shuffled: .*; make a list"),
    (lambda: untyped.shuffled([1], 0), tt.ArgumentTypeError, "shuffled: rng must be a numpy"),
    (lambda: data.split(tt.arange(4), held_out=0.1), tt.ArgumentValueError, "split: held_out=0.1"),
    (lambda: data.split(tt.arange(4), held_out=1), tt.ArgumentValueError, "split: held_out must"),
    (
        lambda: untyped.split(tt.zeros((4,)), tt.zeros((5,)), held_out=0.5),
        tt.ShapeError,
        r"split: .* got shape \(4,\) and \(5,\)",
    ),
    (
        lambda: untyped.split(tt.zeros((4,)).trace(), held_out=0.5),
        tt.UntracedTensorError,
        "split: argument 1",
    ),
    (lambda: one_hot(tt.arange(4), 3), tt.AxisError, "one_hot: labels of 3 classes .*found 3\n"),
    (lambda: one_hot(-tt.arange(2), 3), tt.AxisError, "one_hot: labels of 3 classes .*found -1\n"),
    (lambda: untyped.one_hot(tt.zeros((2,)), 3), tt.DTypeError, "one_hot: labels must be integers"),
    (
        lambda: untyped.one_hot(tt.zeros((2,)).trace(), 3),
        tt.UntracedTensorError,
        "one_hot: labels must be a plain value",
    ),
    (lambda: untyped.one_hot(np.zeros(2), 3), tt.ArgumentTypeError, "one_hot: labels must be a"),
]


def test_what_does_not_fit_is_refused() -> None:
    for call, error, message in REFUSED:
        with pytest.raises(error, match=f"^{message}"):
            call()


IMAGES = np.arange(1, 2 * 3 * 4 * 5 + 1, dtype=np.float32).reshape((2, 3, 4, 5))
ALL: list[Callable[[Any, np.random.Generator], Any]] = [
    lambda images, rng: data.random_flip(images, rng),
    lambda images, rng: data.random_crop(images, 1, rng),
    lambda images, rng: data.random_erase(images, 2, rng),
]


@pytest.mark.parametrize("change", ALL)
@pytest.mark.parametrize("images", [IMAGES, IMAGES[:, 0], IMAGES.astype(np.uint8), IMAGES[:0]])
def test_a_tensor_gives_a_tensor_and_an_array_an_array_of_the_same_kind(
    change: Callable[[Any, np.random.Generator], Any], images: Any
) -> None:
    before = images.copy()
    array = change(images, np.random.default_rng(1))
    tensor = change(tt.from_numpy(images), np.random.default_rng(1))

    assert isinstance(array, np.ndarray)
    assert (array.shape, array.dtype) == (images.shape, images.dtype)
    np.testing.assert_array_equal(tensor.numpy(), array)
    assert tensor.dtype == images.dtype
    np.testing.assert_array_equal(images, before)


def test_an_image_is_flipped_or_it_is_not() -> None:
    found = data.random_flip(np.repeat(IMAGES, 50, axis=0), np.random.default_rng(0))
    originals = np.repeat(IMAGES, 50, axis=0)
    flips = (found == originals[..., ::-1]).all(axis=(1, 2, 3))
    stays = (found == originals).all(axis=(1, 2, 3))

    assert np.logical_xor(flips, stays).all()
    assert 30 < sum(flips) < 70
    np.testing.assert_array_equal(data.random_flip(IMAGES, np.random.default_rng(0), p=0.0), IMAGES)


def test_an_image_is_moved_as_a_whole_and_zeros_come_in() -> None:
    moves = set()
    for one in data.random_crop(np.repeat(IMAGES[:1], 200, axis=0), 1, np.random.default_rng(0)):
        padded = np.pad(IMAGES[0], ((0, 0), (1, 1), (1, 1)))
        (move,) = [
            (top, left)
            for top in range(3)
            for left in range(3)
            if np.array_equal(one, padded[:, top : top + 4, left : left + 5])
        ]
        moves.add(move)

    assert len(moves) == 9
    np.testing.assert_array_equal(data.random_crop(IMAGES, 0, np.random.default_rng(0)), IMAGES)


def test_a_square_is_erased_in_all_channels_and_may_reach_over_an_edge() -> None:
    sizes = set()
    many = np.repeat(IMAGES[:1], 200, axis=0)
    for one in data.random_erase(many, 3, np.random.default_rng(0), value=-1.0):
        erased = one == -1.0
        assert (erased == erased[0]).all()
        np.testing.assert_array_equal(one[~erased], IMAGES[0][~erased])
        rows, columns = erased[0].any(axis=1).sum(), erased[0].any(axis=0).sum()
        assert rows * columns == erased[0].sum()
        sizes.add((int(rows), int(columns)))

    assert sizes == {(rows, columns) for rows in (2, 3) for columns in (2, 3)}


@pytest.mark.parametrize("change", ALL)
def test_what_are_no_images_is_refused(
    change: Callable[[Any, np.random.Generator], Any], rng: np.random.Generator
) -> None:
    with pytest.raises(tt.ShapeError, match=r"got \(4, 5\); of one image write image\[None\]"):
        change(IMAGES[0, 0], rng)
    with pytest.raises(tt.ArgumentTypeError, match="a tensor or a numpy array, got list"):
        change(IMAGES.tolist(), rng)
    with pytest.raises(tt.UntracedTensorError, match="trace what comes out instead"):
        change(tt.from_numpy(IMAGES).trace(), rng)
    wrong: Any = 0
    with pytest.raises(tt.ArgumentTypeError, match="rng"):
        change(IMAGES, wrong)
