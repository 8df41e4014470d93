"""Loops in which no spent tensor is used; each runs."""

from __future__ import annotations

import contextlib
import enum
import sys
from typing import NoReturn

import tapetensor as tt
from tests.plugin.moves.cases import Plain, Scalar, Traced


class Mode(enum.Enum):
    FAST = 1
    SLOW = 2


class Stopper:
    def stop(self) -> NoReturn:
        raise KeyError("stopped")


def first_pass_only(x: Plain) -> None:
    traced = x.trace()
    first = True
    for _ in range(3):
        if first:
            traced.exp()
            first = False


def made_once(x: Plain) -> None:
    traced = x.trace()
    cached: Traced | None = None
    for _ in range(3):
        if cached is None:
            cached = traced.exp()
        print(cached)


def in_one_pass(x: Plain) -> None:
    traced = x.trace()
    for number in range(3):
        if number == 1:
            traced.exp()


def assigned_anew_from_the_second_pass_on(x: Plain) -> None:
    traced = x.trace()
    for number in range(3):
        if number > 0:
            traced = x.trace()
        traced.exp()


def loop_with_its_own_tensor(x: Plain) -> None:
    for _ in range(3):
        traced = x.trace()
        traced.exp()


def loop_that_rebinds(x: Plain) -> None:
    traced = x.trace()
    for _ in range(3):
        traced = traced.sin()
    traced.sum()


def loop_that_stops(x: Plain) -> None:
    traced = x.trace()
    for _ in range(3):
        traced.exp()
        break


def loop_that_returns(x: Plain) -> Scalar:
    traced = x.trace()
    while True:
        if x.size > 2:
            return traced.sum()


def accumulation(x: Plain) -> None:
    total = x.trace().sum()
    for _ in range(3):
        total += x.trace().sum()
    total.backward()


def unpacked_in_a_loop(x: Plain) -> None:
    for _ in range(2):
        plain, tape = x.trace().square().split_tape()
        plain.put_tape(tape).sum().backward()


def targets_of_loops(x: Plain) -> None:
    for traced in [x.trace(), x.trace()]:
        traced.exp()
    for number, traced in enumerate([x.trace(), x.trace()]):
        print(number, traced.exp())


def comprehensions(x: Plain) -> None:
    print([x.trace().exp() for _ in range(2)])
    print([traced.exp() for traced in [x.trace(), x.trace()]])
    print({name: traced.exp() for name, traced in {"a": x.trace()}.items()})
    print(sum(traced.sum().item() for traced in [x.trace(), x.trace()]))
    print([y.sin() for y in (x.trace() for _ in range(2))])


def until_it_is_there(x: Plain) -> None:
    traced = x.trace()
    result: Traced | None = None
    attempts = 0
    while result is None and attempts < 3:
        attempts += 1
        with contextlib.suppress(tt.ShapeError):
            result = traced.exp()


def until_it_is_done(x: Plain) -> None:
    traced = x.trace()
    done = False
    while not done:
        try:
            traced.exp()
            done = True
        except tt.ShapeError:
            print("again")


def until_there_is_one(x: Plain) -> None:
    traced = x.trace()
    results: list[Traced] = []
    while not results:
        results.append(traced.exp())
    for _ in range(3):
        if not results:
            results.append(traced.sin())


def left_by_a_function(x: Plain) -> None:
    traced = x.trace()
    with contextlib.suppress(SystemExit):
        for _ in range(3):
            traced.exp()
            sys.exit(1)


def left_by_a_method(x: Plain) -> None:
    traced = x.trace()
    stopper = Stopper()
    with contextlib.suppress(KeyError):
        while True:
            traced.exp()
            stopper.stop()


def left_by_way_of_finally(x: Plain) -> None:
    traced = x.trace()
    for _ in range(3):
        try:
            break
        finally:
            traced.exp()


def renewed_in_every_case(x: Plain) -> None:
    traced = x.trace()
    for mode in Mode:
        traced.exp()
        if mode is Mode.FAST:
            traced = x.trace()
        elif mode is Mode.SLOW:
            traced = x.trace().sin()


def generators_that_are_not_run_to_the_end(x: Plain) -> None:
    traced = x.trace()
    print(next(traced.exp() for _ in range(3)))
    other = x.trace()
    unused = (other.exp() for _ in range(3))
    other.sin()
    print(unused)


def renewed_by_a_loop_that_has_a_pass(x: Plain, several: tuple[int, ...] = (1, 2)) -> None:
    traced = x.trace()
    other = traced
    for _ in several:
        other = traced.share().tanh()
    other.exp()
    traced.exp()


def every_second_one(x: Plain) -> None:
    items = [x.trace() for _ in range(4)]
    for one in items[::2]:
        one.exp()
    tt.stack(items[1::2])
    pairs = [x.trace() for _ in range(4)]
    for first, second in zip(pairs[::2], pairs[1::2], strict=False):
        first * second


def asked_whether_it_owns_a_tape(x: Plain) -> None:
    items = [x.trace()]
    for one in items:
        one.exp()
    (items[0].detach() if items[0].owns_tape else x).exp()
    traced = tt.stack(items) if items[0].owns_tape else x.trace()
    traced.exp()
    if not traced.owns_tape or len(items) > 2:
        return
    traced.exp()


def met_by_two_indices_that_are_one(x: Plain) -> None:
    items = [x.trace(), x.trace(), x.trace()]
    for i in range(len(items)):
        for j in range(len(items)):
            if i != j:
                continue
            items[i] * 2.0


def met_by_an_index_from_the_end(x: Plain, passes: int = 2) -> None:
    skips: list[Traced] = []
    h = x.trace()
    for _ in range(passes):
        skips.append(h.share())
        h = h.tanh()
    for i in range(passes):
        h = h + skips[-i - 1]
    items = [x.trace(), x.trace()]
    for i in range(passes):
        items[-(i + 1)] = items[-1 - i].tanh()
    for i in range(passes // 2):
        items[i] * items[-1 - i]


def another_name_in_a_loop_within_a_loop(x: Plain) -> None:
    traced = x.trace()
    for _ in range(2):
        y = traced.share()
        for _ in range(2):
            y = y.exp()
        y.sum().backward()
    for _ in range(2):
        again = x.trace()
        z = again
        for _ in range(2):
            z = z.exp()
        z.sum().backward()
