"""Tensors in lists, tuples and dicts that are used once each; each runs."""

from __future__ import annotations

from typing import TypedDict

import tapetensor as tt
from tests.plugin.moves.cases import Plain, Scalar, Traced


def renewed_in_place(x: Plain) -> None:
    items = [x.trace(), x.trace()]
    for number in range(len(items)):
        items[number] = items[number].exp()
    tt.stack(items)


def renewed_by_a_comprehension(x: Plain) -> None:
    items = [x.trace(), x.trace()]
    items = [item.exp() for item in items]
    tt.stack(items)


def collected(x: Plain) -> None:
    items = [x.trace(), x.trace()]
    results = []
    for item in items:
        print(item)
        results.append(item.exp())
    tt.stack(results)


def collected_and_carried(x: Plain) -> None:
    traced = x.trace()
    items = []
    for _ in range(3):
        items.append(traced.with_empty_tape())
        traced = traced.tanh()
    tt.stack([*items, traced])


def appended_after(x: Plain) -> None:
    items = [x.trace()]
    items[0].exp()
    items.append(x.trace())
    items[1].exp()
    items[-1:] = [x.trace()]
    items[-1].exp()


def last_after_append(x: Plain) -> None:
    items = [x.trace()]
    items[-1].exp()
    items.append(x.trace())
    items[-1].exp()


def others_of_one_list(x: Plain) -> None:
    items = [x.trace(), x.trace(), x.trace()]
    for item in items:
        item.exp()
        break
    items[1].exp()
    items[2].exp()


def all_but_the_first(x: Plain) -> None:
    first, *others = [x.trace(), x.trace(), x.trace()]
    first.exp()
    tt.stack(others)


def the_shorter_one(x: Plain) -> None:
    items = [x.trace(), x.trace(), x.trace()]
    for item, _ in zip(items, range(2), strict=False):
        item.exp()
    items[2].exp()


def skipped(x: Plain) -> None:
    items = [x.trace(), x.trace()]
    for number, item in enumerate(items):
        if number == 0:
            continue
        item.exp()
    items[0].exp()


def one_that_is_chosen(x: Plain) -> None:
    items = [x.trace(), x.trace()]
    chosen = items[0]
    for item in items:
        if item is not chosen:
            item.exp()
    chosen.exp()


def the_best_one(x: Plain) -> None:
    items = [x.trace().sum(), x.trace().mean()]
    best = items[0]
    for item in items:
        if item.item() < best.item():
            best = item
    best.backward()


def until_it_is_empty(x: Plain) -> None:
    items = [x.trace(), x.trace()]
    items[0].exp()
    items.pop(0)
    items[0].exp()
    items.clear()
    items.append(x.trace())
    while items:
        items.pop().exp()


def pairs(x: Plain) -> None:
    for first, second in [(x.trace(), x.trace()), (x.trace(), x.trace())]:
        first * second


def named_pairs(x: Plain) -> None:
    several = [(x.trace(), x), (x.trace(), x)]
    for traced, plain in several:
        (traced * plain).sum().backward()


def one_loop_in_another(x: Plain) -> None:
    for _ in range(2):
        items = [x.trace(), x.trace()]
        for item in items:
            item.exp()


def handles_first(x: Plain) -> None:
    items = [x.trace(), x.trace()]
    twins = [item.with_empty_tape() for item in items]
    tt.stack(items)
    tt.stack(twins)


def looked_at(x: Plain) -> None:
    losses: list[Scalar] = []
    for _ in range(2):
        loss = x.trace().sum()
        losses.append(loss)
        loss.backward()
    print(sum(loss.item() for loss in losses) / len(losses))


def given_to_others(x: Plain) -> None:
    items = [x.trace(), x.trace()]
    items[0].exp()
    _refill(items, x)
    for item in items:
        print(item)
    held = [items]
    tt.stack(items)
    _refill(held[0], x)
    tt.stack(items)


def shared_with_another_name(x: Plain) -> None:
    items = [x.trace(), x.trace()]
    same = items
    tt.stack(items)
    same[0] = x.trace()
    same[1] = x.trace()
    tt.stack(items)


class Row(TypedDict):
    traced: Traced


def table(x: Plain) -> None:
    row: Row = {"traced": x.trace()}
    row["traced"].exp()
    row["traced"] = x.trace()
    row["traced"].exp()
    several = {"a": x.trace(), "b": x.trace()}
    several["a"].exp()
    several["b"].exp()
    for name in several:
        several[name] = x.trace()
    tt.stack(list(several.values()))
    several.update(a=x.trace(), b=x.trace())
    for name in several:
        several[name].exp()


def matched(x: Plain) -> None:
    match (x.trace(), x.trace()):
        case (first, second):
            first.exp()
            second.exp()
    traced = x.trace()
    match (traced.with_empty_tape(), traced):
        case (twin, same):
            same * twin


def unpacked_and_swapped(x: Plain) -> None:
    first, second = x.trace(), x.trace()
    first.exp()
    first, second = second, first
    first.exp()
    second = x.trace()
    second.exp()


def other_index(x: Plain) -> None:
    items = [x.trace(), x.trace()]
    number = 0
    items[number].exp()
    number += 1
    items[number].exp()


def total(x: Plain) -> None:
    losses = [x.trace().sum(), x.trace().mean()]
    whole = losses[0]
    for loss in losses[1:]:
        whole = whole + loss
    whole.backward()


def repeated(x: Plain) -> None:
    tt.stack([x] * 2)
    grid = [[x.trace() for _ in range(2)] for _ in range(2)]
    for row in grid:
        tt.stack(row)


def only_if_it_is_there(x: Plain) -> None:
    held: list[Traced] = []
    traced = x.trace()
    if len(held) > 1:
        held.append(traced)
    else:
        traced.exp()
    if held:
        tt.stack(held)


def tuples_of_one_tensor(x: Plain) -> None:
    traced = x.trace()
    pair = (traced, "name")
    for thing in pair:
        print(thing)
    pair[0].exp()


def _refill(items: list[Traced], x: Plain) -> None:
    for number in range(len(items)):
        items[number] = x.trace()


_kept: list[Traced] = []


def _forget() -> None:
    _kept.clear()


# What functions know of is emptied by them.
_kept.append(tt.ones((3,)).trace())
_kept[0].exp()
_forget()
_kept.append(tt.ones((3,)).trace())
tt.stack(_kept)


def both_ways(x: Plain) -> None:
    items = [x.trace(), x.trace()]
    others = [x.trace(), x.trace()]
    for one, other in zip(items, reversed(others), strict=False):
        (one + other).sum().backward()
    skips = []
    h = x.trace()
    for _ in range(2):
        h = h.tanh()
        skips.append(h.share())
    for skip in skips[::-1]:
        h = h + skip
    h.sum().backward()
