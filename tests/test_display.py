"""What a tensor looks like when it is printed: values, shape, dtype, tape."""

from __future__ import annotations

import numpy as np
import pytest

import tapetensor as tt


def test_a_small_tensor_is_shown_whole() -> None:
    x = tt.from_numpy(np.array([[1.0, -0.5], [np.nan, 2e10]]))

    assert repr(x) == (
        "Tensor([[ 1.e+00, -5.e-01],\n"
        "        [    nan,  2.e+10]], shape=(2, 2), dtype=float64, NoneTape)"
    )
    assert str(x) == repr(x) == f"{x}"


def test_a_large_one_is_cut_at_its_edges_as_numpys_is() -> None:
    shown = repr(tt.arange(3_000_000).reshape((3000, 1000)))

    assert shown.count("\n") == 6
    assert "[      0,       1,       2, ...,     997,     998,     999]" in shown
    assert shown.endswith("shape=(3000, 1000), dtype=int64, NoneTape)")


@pytest.mark.parametrize(
    ("shape", "shown"), [((), "1."), ((0,), "[]"), ((2, 0, 3), "[]"), ((1, 1), "[[1.]]")]
)
def test_no_elements_and_one_element_show_their_shape(shape: tuple[int, ...], shown: str) -> None:
    assert repr(tt.ones(shape)) == f"Tensor({shown}, shape={shape}, dtype=float32, NoneTape)"


def test_the_tape_shows_how_much_is_recorded() -> None:
    x = tt.ones(()).trace()
    y = x.square().abs()

    assert repr(y) == "Tensor(1., shape=(), dtype=float32, OwnedTape(2 ops))"
    assert repr(x) == "Tensor(1., shape=(), dtype=float32, OwnedTape(0 ops))"


def test_numpys_print_options_hold() -> None:
    with np.printoptions(precision=2):
        assert repr(tt.full((1,), 1 / 3)) == "Tensor([0.33], shape=(1,), dtype=float32, NoneTape)"


def test_a_number_format_for_several_elements_is_refused() -> None:
    with pytest.raises(tt.ShapeError, match=r"format: a tensor of shape \(2,\) has 2 elements"):
        f"{tt.ones((2,)):.2f}"  # formatting is the case
