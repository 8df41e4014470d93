"""Tensors in lists, tuples and dicts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, TypedDict

import tapetensor as tt
from tapetensor import Tensor
from tapetensor.typing import S, T
from tests.plugin.moves.cases import Plain, Scalar, Traced


def stacked_by_name(x: Plain) -> None:
    items = [x.trace(), x.trace()]
    tt.stack(items)
    items[0].sin()  # E: sin: "items[0]" was moved by "stack"


def stacked_after_one_was_used(x: Plain) -> None:
    items = [x.trace(), x.trace()]
    items[0].sin()
    tt.stack(items)  # E: stack: "items" was moved by "sin"


def stacked_twice(x: Plain) -> None:
    items = (x.trace(), x.trace())
    tt.stack(items)
    tt.concat(items)  # E: concat: "items" was moved by "stack"


def stacked_beside_the_name(x: Plain) -> None:
    traced = x.trace()
    items = [traced, x.trace()]
    tt.stack(items)
    traced.sin()  # E: sin: "traced" was moved by "stack"


def the_same_twice(x: Plain) -> None:
    traced = x.trace()
    tt.stack([traced] * 2)  # E: is given twice


def the_same_twice_by_name(x: Plain) -> None:
    traced = x.trace()
    items = [traced, traced]
    tt.stack(items)  # E: is given twice


def spread(x: Plain) -> None:
    items = [x.trace(), x.trace()]
    tt.stack([*items])
    tt.stack([*items, x.trace()])  # E: stack: "items" was moved by "stack"


def spread_into_arguments(x: Plain) -> None:
    pair = (x.trace(), x.trace())
    added(*pair)
    pair[1].sin()  # E: sin: "pair[1]" was moved by "added"


def appended(x: Plain) -> None:
    traced = x.trace()
    items: list[Traced] = []
    items.append(traced)
    tt.stack(items)
    traced.sin()  # E: sin: "traced" was moved by "stack"


def appended_after_it_was_moved(x: Plain) -> None:
    losses: list[Scalar] = []
    for _ in range(2):
        loss = x.trace().sum()
        loss.backward()
        losses.append(loss)
    tt.stack(losses)  # E: stack: "losses" may have been moved by "backward"


def appended_and_moved_in_the_next_pass(x: Plain) -> None:
    traced = x.trace()
    items: list[Traced] = []
    for _ in range(2):
        traced = traced.exp()
        items.append(traced)
    tt.stack(items)  # E: stack: "items" may have been moved by "exp"


def appended_in_a_loop_and_used_after(x: Plain) -> None:
    traced = x.trace()
    items = []
    for _ in range(2):
        traced = x.trace()
        items.append(traced)
    tt.stack(items)
    traced.sin()  # E: sin: "traced" may have been moved by "stack"


def variable_index(x: Plain) -> None:
    items = [x.trace(), x.trace()]
    for number in range(len(items)):
        items[number].exp()
        items[number].sin()  # E: sin: "items[number]" was moved by "exp"


def variable_key(x: Plain) -> None:
    table = {"a": x.trace()}
    name = "a"
    table[name].exp()
    table[name].sin()  # E: sin: "table[name]" was moved by "exp"


def every_index(x: Plain) -> None:
    items = [x.trace(), x.trace()]
    for number in range(len(items)):
        items[number].exp()
    items[1].sin()  # E: sin: "items[1]" was moved by "exp"


def every_item(x: Plain) -> None:
    items = [x.trace(), x.trace()]
    for item in items:
        item.exp()
    tt.stack(items)  # E: stack: "items" was moved by "exp"


def every_item_twice(x: Plain) -> None:
    items = [x.trace(), x.trace()]
    total = [item.sum() for item in items]
    others = [item.mean() for item in items]  # E: mean: "item" was moved by "sum"
    print(total, others)


def items_beside_others(x: Plain) -> None:
    items, others = [x.trace(), x.trace()], [x, x]
    for item, other in zip(items, others, strict=True):
        item * other
    items[0].sin()  # E: sin: "items[0]" was moved by "multiply"


def items_beside_themselves(x: Plain) -> None:
    items = [x.trace(), x.trace()]
    for first, second in zip(items, items, strict=True):
        first * second  # E: multiply: "second" is given twice


def numbered_items(x: Plain) -> None:
    items = [x.trace(), x.trace()]
    for number, item in enumerate(items):
        (item * number).sum()
    items[0].sin()  # E: sin: "items[0]" was moved by "multiply"


def one_item_that_a_loop_meets(x: Plain) -> None:
    items = [x.trace(), x.trace()]
    items[0].exp()
    for item in items:
        item.sin()  # E: sin: "item" was moved by "exp"


def values_of_a_dict(x: Plain) -> None:
    table = {"a": x.trace(), "b": x.trace()}
    for value in table.values():
        value.exp()
    table["a"].sin()  # E: sin: "table['a']" was moved by "exp"


def values_of_a_dict_at_once(x: Plain) -> None:
    table = {"a": x.trace(), "b": x.trace()}
    tt.stack(list(table.values()))
    table["b"].sin()  # E: sin: "table['b']" was moved by "stack"


def items_of_a_dict(x: Plain) -> None:
    traced = x.trace()
    table = {"a": traced}
    for name, value in table.items():
        print(name, value.exp())
    traced.sin()  # E: sin: "traced" was moved by "exp"


class Row(TypedDict):
    traced: Traced
    number: int


def typed_dict(x: Plain) -> None:
    row: Row = {"traced": x.trace(), "number": 1}
    row["traced"].exp()
    row["traced"].sin()  # E: sin: "row['traced']" was moved by "exp"


def typed_dict_by_name(x: Plain) -> None:
    traced = x.trace()
    row = Row(traced=traced, number=1)
    row["traced"].exp()
    traced.sin()  # E: sin: "traced" was moved by "exp"


def taken_out(x: Plain) -> None:
    pair = [x.trace(), x.trace()]
    first, second = pair
    first.exp()
    pair[0].sin()  # E: sin: "pair[0]" was moved by "exp"
    print(second)


def taken_out_by_index(x: Plain) -> None:
    table = {"a": x.trace()}
    value = table["a"]
    value.exp()
    table["a"].sin()  # E: sin: "table['a']" was moved by "exp"


def the_rest(x: Plain) -> None:
    items = [x.trace(), x.trace(), x.trace()]
    first, *_, last = items
    first.exp()
    last.exp()
    items[-1].sin()  # E: sin: "items[-1]" was moved by "exp"


def matched_pair(x: Plain) -> None:
    traced = x.trace()
    match (traced, 1):
        case (first, number):
            first.exp()
            traced.sin()  # E: sin: "traced" was moved by "exp"
            print(number)


def matched_pair_by_name(x: Plain) -> None:
    pair = (x.trace(), x.trace())
    match pair:
        case (first, _):
            first.exp()
    pair[0].sin()  # E: sin: "pair[0]" may have been moved by "exp"


def matched_dict(x: Plain) -> None:
    table = {"a": x.trace()}
    match table:
        case {"a": value}:
            value.exp()
            table["a"].sin()  # E: sin: "table['a']" was moved by "exp"


def deleted_after_another_name(x: Plain) -> None:
    traced = x.trace()
    other = traced
    traced.exp()
    del traced
    other.sin()  # E: sin: "other" was moved by "exp"


def renamed_and_deleted(x: Plain) -> None:
    first = x.trace()
    second = first
    del first
    third = second
    second.exp()
    third.sin()  # E: sin: "third" was moved by "exp"


def swapped(x: Plain) -> None:
    first, second = x.trace(), x.trace()
    first.exp()
    first, second = second, first
    second.sin()  # E: sin: "second" was moved by "exp"


def kept_from_the_pass_before(x: Plain) -> None:
    last = x.trace()
    for _ in range(2):
        last.sin()  # E: sin: "last" may have been moved by "exp"
        traced = x.trace()
        traced.exp()
        last = traced


def copied_list(x: Plain) -> None:
    items = [x.trace(), x.trace()]
    others = list(items)
    tt.stack(items)
    tt.stack(others)  # E: stack: "others" was moved by "stack"


def whole_slice(x: Plain) -> None:
    items = [x.trace(), x.trace()]
    tt.stack(items[:])
    items[1].sin()  # E: sin: "items[1]" was moved by "stack"


def added_to_a_list(x: Plain) -> None:
    traced = x.trace()
    items = [x.trace()]
    items += [traced]
    tt.stack(items)
    traced.sin()  # E: sin: "traced" was moved by "stack"


def pairs_in_a_list(x: Plain) -> None:
    traced = x.trace()
    pairs = [(traced, 1), (x.trace(), 2)]
    for tensor, weight in pairs:
        tensor * weight
    traced.sin()  # E: sin: "traced" was moved by "multiply"


def dicts_in_a_dict(x: Plain) -> None:
    traced = x.trace()
    nested = {"a": {"b": traced}}
    nested["a"]["b"].exp()
    traced.sin()  # E: sin: "traced" was moved by "exp"


def its_own_item(x: Plain) -> None:
    items = [x.trace(), x.trace()]
    items.append(items[0])
    tt.stack(items)  # E: stack: "items" is given twice


def added(lhs: Tensor[S, T], rhs: Tensor[S, T]) -> Tensor[S, T]:
    return lhs.tanh() + rhs


def index_beside_the_item(x: Plain) -> None:
    items = [x.trace(), x.trace()]
    for number, item in enumerate(items):
        item.exp()
        items[number].sin()  # E: sin: "items[number]" was moved by "exp"


def keys_of_a_dict_twice(x: Plain) -> None:
    table = {"a": x.trace(), "b": x.trace()}
    for name in table:
        table[name].exp()
    for name in table:
        table[name].sin()  # E: sin: "table[name]" was moved by "exp"


def loop_over_a_display(x: Plain) -> None:
    first, second = x.trace(), x.trace()
    for one in (first, second):
        one.exp()
    second.sin()  # E: sin: "second" was moved by "exp"


def some_of_the_items(x: Plain) -> None:
    items = [x.trace(), x.trace(), x.trace()]
    tt.stack(items[:2])
    items[1].sin()  # E: sin: "items[1]" was moved by "stack"


def name_of_some_of_the_items(x: Plain) -> None:
    items = [x.trace(), x.trace(), x.trace()]
    rest = items[1:]
    rest[0].exp()
    items[1].sin()  # E: sin: "items[1]" was moved by "exp"


def extended_by_a_name(x: Plain) -> None:
    items = [x.trace()]
    every: list[Traced] = []
    every.extend(items)
    tt.stack(every)
    items[0].sin()  # E: sin: "items[0]" was moved by "stack"


def counted_by_a_number(x: Plain) -> None:
    items = [x.trace(), x.trace()]
    for number in range(2):
        items[number].exp()
    items[1].sin()  # E: sin: "items[1]" was moved by "exp"


def matched_against_a_list(x: Plain) -> None:
    first, second = x.trace(), x.trace()
    match [first, second]:
        case [one, *_]:
            one.exp()
            first.sin()  # E: sin: "first" was moved by "exp"


def items_of_a_display_with_a_star(x: Plain) -> None:
    items = [x.trace()]
    every = [*items, x.trace()]
    tt.stack(every)
    items[0].sin()  # E: sin: "items[0]" was moved by "stack"


def smallest_of_items_that_are_taken(x: Plain) -> None:
    items = [x.trace().sum(), x.trace().mean()]
    tt.stack(items)
    smallest = min(items, key=lambda one: one.item())
    smallest.exp()  # E: exp: "smallest" was moved by "stack"


def item_that_is_got(x: Plain) -> None:
    table = {"a": x.trace()}
    table["a"].exp()
    found = table.get("a")
    if found is not None:
        found.sin()  # E: sin: "found" was moved by "exp"


def _takes_the_first(several: Sequence[Traced]) -> Scalar:
    return several[0].sum()


def first_of_a_sequence(x: Plain) -> None:
    several: Sequence[Traced] = [x.trace(), x.trace()]
    several[0].exp()
    _takes_the_first(several)  # E: _takes_the_first: "several[0]" was moved by "exp"
    items = [x.trace(), x.trace()]
    _takes_the_first(items)
    items[0].exp()  # E: exp: "items[0]" was moved by "_takes_the_first"


class _Carry(NamedTuple):
    hidden: Traced
    passes: int


def of_a_record_that_is_made_anew_in_each_pass(x: Plain) -> None:
    carry = _Carry(x.trace(), 0)
    for number in range(2):
        carry.hidden.exp()  # E: exp: "carry.hidden" may have been moved by "exp"
        carry = carry._replace(passes=number)


def of_a_pair_that_is_made_anew(x: Plain) -> None:
    pair = (x.trace(), 0)
    pair[0].exp()
    pair = (pair[0], 1)
    pair[0].sin()  # E: sin: "pair[0]" was moved by "exp"


def all_but_the_last(x: Plain) -> None:
    items = [x.trace(), x.trace()]
    for one in items[:-1]:
        one.exp()
    tt.stack(items)  # E: stack: "items" was moved by "exp"


def last_first(x: Plain) -> None:
    for items in ([x.trace(), x.trace()], [x.trace(), x.trace()]):
        items[-1].exp()
        for _, one in zip((1, 2), reversed(items), strict=False):
            one.exp()  # E: exp: "one" was moved by "exp"


def skips_of_which_the_last_is_the_tensor_itself(
    x: Plain, several: tuple[int, ...] = (1, 2)
) -> None:
    skips = []
    h = x.trace()
    for _ in several:
        h = h.tanh()
        skips.append(h)
    for _, skip in zip(several, reversed(skips), strict=True):
        h = h + skip  # E: add: "skip" is given twice and owns one tape
