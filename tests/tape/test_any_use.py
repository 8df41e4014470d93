"""Any use of a traced tensor is right: how often, in which order and where it is used is free."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import permutations
from typing import Any, NamedTuple

import numpy as np
import pytest

import tapetensor as tt
from tapetensor.tape import Pullbacks
from tapetensor.tensor.apply import apply


def vector(*values: float) -> tt.Tensor[Any, tt.NoneTape, np.float64]:
    return tt.from_numpy(list(values), shape=(len(values),), dtype=np.float64)


X: Any = vector(0.5, 2.0)
V = X.numpy()


class Pair(NamedTuple):
    first: Any
    second: Any


def branches(x: Any) -> Any:
    return (x * 2.0 if float(x.sum().item()) > 0.0 else -x) + x


def loop(x: Any) -> Any:
    total = x
    for _ in range(4):
        total = total + x * total
    return total


def rebound_in_a_loop(x: Any) -> Any:
    outputs = []
    h = x
    for _ in range(3):
        h = (h + x).tanh()
        outputs.append(h)
    return tt.stack(outputs).sum(axis=0) * h


def containers(x: Any) -> Any:
    pair = Pair(x, [x.exp(), {"x": x}])
    return pair.first * pair.second[0] + pair.second[1]["x"]


def generated(x: Any) -> Iterator[Any]:
    for power in (1, 2, 3):
        yield x**power


def exceptions(x: Any) -> Any:
    try:
        return x + tt.ones((7,), np.float64)
    except tt.ShapeError:
        return x.square()
    finally:
        x.exp()


def parted(x: Any) -> Any:
    first, second = x.exp().split([1, 1])
    return tt.concat((second, first)) * x


Function = Callable[[Any], Any]
# Each with what it is in numpy, of complex numbers, which give its derivative to the last digit.
PROGRAMS: dict[str, tuple[Function, Function]] = {
    "twice in an op": (lambda x: x * x, lambda v: v * v),
    "twice in a concat": (lambda x: tt.concat((x, x)), lambda v: np.concatenate((v, v))),
    "twice in a stack": (lambda x: tt.stack((x, x)), lambda v: np.stack((v, v))),
    "twice in an einsum": (lambda x: tt.einsum("i,i->i", x, x), lambda v: v * v),
    "twice in a choice": (
        lambda x: tt.where(X > 1.0, x, x.exp()),
        lambda v: np.where(V > 1, v, np.exp(v)),
    ),
    "traced and plain": (lambda x: x * X.trace() + X * x, lambda v: v * v + v * v),
    "after its result": (lambda x: (x.exp(), x.sin() * x)[1], lambda v: np.sin(v) * v),
    "in a comparison": (lambda x: x * (x > 1.0).astype(np.float64), lambda v: v * (V > 1.0)),
    "branches": (branches, lambda v: 3 * v),
    "a loop": (loop, lambda v: v * (1 + v) ** 4),
    "a recurrence": (
        rebound_in_a_loop,
        lambda v: (
            (
                np.tanh(2 * v)
                + np.tanh(np.tanh(2 * v) + v)
                + np.tanh(np.tanh(np.tanh(2 * v) + v) + v)
            )
            * np.tanh(np.tanh(np.tanh(2 * v) + v) + v)
        ),
    ),
    "containers": (containers, lambda v: v * np.exp(v) + v),
    "a generator": (lambda x: sum(generated(x), start=x), lambda v: v + v + v**2 + v**3),
    "exceptions": (exceptions, np.square),
    "parts": (parted, lambda v: np.exp(v[::-1]) * v),
    "a second handle": (lambda x: x.with_empty_tape() * x, lambda v: v * v),
    "a split tape": (lambda x: x.split_tape()[0] * x, lambda v: v * v),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_every_use_adds_its_part_to_the_gradient(name: str) -> None:
    function, reference = PROGRAMS[name]
    result = function(X.trace())
    found = result.sum().backward()[X].numpy()

    np.testing.assert_allclose(result.detach().numpy(), reference(V), rtol=1e-12)
    step = 1e-30
    expected = [
        reference(V + 1j * step * direction).sum().imag / step for direction in np.eye(len(V))
    ]
    np.testing.assert_allclose(found, expected, rtol=1e-12)


@pytest.mark.parametrize("order", list(permutations(range(3))))
@pytest.mark.parametrize("association", ["left", "right"])
def test_branches_of_a_trunk_give_one_gradient_in_every_order_of_meeting(
    order: tuple[int, ...], association: str
) -> None:
    trunk = X.trace().exp()
    functions: list[Function] = [lambda h: h.sin(), lambda h: h.square(), lambda h: h * 3.0]
    # Made in one order, and joined in another.
    branches = {number: functions[number](trunk) for number in order}
    first, second, third = (branches[number] for number in range(3))
    joined = (first + second) + third if association == "left" else first + (second + third)

    np.testing.assert_allclose(
        joined.sum().backward()[X].numpy(),
        (np.cos(np.exp(V)) + 2 * np.exp(V) + 3.0) * np.exp(V),
        rtol=1e-12,
    )


def logged(name: str, log: list[str], x: Any) -> Any:
    """Return `x`, by an op that writes its name to `log` when its pullback runs."""

    def kernel(x: Any) -> tuple[Any, Pullbacks]:
        def pullback(g: Any) -> Any:
            log.append(name)
            return g

        return 1.0 * x, (pullback,)

    return apply(kernel, (x,))


def test_a_merge_names_both_histories_and_each_step_runs_once_latest_first() -> None:
    log: list[str] = []
    x = vector(1.0, 2.0)
    early, late = logged("trunk", log, x.trace()).split(2)
    late = logged("late", log, logged("middle", log, late))
    early = logged("last", log, early)
    unmet = logged("unmet", log, early)
    (late + early).sum().backward()

    assert log == ["last", "late", "middle", "trunk"]
    assert unmet.owns_tape


def test_histories_that_meet_again_and_again_are_walked_once() -> None:
    log: list[str] = []
    y = logged("trunk", log, X.trace())
    for _ in range(60):
        y = y * 0.5 + y * 1.5

    np.testing.assert_array_equal(y.sum().backward()[X].numpy(), [2.0**60] * 2)
    assert log == ["trunk"]


def test_an_op_changes_no_tensor_that_it_reads() -> None:
    x = X.trace().exp()
    before = (x.id, repr(x), x.tree(ascii=True).splitlines()[1:])
    x * x + x.sin()
    after = (x.id, repr(x), x.tree(ascii=True).splitlines()[1:])

    assert before[:2] == after[:2]
    assert len(before[2]) == len(after[2]) == 2


def test_a_store_carried_by_many_branches_counts_once_and_two_equal_ones_twice() -> None:
    ones, tens = tt.Gradients(), tt.Gradients()
    ones.insert(X, vector(1.0, 1.0))
    tens.insert(X, vector(10.0, 10.0))
    one = X.trace(ones)
    ten, twice = X.trace(tens), X.trace(tens)
    loss = (one + (ten + one) + twice * one.exp().split([1, 1])[0]).sum()

    alone = (X.trace() * 3.0 + X * X.trace()[:1].exp()).sum().backward()[X].numpy()
    np.testing.assert_allclose(loss.backward()[X].numpy(), alone + 11.0, rtol=1e-12)


def test_many_threads_use_one_traced_tensor_at_once() -> None:
    x = X.trace().exp()
    start = threading.Barrier(8)

    def run(power: int) -> Any:
        start.wait(timeout=60)
        y = x
        for _ in range(power):
            y = y * x
        return y

    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(run, range(8)))
    total = results[0]
    for one in results[1:]:
        total = total + one

    expected = sum((n + 1) * np.exp((n + 1) * V) for n in range(8))
    np.testing.assert_allclose(total.sum().backward()[X].numpy(), expected, rtol=1e-12)


def test_of_two_threads_that_use_up_one_trunk_at_once_none_gets_a_wrong_gradient() -> None:
    """Either may be told that the other was there first."""
    for _ in range(200):
        trunk = X.trace().exp()
        losses = [(trunk * trunk).sum() for _ in range(2)]
        start = threading.Barrier(2)

        def run(loss: Any, start: threading.Barrier = start) -> Any:
            start.wait(timeout=60)
            try:
                return loss.backward()[X].numpy()
            except (tt.TapeUsedError, tt.MissingGradientError):
                return None

        with ThreadPoolExecutor(2) as pool:
            found = list(pool.map(run, losses))
        for one in found:
            if one is not None:
                np.testing.assert_allclose(one, 2 * np.exp(2 * V), rtol=1e-12)
