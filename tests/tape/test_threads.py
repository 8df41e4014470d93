"""Two threads that use one tensor: one gets its tape, the other an error, and nothing is lost."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import tapetensor as tt
from tapetensor.tensor import ownership
from tapetensor.tensor.apply import apply_pair
from tapetensor.typing import Array, Pullbacks

ROUNDS = 1000


def together(first: Callable[[], Any], second: Callable[[], Any]) -> list[Any]:
    """Run two functions in two threads at once; return what each gave, or the error it raised."""
    start = threading.Barrier(2)
    outcomes: list[Any] = [None, None]

    def run(position: int, function: Callable[[], Any]) -> None:
        start.wait()
        try:
            outcomes[position] = function()
        except tt.TapeTensorError as error:
            outcomes[position] = error

    threads = [threading.Thread(target=run, args=one) for one in enumerate((first, second))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
    return outcomes


def check_one_of(outcomes: list[Any]) -> Any:
    """Return the outcome of the thread that got the tape; the other must have been refused."""
    refused = [isinstance(one, tt.MovedTensorError) for one in outcomes]
    assert sorted(refused) == [False, True], outcomes
    return outcomes[refused.index(False)]


class Meeting:
    """Kernels that wait, after all checks of their op, until both threads are inside."""

    def __init__(self, threads: int = 2) -> None:
        self._barrier = threading.Barrier(threads)
        # Each thread waits once: what a backward pass runs again does not.
        self._waits = threading.Semaphore(threads)

    def _wait(self) -> None:
        if self._waits.acquire(blocking=False):
            self._barrier.wait(timeout=60)

    def double(self, x: Array) -> tuple[Array, Pullbacks]:
        self._wait()
        return 2.0 * x, (lambda g: 2.0 * g,)

    def product(self, lhs: Array, rhs: Array) -> tuple[Array, Pullbacks]:
        self._wait()
        return lhs * rhs, (lambda g: g * rhs, lambda g: g * lhs)

    def failing(self, x: Array) -> tuple[Array, Pullbacks]:
        self._wait()
        raise ValueError("does not fit")

    def square(self, x: Any) -> Any:
        self._wait()
        return x.square()


def _custom(kernel: Any, *operands: Any) -> Any:
    return tt.custom_op(kernel, *operands, shape=(3,))


OPS: dict[str, Callable[[Meeting, Any, Any], Any]] = {
    "of one operand": lambda meeting, x, w: _custom(meeting.double, x),
    "of two operands": lambda meeting, x, w: _custom(meeting.product, x, w),
    "of two operands, the second": lambda meeting, x, w: _custom(meeting.product, w, x),
    "of two owners": lambda meeting, x, w: _custom(meeting.product, x, w.trace()),
    "operator": lambda meeting, x, w: apply_pair(meeting.product, x, w),
    "operator, the right operand": lambda meeting, x, w: apply_pair(meeting.product, w, x),
    "operator of two owners": lambda meeting, x, w: apply_pair(meeting.product, w.trace(), x),
    "checkpoint": lambda meeting, x, w: tt.checkpoint(meeting.square, x),
    "grad": lambda meeting, x, w: tt.grad(lambda v: meeting.square(v).sum(), x),
}


@pytest.mark.parametrize("name", OPS)
def test_of_two_ops_inside_their_kernels_one_gets_the_tape(name: str) -> None:
    x, w = tt.ones((3,)), tt.full((3,), 5.0)
    hidden, meeting = x.trace() * w, Meeting()
    result = check_one_of(together(*[lambda: OPS[name](meeting, hidden, w) for _ in range(2)]))

    alone = x.trace() * w
    expected = OPS[name](Meeting(threads=1), alone, w)
    assert result.sum().backward()[x].numpy().tolist() == (
        expected.sum().backward()[x].numpy().tolist()
    )


def test_the_loser_leaves_no_record_on_the_tape_of_the_winner() -> None:
    x, meeting = tt.ones((3,)).trace(), Meeting()
    result = check_one_of(together(*[lambda: _custom(meeting.double, x)] * 2))

    assert len(result.tape.records) == 1
    result.sum().backward(unused="error")


def test_an_op_that_loses_one_operand_keeps_the_other() -> None:
    shared, own = tt.ones((3,)).trace(), tt.ones((3,)).trace()
    meeting = Meeting()

    outcomes = together(
        lambda: _custom(meeting.double, shared), lambda: _custom(meeting.product, own, shared)
    )
    check_one_of(outcomes)
    if isinstance(outcomes[1], tt.MovedTensorError):
        assert own.owns_tape
        own.exp()


def test_a_kernel_that_fails_takes_nothing_from_the_thread_that_goes_on() -> None:
    x, meeting = tt.ones((3,)).trace(), Meeting()
    failed, result = together(
        lambda: _custom(meeting.failing, x), lambda: _custom(meeting.double, x)
    )

    assert isinstance(failed, tt.ShapeError)
    assert result.owns_tape


TAKERS: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "split_tape": ("_retaped", lambda x: x.split_tape()),
    "traced": ("_retaped", lambda x: x.traced()),
    "backward": ("check_unused", lambda x: x.backward()),
}


@pytest.mark.parametrize("name", TAKERS)
def test_of_two_methods_behind_their_checks_one_gets_the_tape(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    last_step, take = TAKERS[name]
    x = tt.ones(()) if name == "traced" else tt.ones(()).trace()
    barrier, original = threading.Barrier(2), getattr(ownership, last_step)

    def waiting(*args: Any) -> Any:
        barrier.wait(timeout=60)
        return original(*args)

    monkeypatch.setattr(ownership, last_step, waiting)
    check_one_of(together(lambda: take(x), lambda: take(x)))


def test_of_two_threads_that_put_a_tape_on_a_tensor_one_does(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    x, tape = tt.ones(()).trace().exp().split_tape()
    barrier, original = threading.Barrier(2), tt.OwnedTape.check_usable

    def waiting(self: tt.OwnedTape, op: str) -> None:
        original(self, op)
        if tape.records:
            barrier.wait(timeout=60)

    monkeypatch.setattr(tt.OwnedTape, "check_usable", waiting)
    check_one_of(together(lambda: x.put_tape(tape), lambda: x.put_tape(tape)))


@pytest.fixture
def eager_switching() -> Iterator[None]:
    """Let the interpreter change threads as often as it can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-7)
    yield
    sys.setswitchinterval(before)


