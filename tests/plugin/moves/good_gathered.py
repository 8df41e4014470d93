"""Tensors that are kept while training goes on, and used when they own their tapes."""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from queue import Queue

import tapetensor as tt
from tests.plugin.moves.cases import Plain, Scalar, Traced


def moved_before_the_next_is_put_there(x: Plain) -> None:
    history: list[Scalar] = []
    for _ in range(3):
        if history:
            history[-1].backward()
        history.append(x.trace().sum())
    history[-1].backward()


def smallest_that_is_read(x: Plain) -> None:
    history: list[Scalar] = []
    for _ in range(3):
        history.append(x.trace().sum())
        best = min(history, key=lambda loss: loss.item())
        print(best.item())
    history.pop().backward()


def put_there_when_all_are_spent(x: Plain) -> None:
    items = [x.trace()]
    tt.stack(items)
    new = x.trace()
    items.append(new)
    new.exp()
    items.append(x.trace())
    items[-1].exp()
    history: list[Scalar] = []
    for _ in range(2):
        loss = x.trace().sum()
        history.append(loss)
        loss.backward()
    history.append(x.trace().sum())
    history[-1].backward()


def left_by_a_decision(x: Plain, stop: bool = True) -> None:
    history: list[Scalar] = []
    for _ in range(2):
        loss = x.trace().sum()
        history.append(loss)
        if stop:
            break
        loss.backward()
    if stop:
        history[-1].backward()


def skips_that_are_shared(x: Plain) -> None:
    h = x.trace()
    skips: list[Traced] = []
    for _ in range(2):
        h, skip = h.tanh().share(2)
        skips.append(skip)
    for _ in range(2):
        skip = skips.pop()
        h = h.tanh() + skip
    for _ in range(2):
        skips.append(h.share())
        h = h.tanh()
    while skips:
        h = h + skips.pop()


def merged_anew(x: Plain) -> None:
    logs = {"a": x.trace(), "b": x.trace()}
    logs["a"].exp()
    every = {**logs, "a": x.trace()}
    every["a"].exp()
    every = logs | {"a": x.trace()}
    every["a"].exp()
    every = dict(logs, a=x.trace())
    every["a"].exp()
    logs.update(a=x.trace())
    logs["a"].exp()
    logs.update(_made(x))
    logs["a"].exp()


def _made(x: Plain) -> dict[str, Traced]:
    return {"a": x.trace()}


def joined_at_the_other_end(x: Plain) -> None:
    items = [x.trace()]
    items[0].exp()
    later = [_made(x)["a"], *items]
    later[0].exp()
    others = [x.trace()]
    longer = items + others
    longer[-1].exp()
    _, *rest = [*items, x.trace()]
    rest[0].exp()


def queued_twice(x: Plain) -> None:
    queue: Queue[Traced] = Queue()
    for _ in range(2):
        queue.put(x.trace())
    first = queue.get()
    first.exp()
    second = queue.get()
    second.exp()


def from_a_heap(x: Plain) -> None:
    heap: list[tuple[int, Traced]] = []
    for number in range(3):
        heapq.heappush(heap, (number, x.trace()))
        if number:
            _, smallest = heapq.heappop(heap)
            smallest.exp()
    for _, traced in heap:
        traced.exp()


def default_of_the_first_pass(x: Plain) -> None:
    cache: dict[str, Traced] = {}
    for _ in range(3):
        traced = x.trace()
        kept = cache.setdefault("a", traced.share())
        traced.exp()
        print(kept.shape)
    cache["a"].exp()


def returned_spent_and_read(x: Plain) -> None:
    total = 0.0
    for _ in range(2):
        total += _step(x).item()


def _step(x: Plain) -> Scalar:
    loss = x.trace().sum()
    loss.backward()
    return loss


def one_of_two_is_spent(x: Plain) -> None:
    live, read = _both(x)
    print(read.shape)
    live.exp()
    _, grads = _maybe(x, train=False)
    loss, grads = _maybe(x, train=False)
    if grads is None:
        loss.exp()


def _both(x: Plain) -> tuple[Traced, Traced]:
    live, read = x.trace().share(2)
    read.exp()
    return live, read


def _maybe(x: Plain, *, train: bool) -> tuple[Scalar, tt.Gradients | None]:
    loss = x.trace().sum()
    grads: tt.Gradients | None = None
    if train:
        grads = loss.backward()
    return loss, grads


def yielded_anew(x: Plain) -> None:
    for _ in range(2):
        for number, traced in _several(x):
            print(number)
            traced.exp()
    several = _several(x)
    next(several)[1].exp()
    next(several)[1].exp()


def _several(x: Plain) -> Iterator[tuple[int, Traced]]:
    for number in range(2):
        yield number, x.trace()


class _Bag:
    def __init__(self) -> None:
        self.items: dict[str, Traced] = {}

    def __getitem__(self, name: str) -> Traced:
        return self.items[name]

    def __setitem__(self, name: str, traced: Traced) -> None:
        self.items[name] = traced.share()

    def flush(self) -> None:
        for traced in self.items.values():
            traced.exp()
        self.items.clear()


def by_a_setitem_of_its_own(x: Plain) -> None:
    bag = _Bag()
    traced = x.trace()
    bag["a"] = traced
    traced.exp()
    bag["a"].exp()
    bag["a"] = x.trace()
    bag.flush()
    bag["a"] = x.trace()
    bag["a"].exp()


def first_and_last_of_what_each_pass_made(x: Plain) -> None:
    outputs: list[Traced] = []
    handles: list[Traced] = []
    newest_first: list[Traced] = []
    hidden, other, newest = x.trace(), x.trace(), x.trace()
    for _ in range(2):
        hidden = hidden.tanh()
        outputs.append(hidden)
        other = other.tanh()
        handles.append(other.share())
        newest = newest.tanh()
        newest_first.insert(0, newest)
    outputs[-1].exp()
    handles[0].exp()
    newest_first[0].exp()
