"""What is handed on: by containers, functions, closures, generators, managers and coroutines."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import itertools
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import ClassVar, NamedTuple, Self

import tapetensor as tt
from tests.plugin.moves.cases import Plain, Scalar, Traced


class Pair(NamedTuple):
    first: Traced
    second: Traced


@dataclass(frozen=True)
class State:
    traced: Traced
    step: int = 0


class Trainer:
    shared: ClassVar[Traced]

    def __init__(self, traced: Traced) -> None:
        self.traced = traced
        self.loss: Scalar | None = None

    def step(self) -> None:
        self.loss = self.traced.sum()
        self.loss.backward()

    def hidden(self) -> Traced:
        return self.traced

    def keep(self, traced: Traced) -> None:
        self.traced = traced

    @functools.cached_property
    def made(self) -> Traced:
        return self.traced.with_empty_tape()


class Pooled(Trainer):
    def __init__(self, traced: Traced) -> None:
        super().__init__(traced)
        self.pooled = traced.mean()


def popped(x: Plain) -> None:
    items = [x.trace(), x.trace()]
    last = items[-1]
    last.exp()
    items.pop().sin()  # E: sin: "items.pop()" was moved by "exp"


def popped_beside_a_name(x: Plain) -> None:
    table = {"a": x.trace()}
    first = table["a"]
    table.pop("a").exp()
    first.sin()  # E: sin: "first" was moved by "exp"


def taken_from_the_left(x: Plain) -> None:
    queue = deque([x.trace()])
    queue[0].exp()
    queue.popleft().sin()  # E: sin: "queue.popleft()" was moved by "exp"


def last_of_a_window(x: Plain) -> None:
    window: deque[Scalar] = deque(maxlen=2)
    for _ in range(2):
        loss = x.trace().sum()
        window.append(loss)
        loss.backward()
    window[-1].exp()  # E: exp: "window[-1]" may have been moved by "backward"


def sorted_after_all_were_used(x: Plain) -> None:
    items = [x.trace().sum(), x.trace().sum()]
    for item in items:
        item.backward()
    items.sort(key=lambda item: item.item())
    items[0].exp()  # E: exp: "items[0]" may have been moved by "backward"


def changed_copy(x: Plain) -> None:
    state = State(x.trace())
    other = replace(state, step=1)
    state.traced.exp()
    other.traced.sin()  # E: sin: "other.traced" was moved by "exp"


def same_list_in_step(x: Plain) -> None:
    items = [x.trace(), x.trace()]
    for first, second in zip(items, items, strict=True):
        first.exp()
        second.sin()  # E: sin: "second" was moved by "exp"


def differences(x: Plain) -> None:
    items = [x.trace(), x.trace(), x.trace()]
    for before, after in itertools.pairwise(items):
        after - before  # E: subtract: "before" was moved by "subtract"


def _same_twice(x: Plain) -> Pair:
    traced = x.trace()
    return Pair(traced, traced)


def parts_of_a_result(x: Plain) -> None:
    pair = _same_twice(x)
    pair.first.exp()
    pair.second.sin()  # E: sin: "pair.second" was moved by "exp"


def given_back_by_a_method(x: Plain) -> None:
    trainer = Trainer(x.trace())
    trainer.hidden().exp()
    trainer.hidden().sin()  # E: sin: "trainer.hidden()" was moved by "exp"


def kept_by_a_method(x: Plain) -> None:
    trainer = Trainer(x.trace())
    traced = x.trace()
    trainer.keep(traced)
    traced.exp()
    trainer.traced.sin()  # E: sin: "trainer.traced" was moved by "exp"


def left_spent_by_a_method(x: Plain) -> None:
    trainer = Trainer(x.trace())
    trainer.step()
    if trainer.loss is not None:
        trainer.loss.exp()  # E: exp: "trainer.loss" was moved by "step"


def left_spent_by_a_constructor(x: Plain) -> None:
    pooled = Pooled(x.trace())
    pooled.traced.exp()  # E: exp: "pooled.traced" was moved by "Pooled"


def cached(x: Plain) -> None:
    trainer = Trainer(x.trace())
    trainer.made.exp()
    trainer.made.sin()  # E: sin: "trainer.made" was moved by "exp"


def of_a_class(x: Plain) -> None:
    Trainer.shared = x.trace()
    Trainer.shared.exp()
    Trainer.shared.sin()  # E: sin: "Trainer.shared" was moved by "exp"


def _closure(traced: Traced) -> Callable[[], Scalar]:
    def run() -> Scalar:
        return traced.sum()

    return run


def returned_closure(x: Plain) -> None:
    run = _closure(x.trace())
    run()
    run()  # E: run: "traced" was moved by "run"


def _states(traced: Traced) -> Iterator[Traced]:
    for _ in range(2):
        yield traced
        traced = traced.tanh()


def taken_back_by_a_generator(x: Plain) -> None:
    for state in _states(x.trace()):  # E: _states: "state" was moved by "exp"
        state.exp()


def _sums(traced: Traced) -> Iterator[Scalar]:
    yield traced.sum()


def generators_run_to_their_end(x: Plain) -> None:
    traced = x.trace()
    list(_sums(traced))
    list(_sums(traced))  # E: _sums: "traced" was moved by "_sums"


@contextlib.contextmanager
def _reported(traced: Traced) -> Iterator[Traced]:
    yield traced
    print(traced.sum().item())


def taken_back_by_a_manager(x: Plain) -> None:
    with _reported(x.trace()) as traced:  # E: _reported: "traced" was moved by "exp"
        traced.exp()


class Watch:
    def __init__(self, traced: Traced) -> None:
        self.traced = traced

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        print(self.traced.sum().item())


def taken_at_the_exit(x: Plain) -> None:
    with Watch(x.trace()) as watch:  # E: Watch: "Watch(...).traced" was moved by "exp"
        watch.traced.exp()


async def _logged(traced: Traced) -> float:
    return traced.sum().item()


def awaited_twice(x: Plain) -> None:
    async def run() -> None:
        traced = x.trace()
        await _logged(traced)
        await _logged(traced)  # E: _logged: "traced" was moved by "_logged"

    asyncio.run(run())


def handed_to_a_thread(x: Plain) -> None:
    def norm(traced: Traced) -> float:
        return traced.sum().item()

    traced = x.trace()
    pool = ThreadPoolExecutor(1)
    pool.submit(norm, traced).result()
    traced.exp()  # E: exp: "traced" was moved by "submit"


def unpacked_from_a_generator(x: Plain) -> None:
    traced = x.trace()
    first, second = (traced * float(k) for k in range(2))  # E: multiply: "traced" may have been
    tt.stack([first, second])


def _doubled(x: Plain) -> tuple[Traced, Traced]:
    traced = x.trace()
    return traced, traced


def one_returned_twice(x: Plain) -> None:
    tt.stack(_doubled(x))  # E: stack: "_doubled(...)" is given twice
