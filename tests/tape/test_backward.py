"""The backward pass: seeds, replay, and what a refused call leaves behind."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tapetensor as tt
from tapetensor.tape import Pullback
from tapetensor.tape.history import gathered

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


def test_an_empty_tensor_has_an_empty_gradient() -> None:
    empty = tt.zeros((0, 3))

    assert empty.trace().square().sum().backward()[empty].shape == (0, 3)


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


def test_steps_that_do_not_lead_to_the_result_are_skipped() -> None:
    x, w = tt.ones((2,)), tt.ones((2,))
    _, tape = (x.trace() * w).exp().split_tape()
    result = X.put_tape(tape).sum()

    assert [X.id] == list(result.backward())


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


def test_gradients_have_the_dtype_of_their_tensor() -> None:
    x = tt.from_numpy([1.0, 2.0], shape=(2,), dtype=np.float64)
    w = tt.from_numpy([3.0, 4.0], shape=(2,))
    grads = (x.trace().astype(np.float32) * w).sum().backward()

    assert np.float64 == grads[x].dtype
    assert np.float32 == grads[w].dtype


def test_pullbacks_never_write_to_their_cotangent_nor_to_an_operand() -> None:
    """Every array that a pullback can see is made read-only, so that a write would raise."""
    x = tt.from_numpy([[0.3, 0.7], [0.2, 0.9]], shape=(2, 2), dtype=np.float64)
    w = tt.from_numpy([[0.1, 0.4], [0.5, 0.6]], shape=(2, 2), dtype=np.float64)
    u = tt.from_numpy([[0.2, 0.8], [0.4, 0.3]], shape=(2, 2), dtype=np.float64)
    ids = tt.from_numpy([1, 0, 1], shape=(3,), dtype=np.int64)
    for tensor in (x, w, u, ids):
        tensor.array.flags.writeable = False
    y: Any = x.trace()
    steps: list[Callable[[Any], Any]] = [
        lambda y: y @ w + u * y,
        lambda y: (y / w - w).exp().log().sqrt() ** w,
        lambda y: y.tanh().sigmoid().softplus().silu().gelu().relu().square().sin().cos(),
        lambda y: y.softmax().log_softmax().abs().clip(0.0, 9.0).reciprocal(),
        lambda y: y - y.max(axis=-1, keepdims=True) + w.min(),
        lambda y: y * y.var() + w.std(axis=0),
        lambda y: y.reshape((4,)).flatten().reshape((2, 2)).transpose().permute_dims((1, 0)),
        lambda y: y.take(ids)[1:][:, ::-1] + y[ids][1:],
        lambda y: tt.concat(y.split(2, 1), 1).expand_dims(0).squeeze(0),
        lambda y: tt.stack((y, w)).sum(axis=0).broadcast_to((3, 2, 2)).mean(axis=0),
        lambda y: tt.where(w > 0.3, y, w) + tt.maximum(y, w).logsumexp(axis=0),
        lambda y: tt.einsum("ij,kj->ik", y, y),
    ]
    for step in steps:
        y = step(y)
        y.array.flags.writeable = False
    # An op of one operand has its pullback bare.
    for one in gathered(y.history)[0]:
        several = one[2] if isinstance(one[2], tuple) else (one[2],)
        frozen = tuple([pullback and _on_frozen(pullback) for pullback in several])
        one[2] = frozen if isinstance(one[2], tuple) else frozen[0]
    grads = y.backward(tt.ones((2, 2), np.float64))

    assert np.isfinite(grads[x].numpy()).all()
    assert np.abs(grads[u].numpy()).sum() > 0


def _on_frozen(pullback: Pullback) -> Pullback:
    def on_frozen(g: Any) -> Any:
        # A numpy scalar cannot be written to anyway.
        if isinstance(g, np.ndarray):
            g.flags.writeable = False
        return pullback(g)

    return on_frozen
