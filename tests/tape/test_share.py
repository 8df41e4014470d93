"""Handles that each own the whole record of a tensor."""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tapetensor as tt
from tests.tape.losing import X


def test_handles_that_share_a_record_are_right_each_alone_and_all_together() -> None:
    x = tt.from_numpy([0.5, 2.0])

    def heads(pick: Callable[[Any, Any, Any], Any]) -> Any:
        a, b, c = (x.trace().square() * x).share(3)
        return pick(a.sin().sum(), b.exp().sum(), c.sum()).backward()[x].numpy()

    alone = [heads(lambda *of: of[0]), heads(lambda *of: of[1]), heads(lambda *of: of[2])]
    np.testing.assert_allclose(alone[2], 3 * x.numpy() ** 2, rtol=1e-6)
    both = heads(lambda a, b, c: a + b)
    np.testing.assert_allclose(both, alone[0] + alone[1], rtol=1e-5)
    np.testing.assert_allclose(heads(lambda a, b, c: c + (b + a)), sum(alone), rtol=1e-5)


def test_a_further_handle_leaves_the_tensor_as_it_is() -> None:
    x = tt.from_numpy([3.0])
    y = x.trace().square()
    handle = y.share()
    assert handle.id == y.id
    assert y.sum().backward()[x].item() == 6.0
    assert (handle * 2.0).sum().backward()[x].item() == 12.0
    with pytest.raises(tt.MovedTensorError, match="'sum' took its tape"):
        y.exp()


def test_handles_of_a_plain_tensor_are_plain() -> None:
    a, b = X.share(2)
    assert (a.owns_tape, b.owns_tape, X.share().owns_tape) == (False, False, False)
    assert a.id == b.id == X.id


@pytest.mark.parametrize(("n", "error"), [(0, tt.ArgumentValueError), (1.5, tt.ArgumentTypeError)])
def test_a_number_of_handles_that_is_none_is_refused(n: Any, error: type[Exception]) -> None:
    y = X.trace().exp()
    with pytest.raises(error, match="share: n"):
        y.share(n)
    assert y.owns_tape


def test_many_handles_of_a_long_tape_take_no_memory_of_its_length() -> None:
    y = X.trace()
    for _ in range(2_000):
        y = y.sin()
    gc.collect()
    tracemalloc.start()
    try:
        handles = [y.share() for _ in range(500)]
        size, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert size < 1_000_000
    total = y
    for one in handles:
        total = total + one
    assert len(total.sum().backward()) == 1


def test_a_handle_lacks_what_the_tape_lacked_that_it_shares() -> None:
    w = tt.from_numpy([2.0])
    for pick in range(2):
        handle = (tt.from_numpy([3.0]).trace() * w.exp()).share(2)[pick]
        with pytest.raises(tt.MissingGradientError):
            (handle * w).sum().backward().get(w)


def test_handles_of_handles_are_walked_once() -> None:
    x = tt.from_numpy([1.0])
    y: tt.Tensor[Any, Any, Any] = x.trace()
    for _ in range(60):
        a, b = y.share(2)
        y = (a * 0.5).share() + (b * 1.5).share()
    assert y.sum().backward()[x].item() == 2.0**60
