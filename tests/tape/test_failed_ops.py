"""An op that fails changes nothing: every operand is as before and can be used."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tapetensor as tt
from tapetensor.tape import Pullbacks
from tapetensor.tensor.apply import apply

X: Any = tt.ones((2, 3))

SINGLE: list[tuple[str, Callable[[Any], object]]] = [
    ("add", lambda x: x + tt.ones((7,))),
    ("add", lambda x: x + tt.ones((2, 3), np.float64)),
    ("add", lambda x: x + tt.ones((2, 3), np.int64)),
    ("add", lambda x: x + np.ones((2, 3))),
    ("matmul", lambda x: x @ tt.ones((2, 2))),
    ("sum", lambda x: x.sum(axis=2)),
    ("sum", lambda x: x.sum(keepdims=1)),
    ("softmax", lambda x: x.softmax(axis=-3)),
    ("var", lambda x: x.var(correction=6)),
    ("reshape", lambda x: x.reshape((4, 2))),
    ("permute_dims", lambda x: x.permute_dims((0, 0))),
    ("broadcast_to", lambda x: x.broadcast_to((3, 2))),
    ("squeeze", lambda x: x.squeeze(0)),
    ("expand_dims", lambda x: x.expand_dims(4)),
    ("split", lambda x: x.split(2, axis=1)),
    ("split", lambda x: x.split([1, 2], axis=0)),
    ("getitem", lambda x: x[2]),
    ("getitem", lambda x: x[:, 0, 0]),
    ("getitem", lambda x: x["a"]),
    ("take", lambda x: x.take(tt.from_numpy([2], shape=(1,), dtype=np.int64))),
    ("take", lambda x: x.take(tt.ones((1,)))),
    ("astype", lambda x: x.astype(np.complex64)),
    ("clip", lambda x: x.clip(1.0, 0.0)),
    ("gelu", lambda x: x.gelu("sigmoid")),
    ("concat", lambda x: tt.concat((x, tt.ones((2, 2))))),
    ("stack", lambda x: tt.stack((x, tt.ones((3, 2))))),
    ("where", lambda x: tt.where(X, x, 0.0)),
    ("einsum", lambda x: tt.einsum("ij,jk->ik", x, tt.ones((2, 2)))),
    ("maximum", lambda x: tt.maximum(x, tt.ones((2,)))),
    ("put_tape", lambda x: x.put_tape(tt.OwnedTape())),
    ("trace", lambda x: x.trace()),
    ("backward", lambda x: x.backward()),
]


@pytest.mark.parametrize(
    ("op", "fail"), [pytest.param(*row, id=f"{i}-{row[0]}") for i, row in enumerate(SINGLE)]
)
def test_a_failed_op_names_itself_and_leaves_its_operand_usable(
    op: str, fail: Callable[[Any], object]
) -> None:
    x = tt.full((2, 3), 2.0)
    y = x.trace().square()
    before = repr(y)

    with pytest.raises(tt.TapeTensorError, match=f"^{op}: "):
        fail(y)
    assert repr(y) == before
    assert y.sum().backward()[x].numpy().tolist() == [[4.0] * 3] * 2


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