_B: Any = tt.from_numpy(np.full((24, 24), 0.5, np.float32))
_compiled = tt.compile(lambda x: (x @ _B).tanh())
_step = tt.compile(lambda x: (x @ _B).sum().backward())

RANDOM: dict[str, Callable[[Any], Any]] = {
    "matmul": lambda x: x @ _B,
    "tanh": lambda x: x.tanh(),
    "concat": lambda x: tt.concat((x, _B)),
    "split": lambda x: x.split(2),
    "split_tape": lambda x: x.split_tape(),
    "backward": lambda x: x.backward(tt.ones((24, 24))),
    "compiled": _compiled,
    "compiled with backward": _step,
}


@pytest.mark.parametrize(
    "names",
    [
        *[(name, name) for name in RANDOM],
        ("matmul", "tanh"),
        ("concat", "backward"),
        ("tanh", "compiled"),
        ("compiled", "compiled with backward"),
        ("compiled with backward", "backward"),
    ],
    ids=" and ".join,
)
@pytest.mark.usefixtures("eager_switching")
def test_of_many_races_each_has_one_winner(names: tuple[str, str]) -> None:
    x: Any = tt.ones((24, 24))
    first, second = (RANDOM[name] for name in names)
    tensors = [x.trace() for _ in range(ROUNDS)]
    for use in (first, second):
        # A plan, so that all that follows is a replay.
        use(x.trace())
    start = threading.Barrier(2)
    wins = [[False] * ROUNDS, [False] * ROUNDS]
    others: list[Exception] = []

    def run(use: Callable[[Any], Any], won: list[bool]) -> None:
        for position, tensor in enumerate(tensors):
            start.wait(timeout=60)
            try:
                use(tensor)
                won[position] = True
            except tt.MovedTensorError:
                pass
            except Exception as error:
                others.append(error)

    threads = [
        threading.Thread(target=run, args=one) for one in zip((first, second), wins, strict=True)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=120)
    assert not others
    both = [position for position in range(ROUNDS) if wins[0][position] == wins[1][position]]
    assert not both, f"{len(both)} of {ROUNDS} rounds had no winner, or two"
