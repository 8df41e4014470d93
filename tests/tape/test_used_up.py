"""What a backward pass uses up, and when; what is said of it afterwards; what lives how long."""

from __future__ import annotations

import sys
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tapetensor as tt
from tapetensor import losses, nn
from tapetensor.tape import Pullbacks
from tapetensor.tensor.apply import apply

X: Any = tt.from_numpy([[0.5, -1.0], [1.5, 0.25]])
Y: Any = tt.from_numpy([[1.0, 0.0], [0.0, 1.0]])


def line() -> int:
    return sys._getframe(1).f_lineno


def gradient(loss: Any, of: Any = X, **options: Any) -> Any:
    return loss.backward(**options)[of].numpy()


class Watched:
    """An op that tells which of the arrays that its pullbacks keep are alive, first to last."""

    def __init__(self) -> None:
        self._kept: list[weakref.ref[Any]] = []

    def alive(self) -> list[bool]:
        return [array() is not None for array in self._kept]

    def double(self, x: Any, also: Callable[[], object] = lambda: None) -> Any:
        def kernel(x: Any) -> tuple[Any, Pullbacks]:
            slopes = np.full_like(x, 2)
            self._kept.append(weakref.ref(slopes))

            def pullback(g: Any) -> Any:
                also()
                return g * slopes

            return x * slopes, (pullback,)

        return apply(kernel, (x,))


@pytest.mark.parametrize("wrt", [None, X])
@pytest.mark.usefixtures("without_garbage_collection")
def test_memory_shrinks_on_the_way_back_while_variables_hold_what_is_in_between(wrt: Any) -> None:
    watched = Watched()
    seen: list[list[bool]] = []

    def look() -> None:
        seen.append(watched.alive())

    h = watched.double(X.trace(), look)
    logits = watched.double(h, look)
    loss = watched.double(logits, look).sum()
    loss.backward(wrt=wrt)

    # Each pullback runs while its own array is there, and those after it are gone.
    assert seen == [[True, True, True], [True, True, False], [True, False, False]]
    assert watched.alive() == [False] * 3
    assert h.owns_tape
    assert logits.owns_tape


@pytest.mark.usefixtures("without_garbage_collection")
def test_steps_that_the_loss_needs_no_gradient_through_are_used_up_as_well() -> None:
    watched = Watched()
    w = tt.ones((2, 2))
    h = watched.double(X.trace())
    loss = (h * w).sum()
    loss.backward(wrt=[w])
    assert watched.alive() == [False]

    side = watched.double(X.trace())
    loss = (X.trace() * (side > 0.0).astype(np.float32)).sum()
    loss.backward()
    # No step of the loss leads to it.
    assert watched.alive() == [False, True]
    assert side.owns_tape


def test_what_a_loss_does_not_lead_back_to_stays() -> None:
    h = X.trace().exp()
    beside = X.trace().exp()
    after = (h * beside).sum()
    h.sum().backward()

    assert gradient(beside.sum()).tolist() == np.exp(X.numpy()).tolist()
    with pytest.raises(tt.TapeUsedError):
        after.backward()


def test_a_second_backward_of_a_loss_says_where_the_first_was_and_what_to_write() -> None:
    loss = X.trace().exp().sum()
    loss.backward(); at = line()  # fmt: skip  # noqa: E702

    for _ in range(2):
        with pytest.raises(
            tt.TapeUsedError,
            match=r"^backward: what 'sum' recorded was used up by backward\(\) at "
            rf"{__file__}:{at}; "
            r"write backward\(retain=True\) there .*, or detach\(\) a value",
        ):
            loss.backward()


def test_a_second_loss_of_one_trunk_names_the_op_where_it_meets_what_is_used_up() -> None:
    trunk = X.trace().square().exp()
    first, second = trunk.sum(), (trunk.sin() * 2.0).mean()
    first.backward()

    with pytest.raises(tt.TapeUsedError, match=r"^backward: what 'exp' recorded was used up"):
        second.backward()


@pytest.mark.parametrize("wrt", [None, X])
@pytest.mark.parametrize("check_finite", [False, True])
def test_a_retained_history_may_be_gone_back_through_any_number_of_times(
    wrt: Any, check_finite: bool
) -> None:
    trunk = X.trace().exp()
    first, second = trunk.sum(), (trunk * trunk).sum()
    options = {"wrt": wrt, "check_finite": check_finite}
    e = np.exp(X.numpy())

    for _ in range(2):
        np.testing.assert_allclose(gradient(first, retain=True, **options), e, rtol=1e-6)
        np.testing.assert_allclose(gradient(second, retain=True, **options), 2 * e * e, rtol=1e-6)
    np.testing.assert_allclose(gradient(first, **options), e, rtol=1e-6)
    with pytest.raises(tt.TapeUsedError):
        second.backward(**options)


def test_a_state_that_is_carried_on_is_detached_or_refused() -> None:
    cell = nn.Linear(2, 2, rng=np.random.default_rng(0))
    h: Any = tt.zeros((2, 2))
    for _ in range(3):
        state = cell.forward(X.trace() + h).tanh()
        h = state.detach()
        assert len(losses.mse(state, Y).backward(wrt=cell)) == 2

    carried: Any = cell.forward(X.trace()).tanh()
    losses.mse(carried, Y).backward(wrt=cell)
    for wrt in (None, cell):
        loss = losses.mse(cell.forward(X.trace() + carried).tanh(), Y)
        with pytest.raises(tt.TapeUsedError, match="'tanh' recorded was used up"):
            loss.backward(wrt=wrt)


