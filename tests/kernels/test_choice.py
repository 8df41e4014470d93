"""Choosing between two arrays by their bits, against `np.where`."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tapetensor.kernels.numerics.choice import blend, can_blend, choose

_SHAPE = (64, 33)
_ODD = [np.nan, np.inf, -np.inf, -0.0, 0.0, 1e-45, -1.5]


def _side(dtype: Any, seed: int) -> Any:
    rng = np.random.default_rng(seed)
    side = rng.standard_normal(_SHAPE).astype(dtype)
    side.flat[rng.integers(0, side.size, 500)] = rng.choice(np.array(_ODD, dtype), 500)
    return side


def _mask() -> Any:
    return np.random.default_rng(9).random(_SHAPE) < 0.5


def _assert_same(found: Any, wanted: Any) -> None:
    assert found.dtype == wanted.dtype
    assert found.shape == wanted.shape
    assert found.tobytes() == wanted.tobytes()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("number", [0, 0.0, -0.0, 1, 2.5, np.inf])
def test_a_number_on_either_side_is_chosen_bit_by_bit(dtype: Any, number: float) -> None:
    mask, side = _mask(), _side(dtype, 0)

    _assert_same(choose(mask, side, number), np.where(mask, side, number))
    _assert_same(choose(mask, number, side), np.where(mask, number, side))


@pytest.mark.parametrize("shape", [_SHAPE[1:], (1, *_SHAPE[1:]), (*_SHAPE[:1], 1), (1, 1), (1,)])
def test_sides_that_are_repeated_are_chosen_bit_by_bit(shape: tuple[int, ...]) -> None:
    mask, side = _mask(), _side(np.float32, 6)
    part = side[tuple(slice(size) for size in (1, *shape)[-2:])].reshape(shape)

    for one in (part, np.broadcast_to(part, _SHAPE)):
        assert can_blend(mask, side, one)
        for sides in ((side, one), (one, side), (one, one), (one, np.array(0.5, np.float32))):
            for which in (mask, np.asfortranarray(mask)):
                found, wanted = choose(which, *sides), np.where(which, *sides)
                _assert_same(found, wanted)
                assert found.strides == wanted.strides


def test_what_has_no_such_bits_is_left_to_numpy() -> None:
    mask, lhs = _mask(), _side(np.float32, 3)
    others: list[Any] = [
        lhs.astype(np.float64), lhs[None], np.float64(0.1), lhs.astype(np.float16), np.arange(33),
    ]  # fmt: skip

    for other in others:
        assert not can_blend(mask, lhs, other)
        _assert_same(choose(mask, lhs, other), np.where(mask, lhs, other))
    for number in (2.5, np.inf, np.nan):
        _assert_same(choose(mask, np.arange(33), number), np.where(mask, np.arange(33), number))
    assert not can_blend(mask[:2], lhs[:2], lhs[:2])
    _assert_same(choose(mask[:2], lhs[:2], 0), np.where(mask[:2], lhs[:2], 0))


@pytest.mark.parametrize("place", [0, 1])
def test_the_result_may_take_the_place_of_a_side(place: int) -> None:
    mask, sides = _mask(), (_side(np.float32, 4), _side(np.float32, 5))
    wanted = np.where(mask, *sides)

    found = blend(mask, *sides, out=sides[place])

    assert found is sides[place]
    _assert_same(found, wanted)
