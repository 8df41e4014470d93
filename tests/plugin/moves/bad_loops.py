"""Moves in an earlier pass of a loop."""

from __future__ import annotations

from collections.abc import Iterator

from tests.plugin.moves.cases import Plain, Traced


def for_loop(x: Plain) -> None:
    traced = x.trace()
    for _ in range(2):
        traced.exp()  # E: "traced" may have been moved by "exp" on line 13 in an earlier pass


def while_loop(x: Plain) -> None:
    traced = x.trace()
    count = 0
    while count < 2:
        count += 1
        traced.exp()  # E: exp: "traced" may have been moved by "exp" on line 21 in an earlier


def endless_loop(x: Plain) -> None:
    traced = x.trace()
    while True:
        traced.exp()  # E: exp: "traced" may have been moved by "exp"


def used_before_moved(x: Plain) -> None:
    traced = x.trace()
    for _ in range(2):
        traced.with_empty_tape()  # E: "traced" may have been moved by "exp" on line 34 in an
        traced.exp()  # E: "traced" may have been moved by "exp" on line 34 in an earlier pass


def inner_loop(x: Plain) -> None:
    for _ in range(2):
        traced = x.trace()
        for _ in range(2):
            traced.exp()  # E: exp: "traced" may have been moved by "exp"


def after_the_loop(x: Plain) -> None:
    traced = x.trace()
    for _ in range(1):
        traced.exp()
        break
    traced.sin()  # E: sin: "traced" may have been moved by "exp" on line 47


def with_a_harmless_branch(x: Plain) -> None:
    traced = x.trace()
    for number in range(3):
        if number % 2:
            print(number)
        traced.exp()  # E: exp: "traced" may have been moved by "exp"


def under_a_flag_that_stays(x: Plain, flag: bool = True) -> None:
    traced = x.trace()
    for _ in range(3):
        if flag:
            traced.exp()  # E: exp: "traced" may have been moved by "exp"


def list_comprehension(x: Plain) -> None:
    traced = x.trace()
    [traced.exp() for _ in range(2)]  # E: "traced" may have been moved by "exp"


def dictionary_comprehension(x: Plain) -> None:
    traced = x.trace()
    {number: traced.exp() for number in range(2)}  # E: "traced" may have been moved by "exp"


def generator_that_is_consumed(x: Plain) -> None:
    traced = x.trace()
    tuple(traced.exp() for _ in range(2))  # E: "traced" may have been moved by "exp"


def after_a_comprehension(x: Plain) -> None:
    traced = x.trace()
    [traced.exp() for _ in range(2)]  # E: "traced" may have been moved by "exp"
    traced.sin()  # E: sin: "traced" may have been moved by "exp"


def else_of_a_loop(x: Plain) -> None:
    traced = x.trace()
    for _ in range(2):
        print("pass")
    else:
        traced.exp()
    traced.sin()  # E: sin: "traced" was moved by "exp"


def loss_that_is_kept(x: Plain) -> None:
    loss = x.trace().sum()
    for _ in range(2):
        loss.backward()  # E: "loss" may have been moved by "backward"


def restarted_only_sometimes(x: Plain) -> None:
    traced = x.trace()
    for number in range(4):
        traced.exp()  # E: "traced" may have been moved by "exp"
        if number == 2:
            traced = x.trace()


def with_a_counter_of_its_own(x: Plain) -> None:
    traced = x.trace()
    count = 0
    while (count := count + 1) < 3:
        traced.exp()  # E: "traced" may have been moved by "exp"


def attribute_that_nothing_assigns(x: Plain) -> None:
    holder = Holder(x)
    for number in range(2):
        print("pass", number + 1)
        holder.traced.exp()  # E: "holder.traced" may have been moved by "exp"
        print(number - 1)


def in_a_generator(x: Plain) -> None:
    def steps() -> Iterator[Traced]:
        traced = x.trace()
        while True:
            yield traced.exp()  # E: "traced" may have been moved by "exp"

    endless = steps()
    next(endless)
    next(endless)


class Holder:
    def __init__(self, x: Plain) -> None:
        self.traced = x.trace()


def met_by_two_loops_over_one_list(x: Plain) -> None:
    items = [x.trace(), x.trace(), x.trace()]
    for first in items:
        for second in items:
            if first is not second:
                first * second  # E: multiply: "first" may have been moved by "multiply"


def met_with_both_neighbours(x: Plain) -> None:
    items = [x.trace(), x.trace(), x.trace()]
    for first, second in zip(items[:-1], items[1:], strict=False):  # noqa: RUF007
        first * second  # E: multiply: "first" was moved by "multiply"


def met_first_in_loops_over_pairs(x: Plain) -> None:
    items = [x.trace(), x.trace()]
    for one, factor in zip(items, (1.0, 2.0), strict=False):
        one * factor
    items[0].exp()  # E: exp: "items[0]" was moved by "multiply"


def met_by_two_indices_of_one_list(x: Plain) -> None:
    items = [x.trace(), x.trace(), x.trace()]
    for i in range(len(items)):
        for j in range(len(items)):
            if i != j:
                items[i] * items[j]  # E: multiply: "items[i]" may have been moved by "multiply"


def met_by_an_index_from_the_end(x: Plain, several: tuple[int, ...] = (1, 2)) -> None:
    skips: list[Traced] = []
    h = x.trace()
    for _ in several:
        skips.append(h)
        h = h.tanh()
    for i, _ in enumerate(several):
        h = h + skips[-1 - i]  # E: add: "skips[-1 - i]" may have been moved by "tanh"


def met_by_a_counter(x: Plain, passes: int = 2) -> None:
    items = [x.trace(), x.trace()]
    for i in range(passes):
        items[len(items) - 1 - i].exp()
    items[-1].sin()  # E: sin: "items[-1]" may have been moved by "exp"


def by_another_name_in_a_loop_within_a_loop(x: Plain) -> None:
    traced = x.trace()
    for _ in range(2):
        y = traced
        for _ in range(2):
            y = y.exp()  # E: exp: "y" may have been moved by "exp" on line
        y.sum().backward()


def by_two_other_names_in_loops(x: Plain) -> None:
    traced = x.trace()
    y = traced
    for _ in range(2):
        y = y.exp()
    z = traced
    for _ in range(2):
        z = z.exp()  # E: exp: "z" may have been moved by "exp"


def one_name_more_in_each_pass(x: Plain) -> None:
    gain, total = x.trace(), x.trace()
    for _ in range(2):
        gain, now = gain, gain
        total = total + now  # E: "now" may have been moved by "add" on line 211 in an earlier pass
