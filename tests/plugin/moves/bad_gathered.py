"""Tensors that are kept while training goes on: histories, logs, stacks, queues, results."""

from __future__ import annotations

import asyncio
import heapq
from collections import deque
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from queue import Queue

import tapetensor as tt
from tests.plugin.moves.cases import Plain, Scalar, Traced


def popped_from_a_history(x: Plain) -> None:
    history: list[Scalar] = []
    for _ in range(2):
        loss = x.trace().sum()
        loss.backward()
        history.append(loss)
    history.pop().exp()  # E: exp: "history.pop()" was moved by "backward"


def first_of_a_history(x: Plain) -> None:
    history: list[Scalar] = []
    for _ in range(2):
        loss = x.trace().sum()
        history.append(loss)
        loss.backward()
    history[0].exp()  # E: exp: "history[0]" may have been moved by "backward"


def smallest_of_a_history(x: Plain) -> None:
    history: list[Scalar] = []
    for _ in range(2):
        loss = x.trace().sum()
        history.append(loss)
        loss.backward()
    best = min(history, key=lambda loss: loss.item())
    best.exp()  # E: exp: "best" was moved by "backward"


def kept_by_number(x: Plain) -> None:
    kept: dict[int, Scalar] = {}
    for number in range(2):
        loss = x.trace().sum()
        loss.backward()
        kept[number] = loss
    tt.stack(list(kept.values()))  # E: stack: "kept" was moved by "backward"


def taken_out_one_by_one(x: Plain) -> None:
    done: deque[tuple[int, Scalar]] = deque()
    for number in range(2):
        loss = x.trace().sum()
        loss.backward()
        done.append((number, loss))
    while done:
        _, last = done.popleft()
        last.exp()  # E: exp: "last" was moved by "backward"


def best_of_a_dict(x: Plain) -> None:
    curve: dict[int, Scalar] = {}
    for number in range(2):
        loss = x.trace().sum()
        loss.backward()
        curve[number] = loss
    best = min(curve, key=lambda number: curve[number].item())
    curve[best].exp()  # E: exp: "curve[best]" may have been moved by "backward"


def skips_of_a_stack(x: Plain) -> None:
    h = x.trace()
    skips: list[Traced] = []
    for _ in range(2):
        h = h.tanh()
        skips.append(h)
    for _ in range(2):
        skip = skips.pop()
        h = h.exp() + skip  # E: add: "skip" may have been moved by "exp"


def merged(x: Plain) -> None:
    logs = {"loss": x.trace(), "other": x.trace()}
    every = {**logs, "other": x.trace()}
    logs["loss"].exp()
    every["loss"].exp()  # E: exp: "every['loss']" was moved by "exp"


def joined(x: Plain) -> None:
    first = [x.trace()]
    both = first + _made(x)
    first[0].exp()
    both[0].exp()  # E: exp: "both[0]" was moved by "exp"


def _made(x: Plain) -> list[Traced]:
    return [x.trace()]


def united(x: Plain) -> None:
    logs = {"loss": x.trace()}
    every = {"other": x.trace()} | logs
    logs["loss"].exp()
    every["loss"].exp()  # E: exp: "every['loss']" was moved by "exp"


def updated(x: Plain) -> None:
    logs = {"loss": x.trace()}
    every: dict[str, Traced] = {}
    every.update(logs)
    logs["loss"].exp()
    every["loss"].exp()  # E: exp: "every['loss']" was moved by "exp"


def rest_of_a_list(x: Plain) -> None:
    items = [x.trace(), x.trace(), x.trace()]
    tt.stack(items)
    _, *rest = items
    rest[0].exp()  # E: exp: "rest[0]" was moved by "stack"


def default_that_was_set(x: Plain) -> None:
    cache: dict[str, Traced] = {}
    traced = x.trace()
    kept = cache.setdefault("a", traced)
    traced.exp()
    kept.exp()  # E: exp: "kept" was moved by "exp"


def queued(x: Plain) -> None:
    queue: Queue[Traced] = Queue()
    traced = x.trace()
    queue.put(traced)
    traced.exp()
    queue.get().exp()  # E: exp: "queue.get()" was moved by "exp"