def test_who_asks_for_nothing_behind_what_is_used_up_gets_it() -> None:
    critic, generator = (nn.Linear(2, 2, rng=np.random.default_rng(seed)) for seed in range(2))
    fake = generator.forward(X.trace())
    fake.sum().backward()
    loss = critic.forward(fake).sum()

    with pytest.raises(tt.TapeUsedError, match="'linear' recorded"):
        loss.backward(wrt=generator)
    assert len(loss.backward(wrt=critic)) == 2


@pytest.mark.parametrize("wrt", [None, Y])
def test_what_was_used_up_twice_is_known_by_all_that_lies_behind_it(wrt: Any) -> None:
    """A later pass that comes to it, or has it in its history, knows less of what is behind."""
    trunk = X.trace().exp().sin()
    trunk.sum().backward()
    _, tape = trunk.split_tape()
    beside = (Y.put_tape(tape) * 2.0).square()
    beside.sum().backward(wrt=wrt)

    with pytest.raises(tt.TapeUsedError):
        (beside * trunk).sum().backward(wrt=X)
    with pytest.raises(tt.TapeUsedError):
        (trunk * 2.0).sum().backward(wrt=X)


def failing(x: Any) -> Any:
    def kernel(x: Any) -> tuple[Any, Pullbacks]:
        return 1.0 * x, (lambda g: g + float("nan"),)

    return apply(kernel, (x,))


@pytest.mark.parametrize(
    ("error", "way"),
    [
        (tt.ShapeError, lambda h, loss: h.backward()),
        (tt.ShapeError, lambda h, loss: h.backward(tt.ones((3,)))),
        (tt.DTypeError, lambda h, loss: h.backward(tt.ones((2, 2), np.float64))),
        (tt.UntracedTensorError, lambda h, loss: h.backward(h)),
        (tt.ArgumentTypeError, lambda h, loss: loss.backward(wrt=3)),
        (tt.ArgumentTypeError, lambda h, loss: loss.backward(retain=1)),
        (tt.ArgumentTypeError, lambda h, loss: loss.backward(check_finite="yes")),
        (tt.ArgumentValueError, lambda h, loss: loss.backward(unused="warn")),
        (
            tt.NumericalInstabilityError,
            lambda h, loss: failing(h).sum().backward(check_finite=True),
        ),
        (tt.MissingGradientError, lambda h, loss: (loss * X.exp().sum()).backward(wrt=X)),
        (tt.MissingGradientError, lambda h, loss: loss.backward(wrt=[tt.ones(())], unused="error")),
        (tt.TapeUsedError, lambda h, loss: (loss + used()).backward()),
        (tt.TapeUsedError, lambda h, loss: (loss + used()).backward(wrt=X)),
    ],
)
def test_after_an_error_nothing_is_used_up(
    error: type[Exception], way: Callable[[Any, Any], object]
) -> None:
    h = X.trace().exp()
    loss = h.sum()
    with pytest.raises(error):
        way(h, loss)

    np.testing.assert_allclose(gradient((h * h).sum()), 2 * np.exp(2 * X.numpy()), rtol=1e-6)


def used() -> Any:
    loss = X.trace().sin().sum()
    loss.backward()
    return loss


def test_a_pass_that_would_arrive_at_what_was_used_up_leaves_the_rest_as_it_is() -> None:
    trunk = X.trace() * 2.0
    trunk.sum().backward()
    rest = (Y.trace() * 3.0).sum()

    with pytest.raises(tt.TapeUsedError):
        (trunk.square().sum() + rest).backward()

    np.testing.assert_array_equal(gradient(rest, Y), np.full((2, 2), 3.0))


# What lives as long as what: reference counting alone frees everything.


@pytest.mark.usefixtures("without_garbage_collection")
def test_a_branch_that_was_dropped_costs_nothing() -> None:
    watched = Watched()
    trunk = watched.double(tt.ones((3,)).trace())
    branch = watched.double(trunk)
    joined = trunk + watched.double(trunk)
    del branch
    assert sum(watched.alive()) == 2
    del joined

    assert sum(watched.alive()) == 1
    assert trunk.owns_tape


@pytest.mark.usefixtures("without_garbage_collection")
def test_a_value_and_its_tape_each_keep_what_was_recorded() -> None:
    watched = Watched()
    value, tape = watched.double(tt.ones((3,)).trace()).split_tape()
    del tape
    assert sum(watched.alive()) == 1
    del value

    assert not any(watched.alive())


@pytest.mark.usefixtures("without_garbage_collection")
def test_dropping_a_traced_tensor_frees_every_array_of_its_computation() -> None:
    x = tt.ones((8, 8)).traced()
    arrays = [weakref.ref(x._array)]
    for _ in range(3):
        x = (x @ x).tanh() * 0.5
        arrays.append(weakref.ref(x._array))
    assert all(array() is not None for array in arrays)
    del x

    assert [array() for array in arrays] == [None] * 4


@pytest.mark.usefixtures("without_garbage_collection")
def test_a_carried_store_is_kept_alive_by_the_tape_that_carries_it() -> None:
    """Stores are told apart by identity, which a dead store would pass on to another."""
    x = tt.ones((1,))
    branches = []
    for _ in range(20):
        store = tt.Gradients()
        store.insert(x, np.ones((1,), np.float32))
        branches.append(x.trace(store))
        del store
    loss = tt.concat(branches).sum()

    assert loss.backward()[x].item() == 40.0
