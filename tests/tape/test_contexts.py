"""Contexts: which tapes close when, and that no others do."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable
from typing import Any

import pytest

import tapetensor as tt
from tapetensor.optim import Sgd
from tapetensor.tape.context import active_context
from tests.tape.scopes import X, alone, is_open, traced


def test_leaving_a_context_closes_its_tapes_and_no_others() -> None:
    before = traced()
    with tt.GradientContext():
        inside = traced()
    after = traced()

    assert [is_open(y) for y in (before, inside, after)] == [True, False, True]


@pytest.mark.parametrize("order", ["012", "021", "102", "120", "201", "210"])
def test_contexts_left_in_any_order_close_their_own_tapes_only(order: str) -> None:
    contexts = [tt.GradientContext() for _ in range(3)]
    tapes = []
    for context in contexts:
        context.__enter__()
        tapes.append(traced())
    for position, leaving in enumerate(map(int, order)):
        contexts[leaving].__exit__(None, None, None)
        left = [int(one) for one in order[: position + 1]]
        states = [repr(y).endswith("OwnedTape(closed))") for y in tapes]
        remaining = [one for one in range(3) if one not in left]

        assert states == [one in left for one in range(3)]
        # What is recorded now belongs to the innermost one that is left.
        assert active_context() is (contexts[remaining[-1]] if remaining else DEFAULT)
    assert is_open(traced())


DEFAULT = active_context()


def test_context_zero_is_always_there_and_never_left() -> None:
    assert DEFAULT.id == 0
    assert DEFAULT.is_open
    with tt.GradientContext() as one, tt.GradientContext() as other:
        assert 0 < one.id < other.id
    with pytest.raises(tt.TapeClosedError, match="context 0 has been entered before"):
        DEFAULT.__enter__()
    with pytest.raises(tt.TapeClosedError, match="context 0 was never entered"):
        DEFAULT.__exit__(None, None, None)
    assert DEFAULT.is_open


def test_a_context_is_entered_once() -> None:
    context = tt.GradientContext()
    assert repr(context) == f"GradientContext({context.id}, not entered, 0 tapes)"
    with context:
        y = traced()
        assert repr(context) == f"GradientContext({context.id}, open, 1 tapes)"
        with pytest.raises(tt.TapeClosedError, match="before, and is active; write `with Grad"):
            context.__enter__()
        assert is_open(y)
    with pytest.raises(tt.TapeClosedError, match="before, and was left"):
        context.__enter__()
    assert repr(context) == f"GradientContext({context.id}, left, 0 tapes)"


USES: dict[str, Callable[[Any], object]] = {
    "exp": lambda y: y.exp(),
    "multiply": lambda y: y * 2.0,
    "add": lambda y: tt.ones((2,)) + y,
    "concat": lambda y: tt.concat((X, y)),
    "split": lambda y: y.split(1),
    "split_tape": lambda y: y.split_tape(),
    "with_empty_tape": lambda y: y.with_empty_tape(),
    "retaped": lambda y: y.retaped(tt.NoneTape),
    "backward": lambda y: y.backward(X),
    "compute_gradients": tt.compute_gradients,
}


@pytest.mark.parametrize("op", USES)
def test_every_use_of_a_closed_tape_says_which_context_closed_it_and_what_to_do(op: str) -> None:
    with tt.GradientContext() as context:
        y = traced()

    for _ in range(2):
        with pytest.raises(
            tt.TapeClosedError,
            match=rf"^{op}: the tape was closed when context {context.id} was left; .*x\.trace\(\)",
        ):
            USES[op](y)
    assert y.detach().numpy().tolist() == [1.0, 4.0]
    assert y.detach().sum().item() == 5.0


def test_a_closed_tape_that_meets_an_open_one_leaves_that_one_usable() -> None:
    with tt.GradientContext():
        closed = traced()
    live = traced()

    for lhs, rhs in ((live, closed), (closed, live)):
        with pytest.raises(tt.TapeClosedError, match=r"^add: the tape was closed"):
            lhs + rhs
    assert is_open(live)


@pytest.mark.parametrize("swap", [False, True])
def test_tapes_of_two_contexts_that_merge_belong_to_both(swap: bool) -> None:
    """Without the records of the inner one the gradient would be silently incomplete."""
    outer = traced()
    with tt.GradientContext():
        inner = traced()
        merged = inner + outer if swap else outer + inner
        assert merged.owns_tape
    with pytest.raises(tt.TapeClosedError):
        merged.sum()


@alone
def test_clear_tape_closes_the_tapes_of_the_active_context_only() -> None:
    default = traced()
    with tt.GradientContext():
        inner = traced()
        tt.clear_tape()
        later = traced()
        assert not is_open(inner)
        assert is_open(later)
    assert is_open(default)
    default = traced()
    tt.clear_tape()

    assert not is_open(default)


@alone
def test_clear_default_context_tape_leaves_the_active_context_alone() -> None:
    default = traced()
    with tt.GradientContext():
        inner = traced()
        tt.clear_default_context_tape()

        assert is_open(inner)
        assert not is_open(default)


def test_zero_grad_closes_the_tapes_of_the_active_context_and_says_when_to_call_it() -> None:
    class Model:
        def parameters(self) -> dict[str, Any]:
            return {"x": X}

    optimizer = Sgd(Model(), lr=0.1)
    default = traced()
    with tt.GradientContext():
        inner = traced()
        optimizer.zero_grad()
        with pytest.raises(
            tt.TapeClosedError, match=r"when Sgd\.zero_grad\(\) was called .* after step\(\)"
        ):
            inner.exp()

    assert is_open(default)


def test_a_loop_that_forgets_to_clear_stays_flat() -> None:
    """The one that hodu's guide warns of."""

    def steps(count: int) -> None:
        for _ in range(count):
            loss = (X.trace() * X).square().sum()
            tt.compute_gradients(loss)
            X.trace(tt.Gradients()).exp()

    steps(50)
    gc.collect()
    before = sys.getallocatedblocks()
    steps(500)
    gc.collect()
    assert sys.getallocatedblocks() - before < 100


def test_compute_gradients_takes_a_loss_of_any_shape_and_uses_its_history_up() -> None:
    y = traced()
    grads = tt.compute_gradients(y)

    assert grads[X].numpy().tolist() == [2.0, 4.0]
    with pytest.raises(tt.TapeUsedError):
        tt.compute_gradients(y)
    assert tt.compute_gradients((X.trace() * tt.ones((2,))).sum(), wrt=X)[X].shape == (2,)


@pytest.mark.parametrize(
    ("loss", "error", "message"),
    [
        (X.sum(), tt.UntracedTensorError, "backward: this tensor has no tape"),
        (3.0, tt.ArgumentTypeError, "compute_gradients: the loss must be a tensor, got float"),
    ],
)
def test_compute_gradients_refuses_what_was_not_recorded(
    loss: Any, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        tt.compute_gradients(loss)
