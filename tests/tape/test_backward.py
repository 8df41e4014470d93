"""The backward pass: seeds, replay, and what a refused call leaves behind."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tapetensor as tt

X = tt.from_numpy([[1.0, 2.0], [3.0, 4.0]], shape=(2, 2))


def test_a_scalar_needs_no_cotangent() -> None:
    assert X.trace().square().sum().backward()[X].numpy().tolist() == [[2.0, 4.0], [6.0, 8.0]]


def test_a_scalar_takes_a_cotangent() -> None:
    cotangent = tt.full((), 0.5)

    assert X.trace().sum().backward(cotangent)[X].numpy()[0, 0] == 0.5


def test_a_cotangent_weights_the_elements() -> None:
    cotangent = tt.from_numpy([[1.0, 0.0], [0.0, -1.0]], shape=(2, 2))
    grads = X.trace().square().backward(cotangent)

    assert grads[X].numpy().tolist() == [[2.0, 0.0], [0.0, -8.0]]


def test_a_traced_leaf_is_its_own_result() -> None:
    scalar = tt.full((), 3.0)
    cotangent = tt.ones((2, 2))

    assert scalar.trace().backward()[scalar].item() == 1.0
    assert X.trace().backward(cotangent)[X].numpy().tolist() == [[1.0, 1.0], [1.0, 1.0]]


def test_the_cotangent_stays_as_it_was() -> None:
    cotangent = tt.from_numpy([[1.0, 2.0], [3.0, 4.0]], shape=(2, 2))
    grads = (X.trace() + X).backward(cotangent)
    grads.insert(X, np.ones((2, 2), np.float32))
    grads.clip_by_global_norm(0.1)

    assert cotangent.numpy().tolist() == [[1.0, 2.0], [3.0, 4.0]]


@pytest.mark.parametrize(
    ("cotangent", "error", "message"),
    [
        (None, tt.ShapeError, r"backward: only a scalar .* shape \(2, 2\)"),
        (
            tt.ones((2,)),
            tt.ShapeError,
            r"backward: the cotangent has shape \(2,\), the tensor \(2, 2\)",
        ),
        (tt.ones((1, 2, 2)), tt.ShapeError, r"backward: the cotangent has shape \(1, 2, 2\)"),
        (
            tt.ones((2, 2), np.float64),
            tt.DTypeError,
            "backward: the cotangent has dtype float64, the tensor float32",
        ),
        (tt.ones((2, 2), np.int64), tt.DTypeError, "backward: the cotangent has dtype int64"),
        (tt.ones((2, 2)).trace(), tt.UntracedTensorError, "backward: .*plain value.*detach"),
        (np.ones((2, 2)), tt.ArgumentTypeError, "backward: the cotangent must be a tensor"),
        (1.0, tt.ArgumentTypeError, "backward: the cotangent must be a tensor, got float"),
    ],
)
def test_a_cotangent_that_does_not_fit_is_refused_and_the_tensor_stays_usable(
    cotangent: Any, error: type[Exception], message: str
) -> None:
    y: Any = X.trace().square()

    with pytest.raises(error, match=message):
        y.backward(cotangent)
    assert y.sum().backward()[X].numpy().tolist() == [[2.0, 4.0], [6.0, 8.0]]


def test_leafs_that_were_plain_at_the_time_get_their_gradients() -> None:
    w, b = tt.full((2, 2), 2.0), tt.ones((2,))
    grads = (X.trace() @ w + b).sum().backward()

    assert grads[w].numpy().tolist() == [[4.0, 4.0], [6.0, 6.0]]
    assert grads[b].numpy().tolist() == [2.0, 2.0]
    assert len(grads) == 3


def test_a_value_computed_without_a_tape_is_a_constant() -> None:
    constant = X.detach().square()
    grads = (X.trace() * constant).sum().backward()

    assert grads[X].numpy().tolist() == [[1.0, 4.0], [9.0, 16.0]]
    assert grads[constant].numpy().tolist() == [[1.0, 2.0], [3.0, 4.0]]
