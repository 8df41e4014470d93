"""Rows for training, and rows that are held out."""

from __future__ import annotations

from typing import Any, assert_type

import numpy as np
import pytest

import tapetensor as tt
from tapetensor import data


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


def test_a_part_without_rows_and_rows_without_a_partner_are_refused() -> None:
    five: Any = tt.zeros((5,))
    with pytest.raises(tt.ArgumentValueError, match=r"held_out=0.1 of 4 rows leaves a part"):
        data.split(tt.arange(4), held_out=0.1)
    with pytest.raises(tt.ArgumentValueError, match=r"held_out must be in \(0, 1\), got 1"):
        data.split(tt.arange(4), held_out=1)
    with pytest.raises(tt.ShapeError, match=r"got shape \(4,\) and \(5,\)"):
        data.split(tt.zeros((4,)), five, held_out=0.5)
    with pytest.raises(tt.UntracedTensorError):
        data.split(tt.zeros((4,)).trace(), held_out=0.5)  # type: ignore[arg-type]  # traced
