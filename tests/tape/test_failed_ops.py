"""An op that fails changes nothing: every operand is as before and can be used."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tapetensor as tt
from tapetensor.tape import Pullbacks
from tapetensor.tensor.apply import apply


@pytest.mark.parametrize(
    "fail",
    [
        lambda x, y: x + y,
        lambda x, y: x @ y,
        lambda x, y: tt.concat((x, y)),
        lambda x, y: tt.stack((x, y)),
        lambda x, y: tt.maximum(x, y),
        lambda x, y: tt.where(x > 0.0, x, y),
        lambda x, y: tt.einsum("ij,ij->", x, y),
        lambda x, y: x.backward(y),
        lambda x, y: x ** y.astype(np.float64),
    ],
)
def test_a_failed_op_on_two_tapes_leaves_both_usable(fail: Callable[[Any, Any], object]) -> None:
    left, right = tt.full((2, 3), 2.0), tt.full((2, 2), 3.0)
    x, y = left.trace().square(), right.trace().square()

    with pytest.raises(tt.TapeTensorError):
        fail(x, y)
    assert x.owns_tape
    assert (x.sum() + y.sum()).backward()[right].numpy().tolist() == [[6.0] * 2] * 2


def test_an_exception_of_any_kind_in_a_kernel_changes_nothing() -> None:
    def kernel(lhs: Any, rhs: Any) -> tuple[Any, Pullbacks]:
        raise RuntimeError("out of luck")

    left, right = tt.ones((2,)), tt.ones((2,))
    x, y = left.trace(), right.trace()

    with pytest.raises(RuntimeError, match="out of luck"):
        apply(kernel, (x, y))
    assert set((x + y).sum().backward()) == {left.id, right.id}


def test_a_kernel_that_changes_the_dtype_is_refused() -> None:
    def kernel(x: Any) -> tuple[Any, Pullbacks]:
        return x.astype(np.float64), (None,)

    x = tt.ones((2,)).trace()

    with pytest.raises(tt.DTypeError, match="kernel: not defined for dtype float32"):
        apply(kernel, (x,))
    assert x.exp().owns_tape
