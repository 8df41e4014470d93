"""Moving a tape spends the tensor: every way of it, and what the error then says."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tapetensor as tt

X: Any = tt.from_numpy([[1.0, 2.0], [3.0, 4.0]], shape=(2, 2))
SECOND_HANDLE = r"twin = x\.share\(\)"

# Each way to spend a traced 2 x 2 tensor: what the error calls it, and the cure that it names.
WAYS_TO_SPEND: list[tuple[str, Callable[[Any], object], str]] = [
    ("exp", lambda x: x.exp(), SECOND_HANDLE),
    ("add", lambda x: x + X, SECOND_HANDLE),
    ("add", lambda x: X + x, SECOND_HANDLE),
    ("add", lambda x: x + 1.0, SECOND_HANDLE),
    ("rsubtract", lambda x: 1.0 - x, SECOND_HANDLE),
    ("multiply", lambda x: x * x.with_empty_tape(), SECOND_HANDLE),
    ("matmul", lambda x: x @ X, SECOND_HANDLE),
    ("sum", lambda x: x.sum(), SECOND_HANDLE),
    ("softmax", lambda x: x.softmax(), SECOND_HANDLE),
    ("reshape", lambda x: x.reshape((4,)), SECOND_HANDLE),
    ("permute_dims", lambda x: x.permute_dims((1, 0)), SECOND_HANDLE),
    ("transpose", lambda x: x.transpose(), SECOND_HANDLE),
    ("getitem", lambda x: x[0], SECOND_HANDLE),
    ("concat", lambda x: tt.concat((X, x)), SECOND_HANDLE),
    ("stack", lambda x: tt.stack((x, X)), SECOND_HANDLE),
    ("where", lambda x: tt.where(X > 2.0, x, 0.0), SECOND_HANDLE),
    ("maximum", lambda x: tt.maximum(x, X), SECOND_HANDLE),
    ("einsum", lambda x: tt.einsum("ij->ji", x), SECOND_HANDLE),
    ("split", lambda x: x.split(2), "go on with the result of 'split'"),
    ("split_tape", lambda x: x.split_tape(), "the two parts that split_tape"),
    ("backward", lambda x: x.backward(X), "keep the Gradients that backward"),
]

USES: list[tuple[str, Callable[[Any], object]]] = [
    ("exp", lambda x: x.exp()),
    ("add", lambda x: X + x),
    ("multiply", lambda x: x * 2.0),
    ("matmul", lambda x: x @ X),
    ("getitem", lambda x: x[0]),
    ("getitem", lambda x: X[x]),
    ("concat", lambda x: tt.concat((X, x))),
    ("equal", lambda x: x == X),
    ("greater", lambda x: x > 0.0),
    ("less", lambda x: operator.lt(X, x)),
    ("argmax", lambda x: x.argmax(-1)),
    ("split", lambda x: x.split(2)),
    ("trace", lambda x: x.trace()),
    ("traced", lambda x: x.traced()),
    ("split_tape", lambda x: x.split_tape()),
    ("put_tape", lambda x: x.put_tape(tt.NoneTape())),
    ("with_empty_tape", lambda x: x.with_empty_tape()),
    ("retaped", lambda x: x.retaped(tt.OwnedTape)),
    ("detach", lambda x: x.detach()),
    ("backward", lambda x: x.backward()),
    ("backward", lambda x: X.trace().backward(x)),
]


@pytest.mark.parametrize(
    ("taker", "spend", "cure"),
    [pytest.param(*way, id=f"{i}-{way[0]}") for i, way in enumerate(WAYS_TO_SPEND)],
)
def test_whatever_takes_a_tape_spends_the_tensor_and_the_error_names_it_and_the_cure(
    taker: str, spend: Callable[[Any], object], cure: str
) -> None:
    x = X.trace()
    spend(x)

    with pytest.raises(
        tt.MovedTensorError,
        match=rf"tanh: the tensor of shape \(2, 2\) is spent, '{taker}' took its tape; .*{cure}",
    ):
        x.tanh()
    assert f"spent by {taker}" in repr(x)
    assert not x.owns_tape


@pytest.mark.parametrize(
    ("op", "use"), [pytest.param(*use, id=f"{i}-{use[0]}") for i, use in enumerate(USES)]
)
def test_every_use_of_a_spent_tensor_is_refused_by_its_own_name(
    op: str, use: Callable[[Any], object]
) -> None:
    x = X.trace()
    x.sqrt()

    with pytest.raises(tt.MovedTensorError, match=f"^{op}: .* spent, 'sqrt' took its tape"):
        use(x)


@pytest.mark.parametrize(
    ("op", "use"),
    [
        ("multiply", lambda x: x * x),
        ("add", lambda x: x + x),
        ("matmul", lambda x: x @ x),
        ("concat", lambda x: tt.concat((x, x))),
        ("stack", lambda x: tt.stack((X, x, x))),
        ("where", lambda x: tt.where(X > 0.0, x, x)),
        ("maximum", lambda x: tt.maximum(x, x)),
        ("einsum", lambda x: tt.einsum("ij,ij->", x, x)),
    ],
)
def test_one_traced_tensor_given_twice_to_an_op_is_refused_and_stays_usable(
    op: str, use: Callable[[Any], object]
) -> None:
    x = X.trace()

    with pytest.raises(
        tt.MovedTensorError, match=rf"{op}: .* given twice and owns one tape.*share"
    ):
        use(x)
    assert x.sum().backward()[X].numpy().tolist() == [[1.0, 1.0], [1.0, 1.0]]


def test_ops_borrow_plain_tensors() -> None:
    x = tt.ones((2, 2))
    for _ in range(2):
        x.trace() @ x + x

    assert (x @ x).numpy().tolist() == [[2.0, 2.0], [2.0, 2.0]]


def test_comparisons_borrow_a_traced_tensor() -> None:
    x = X.trace()
    mask = x > 2.0
    positions = x.argmax(-1)

    assert mask.numpy().tolist() == [[False, False], [True, True]]
    assert positions.numpy().tolist() == [1, 1]
    assert not mask.owns_tape
    assert x.owns_tape


def test_a_spent_tensor_can_still_be_read() -> None:
    plain = tt.from_numpy([[7.0]], shape=(1, 1))
    x: Any = plain.trace()
    x.exp()

    assert x.shape == (1, 1)
    assert plain.id == x.id
    assert np.float32 == x.dtype
    assert (x.ndim, x.size, len(x)) == (2, 1, 1)
    assert x.numpy().tolist() == [[7.0]]
    assert (x.item(), float(x), int(x), bool(x)) == (7.0, 7.0, 7, True)
    assert repr(x) == "Tensor([[7.]], shape=(1, 1), dtype=float32, spent by exp)"


def test_a_tape_is_put_on_one_tensor_only() -> None:
    plain, tape = X.trace().split_tape()
    first = plain.put_tape(tape)

    with pytest.raises(tt.MovedTensorError, match=r"put_tape: .*exactly one owner.*share"):
        plain.put_tape(tape)
    assert "moved" in repr(tape)
    assert first.sum().backward()[X].numpy().tolist() == [[1.0, 1.0], [1.0, 1.0]]


def test_a_tape_cannot_be_put_where_one_is() -> None:
    _, tape = X.trace().split_tape()
    owner = X.trace()

    with pytest.raises(tt.UntracedTensorError, match="put_tape: the tensor owns OwnedTape"):
        owner.put_tape(tape)
    assert X.put_tape(tape).owns_tape


@pytest.mark.parametrize("tape", [None, 1, tt.OwnedTape, tt.NoneTape, {}])
def test_only_a_tape_can_be_put_on_a_tensor(tape: object) -> None:
    with pytest.raises(tt.ArgumentTypeError, match="put_tape: the argument must be a tape, got"):
        X.put_tape(tape)


def test_a_moved_tape_takes_part_in_no_merge() -> None:
    plain, moved = X.trace().split_tape()
    plain.put_tape(moved)
    _, live = X.trace().exp().split_tape()

    with pytest.raises(tt.MovedTensorError):
        live.merge(moved)
    with pytest.raises(tt.MovedTensorError):
        moved.merge(live)
    with pytest.raises(tt.MovedTensorError):
        moved.fork()
    assert repr(live) == "OwnedTape(1 ops)"


def test_a_merged_tape_has_no_second_owner() -> None:
    _, first = X.trace().exp().split_tape()
    _, second = X.trace().exp().exp().split_tape()
    first.merge(second)

    assert repr(first) == "OwnedTape(3 ops)"
    with pytest.raises(tt.MovedTensorError, match="exactly one owner"):
        X.put_tape(second)


def test_a_plain_tensor_splits_into_itself_and_no_tape_and_stays_usable() -> None:
    plain, tape = X.split_tape()

    assert isinstance(tape, tt.NoneTape)
    assert repr(tape) == "NoneTape"
    assert X.id == plain.id == plain.put_tape(tape).id
    assert not plain.put_tape(tape).owns_tape
    assert not X.with_empty_tape().owns_tape
    assert (X + plain).shape == (2, 2)


def test_retaped_follows_the_tape_of_another_tensor() -> None:
    for like in (X, X.trace()):
        state = X.retaped(like.tape_type)

        assert like.owns_tape == state.owns_tape
        assert X.id == state.id


@pytest.mark.parametrize("tape_type", [None, "OwnedTape", tt.NoneTape(), int])
def test_retaped_takes_the_two_tape_types_only(tape_type: Any) -> None:
    with pytest.raises(tt.ArgumentTypeError, match="retaped: expected OwnedTape or NoneTape"):
        X.retaped(tape_type)


def test_the_tape_type_of_a_spent_tensor_is_still_the_one_that_its_type_says() -> None:
    """Another answer would make `weight.retaped(x.tape_type)` plain, and lose its gradient."""
    weight = tt.ones((2,))
    x = tt.ones((2,)).trace()
    y = x.exp()
    grads = (y * weight.retaped(x.tape_type).square()).sum().backward()
    plain = tt.ones((2,))
    plain.traced()

    assert x.tape_type is tt.OwnedTape
    np.testing.assert_allclose(grads[weight].numpy(), 2 * np.e * np.ones(2), rtol=1e-6)
    assert plain.tape_type is tt.NoneTape
