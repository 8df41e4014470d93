"""Images that are flipped, moved and erased at random."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tapetensor as tt
from tapetensor import data

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
