"""What is handed on by containers, functions, closures, generators and managers, used once."""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import tapetensor as tt
from tests.plugin.moves.cases import Plain, Scalar, Traced


class Record(NamedTuple):
    traced: Traced
    step: int


@dataclass
class Made:
    x: Plain
    traced: Traced = field(init=False)

    def __post_init__(self) -> None:
        self.traced = self.x.trace()


class Slot:
    def __init__(self, traced: Traced) -> None:
        self.traced = traced
        self.loss: Scalar | None = None

    def swapped(self, traced: Traced) -> Traced:
        old = self.traced
        self.traced = traced
        return old

    def step(self, x: Plain) -> None:
        self.loss = self.traced.sum()
        self.loss.backward()
        self.traced = x.trace()
        self.loss = None


def emptied(x: Plain) -> None:
    items = [x.trace(), x.trace(), x.trace()]
    while len(items) > 1:
        items.append(items.pop() + items.pop(0))
    items.pop().sum()


def put_back(x: Plain) -> None:
    table = {"a": x.trace()}
    for _ in range(3):
        table["a"] = table.pop("a").tanh()
    queue = deque([table["a"], x.trace()])
    for _ in range(4):
        queue[0] = queue[0].tanh()
        queue.rotate(1)
    queue.append(queue.popleft().tanh())


def replaced_in_a_loop(x: Plain) -> None:
    record = Record(x.trace(), 0)
    while record.step < 2:
        record = record._replace(traced=record.traced.tanh(), step=record.step + 1)
    record.traced.sum()
    made = Made(x)
    other = replace(made)
    made.traced.exp()
    other.traced.exp()


def assigned_on_one_way(x: Plain, flag: bool = True) -> None:
    traced = x.trace().tanh()
    other = x.trace()
    if flag:
        traced = traced + other
    traced.exp()


def merged_tables(x: Plain) -> None:
    table = {"a": x.trace()}
    other = {**table, "a": x.trace()}
    other["a"].exp()
    table["a"].exp()


def in_another_order(x: Plain) -> None:
    items = [x.trace(), x.trace()]
    others = list(reversed(items))
    others[0].exp()
    items[0].exp()


def _same(traced: Traced) -> Traced:
    return traced


def _recorded(traced: Traced) -> Record:
    return Record(traced, 0)


def given_back(x: Plain) -> None:
    for _ in range(2):
        traced = _same(_same(x.trace()))
        record = _recorded(traced.exp())
        _recorded(_same(record.traced)).traced.sin()


def renewed_by_methods(x: Plain) -> None:
    slot = Slot(x.trace())
    for _ in range(2):
        slot.swapped(x.trace()).exp()
        slot.step(x)
    slot.traced.exp()
    if slot.loss is not None:
        slot.loss.exp()


def renewed_where_it_is_none(x: Plain) -> None:
    current: Traced | None = None
    for _ in range(4):
        if current is None:
            current = x.trace()
        else:
            current.exp()
            current = None


def _closure(traced: Traced) -> Callable[[], Scalar]:
    def run() -> Scalar:
        return traced.sum()

    return run


def closure_that_renews(x: Plain) -> None:
    traced = x.trace()

    def run() -> Traced:
        nonlocal traced
        out, traced = traced.exp().share(2)
        return out

    tt.stack([run(), run()])


def closures_apart(x: Plain) -> None:
    first = _closure(x.trace())
    second = _closure(x.trace())
    first()
    second()
    for _ in range(2):
        again = _closure(x.trace())
        again()


def _handles(traced: Traced) -> Iterator[Traced]:
    for _ in range(2):
        handle, traced = traced.tanh().share(2)
        yield handle


def _once(traced: Traced) -> Iterator[Traced]:
    yield traced
    print(traced.shape)


def generators(x: Plain) -> None:
    for handle in _handles(x.trace()):
        handle.sum()
    for traced in _once(x.trace()):
        traced.sum()
    list(_once(x.trace()))


@contextlib.contextmanager
def _timed(traced: Traced) -> Iterator[Traced]:
    yield traced
    print(traced.shape)


@contextlib.contextmanager
def _summed(traced: Traced) -> Iterator[Traced]:
    yield traced
    print(traced.sum().item())


class Fresh:
    def __init__(self, x: Plain) -> None:
        self.traced = x.trace()

    def __enter__(self) -> Traced:
        return self.traced.share()

    def __exit__(self, *_: object) -> None:
        print(self.traced.shape)


def managers(x: Plain) -> None:
    fresh = Fresh(x)
    for _ in range(2):
        with _timed(x.trace()) as traced, fresh as other:
            tt.stack([traced, other])
        with _summed(x.trace()) as traced:
            print(traced.shape)


async def _logged(traced: Traced) -> float:
    return traced.sum().item()


def coroutines(x: Plain) -> None:
    async def run() -> None:
        traced = x.trace()
        handle = traced.share()
        print(await asyncio.gather(_logged(traced), _logged(handle)))

    asyncio.run(run())


def _halves(x: Plain) -> tuple[Traced, Traced]:
    first, second = x.trace().share(2)
    return first.exp(), second.sin()


def _listed(x: Plain) -> list[Traced]:
    first, second = x.trace().share(2)
    return [first.exp(), second.sin()]


def what_a_function_returns_as_a_whole(x: Plain) -> None:
    tt.stack(_halves(x))
    tt.maximum(*_halves(x))
    several = _listed(x)
    tt.stack(several)
    tt.stack((*_halves(x), *_listed(x)))
