"""Loops in which no spent tensor is used; each runs."""

from __future__ import annotations

from tests.plugin.moves.cases import Plain, Scalar, Traced


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
