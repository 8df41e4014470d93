"""Ways that part and meet."""

from __future__ import annotations

from tests.plugin.moves.cases import Plain, Traced


def on_one_way(x: Plain, flag: bool = True) -> None:
    traced = x.trace()
    if flag:
        traced.exp()
    traced.sin()  # E: sin: "traced" may have been moved by "exp" on line 11


def on_both_ways(x: Plain, flag: bool = True) -> None:
    traced = x.trace()
    if flag:
        traced.exp()
    else:
        traced.sin()
    traced.cos()  # E: cos: "traced" was moved by "exp" on line 18


def in_the_last_of_three(x: Plain, number: int = 2) -> None:
    traced = x.trace()
    if number == 0:
        print(0)
    elif number == 1:
        print(1)
    else:
        traced.exp()
    traced.cos()  # E: cos: "traced" may have been moved by "exp"


def before_and_within(x: Plain, flag: bool = True) -> None:
    traced = x.trace()
    traced.exp()
    if flag:
        traced.sin()  # E: sin: "traced" was moved by "exp"


def one_way_leaves_early(x: Plain, flag: bool = False) -> None:
    traced = x.trace()
    if flag:
        return
    traced.exp()
    traced.sin()  # E: sin: "traced" was moved by "exp"


def assigned_anew_on_one_way_only(x: Plain, flag: bool = False) -> None:
    traced = x.trace()
    traced.exp()
    if flag:
        traced = x.trace()
    traced.sin()  # E: sin: "traced" may have been moved by "exp"


def conditional_expression(x: Plain, flag: bool = True) -> None:
    traced = x.trace()
    other = traced.exp() if flag else x.trace()
    traced.sin()  # E: sin: "traced" may have been moved by "exp"
    other.sum()


def both_parts_of_a_conditional_expression(x: Plain, flag: bool = True) -> None:
    traced = x.trace()
    other = traced.exp() if flag else traced.sin()
    traced.cos()  # E: cos: "traced" was moved by
    other.sum()


def after_and(x: Plain, flag: bool = True) -> None:
    traced = x.trace()
    flag and traced.exp().owns_tape
    traced.sin()  # E: sin: "traced" may have been moved by "exp"


def in_a_test(x: Plain) -> None:
    traced = x.trace()
    if traced.sum().item() > 0.0:
        traced.exp()  # E: exp: "traced" was moved by "sum"


def match_statement(x: Plain, number: int = 1) -> None:
    traced = x.trace()
    match number:
        case 0:
            pass
        case 1:
            traced.exp()
        case _:
            return
    traced.sin()  # E: sin: "traced" may have been moved by "exp"


def finally_block(x: Plain) -> None:
    traced = x.trace()
    try:
        traced.exp()
    finally:
        traced.sin()  # E: "traced" was moved by "exp"


def finally_block_after_return(x: Plain) -> None:
    traced = x.trace()
    try:
        traced.exp()
        return
    finally:
        traced.sin()  # E: "traced" was moved by "exp"


def after_try(x: Plain) -> None:
    traced = x.trace()
    try:
        traced.exp()
    except KeyError:
        return
    traced.sin()  # E: sin: "traced" was moved by "exp"


def after_a_handler_that_goes_on(x: Plain) -> None:
    traced = x.trace()
    try:
        traced.exp()
    except KeyError:
        print("no such key")
    traced.sin()  # E: sin: "traced" may have been moved by "exp"


def in_else_of_try(x: Plain) -> None:
    traced = x.trace()
    try:
        traced.exp()
    except KeyError:
        return
    else:
        traced.sin()  # E: sin: "traced" was moved by "exp"


def raised_on_purpose(x: Plain) -> None:
    traced = x.trace()
    try:
        traced.exp()
        raise KeyError("stop")
    except KeyError:
        traced.sin()  # E: sin: "traced" may have been moved by "exp"


def with_statement(x: Plain) -> None:
    traced = x.trace()
    with open("/dev/null"):
        traced.exp()
    traced.sin()  # E: sin: "traced" was moved by "exp"


def asserted(x: Plain, flag: bool = True) -> None:
    traced = x.trace()
    traced.exp()
    assert flag
    traced.sin()  # E: sin: "traced" was moved by "exp"


def spent_tensor_returned(x: Plain) -> None:
    def spent(traced: Traced) -> Traced:
        traced.exp()
        return traced

    spent(x.trace()).sin()  # E: sin: "spent(...)" was moved by "spent"


def in_a_chain_of_comparisons(x: Plain, limit: int = 2) -> None:
    traced = x.trace()
    if limit < x.size < traced.exp().size + 1:
        print("between")
    traced.sin()  # E: sin: "traced" may have been moved by "exp"


def decided_twice_in_the_same_way(x: Plain, other: Traced | None = None) -> None:
    other = x.trace() if other is None else other
    _residual(x.trace(), other)


def _residual(traced: Traced, other: Traced | None) -> Traced:
    if other is not None:
        traced = traced + other
    traced = traced.exp()
    if other is not None:
        traced = traced * other  # E: multiply: "other" may have been moved by "add"
    return traced