def from_a_heap(x: Plain) -> None:
    heap: list[tuple[float, Scalar]] = []
    for _ in range(2):
        loss = x.trace().sum()
        loss.backward()
        heapq.heappush(heap, (loss.item() + len(heap), loss))
    _, best = heapq.heappop(heap)
    best.exp()  # E: exp: "best" was moved by "backward"


def returned_in_a_dict(x: Plain) -> None:
    _logs(x)["loss"].exp()  # E: exp: "_logs(...)['loss']" was moved by "_logs"


def _logs(x: Plain) -> dict[str, Traced]:
    loss = x.trace()
    aux = x.trace()
    (loss + aux).sum().backward()
    return {"loss": loss, "aux": aux}


def returned_in_lists(x: Plain) -> None:
    history = _history(x)
    tt.stack(history["loss"])  # E: stack: "history['loss']" was moved by "_history"


def _history(x: Plain) -> dict[str, list[Scalar]]:
    logs: dict[str, list[Scalar]] = {"loss": []}
    for _ in range(2):
        loss = x.trace().sum()
        loss.backward()
        logs["loss"].append(loss)
    return logs


def yielded_spent(x: Plain) -> None:
    for _, loss in _losses(x):
        loss.exp()  # E: exp: "loss" was moved by "_losses"


def _losses(x: Plain) -> Iterator[tuple[int, Scalar]]:
    for number in range(2):
        loss = x.trace().sum()
        loss.backward()
        yield number, loss


def taken_back_with_its_number(x: Plain) -> None:
    for _, loss in _pending(x):  # E: _pending: "loss" was moved by "exp"
        loss.exp()


def _pending(x: Plain) -> Iterator[tuple[int, Scalar]]:
    for number in range(2):
        loss = x.trace().sum()
        yield number, loss
        loss.backward()


def twice_by_one_assignment(x: Plain) -> None:
    out, h = _twins(x.trace())
    for _ in range(1):
        out, h = _twins(h)
    (out * h).sum()  # E: multiply: "h" is given twice


def _twins(traced: Traced) -> tuple[Traced, Traced]:
    new = traced.exp()
    return new, new


class _Bag:
    def __init__(self) -> None:
        self.items: dict[str, Traced] = {}

    def __getitem__(self, name: str) -> Traced:
        return self.items[name]

    def put(self, name: str, traced: Traced) -> None:
        self.items[name] = traced


def by_a_getitem_of_its_own(x: Plain) -> None:
    bag = _Bag()
    traced = x.trace()
    bag.put("a", traced)
    traced.exp()
    bag["a"].exp()  # E: exp: "bag['a']" was moved by "exp"


@dataclass
class _Tracker:
    losses: list[Scalar] = field(default_factory=list)

    def update(self, loss: Scalar) -> None:
        self.losses.append(loss)

    def mean(self) -> Scalar:
        return tt.stack(self.losses).mean()


def tracked(x: Plain) -> None:
    tracker = _Tracker()
    for _ in range(2):
        loss = x.trace().sum()
        tracker.update(loss)
        loss.backward()
    tracker.mean()  # E: mean: "tracker.losses" may have been moved by "backward"


def _print(**values: Traced) -> None:
    for name, value in values.items():
        print(name, value.sum().item())


def by_keyword(x: Plain) -> None:
    traced = x.trace()
    traced.exp()
    _print(traced=traced)  # E: _print: "traced" was moved by "exp"


def awaited(x: Plain) -> None:
    async def step() -> Scalar:
        loss = x.trace().sum()
        loss.backward()
        return loss

    async def run() -> None:
        loss = await step()
        loss.exp()  # E: exp: "loss" was moved by "step"

    asyncio.run(run())


@asynccontextmanager
async def _session(x: Plain) -> AsyncIterator[Traced]:
    traced = x.trace()
    yield traced
    traced.exp()


def at_the_end_of_an_async_with(x: Plain) -> None:
    async def run() -> None:
        async with _session(x) as traced:  # E: _session: "traced" was moved by "exp"
            traced.exp()

    asyncio.run(run())


def first_of_a_list_of_what_each_pass_made_of_the_one_before(x: Plain) -> None:
    outputs: list[Traced] = []
    hidden = x.trace()
    for _ in range(2):
        hidden = hidden.tanh()
        outputs.append(hidden)
    outputs[0].exp()  # E: exp: "outputs[0]" may have been moved by "tanh"
