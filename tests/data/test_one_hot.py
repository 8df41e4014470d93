"""One-hot codes."""

from __future__ import annotations

from typing import Any, Literal, assert_type

import numpy as np
import pytest

import tapetensor as tt
from tapetensor.data import one_hot

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


@pytest.mark.parametrize("wrong", [3, -1])
def test_a_label_that_is_no_class_is_refused_by_its_value(wrong: int) -> None:
    with pytest.raises(tt.AxisError, match=rf"^one_hot: labels of 3 classes .*found {wrong}\n"):
        one_hot(tt.from_numpy([0, wrong], dtype=np.int64), 3)


def test_labels_that_are_not_plain_integers_are_refused() -> None:
    floats: Any = tt.zeros((2,))

    with pytest.raises(tt.DTypeError, match="one_hot: labels must be integers, got float32"):
        one_hot(floats, 3)
    with pytest.raises(tt.UntracedTensorError, match="one_hot: labels must be a plain value"):
        one_hot(floats.trace(), 3)
    with pytest.raises(tt.ArgumentTypeError, match="one_hot: labels must be a tensor"):
        one_hot(floats.numpy(), 3)
