"""Branches in which no spent tensor is used; each runs."""

from __future__ import annotations

import contextlib
import enum
import sys
import typing
from typing import TYPE_CHECKING, NoReturn
from typing import Literal as L

import tapetensor as tt
from tapetensor import NoneTape, Tensor
from tapetensor.typing import S, T
from tests.plugin.moves.cases import Plain, Scalar, Traced

_SEVEN: tuple[int, ...] = (7,)


class Mode(enum.Enum):
    FAST = 1
    SLOW = 2


def either_way(x: Plain, flag: bool = True) -> None:
    traced = x.trace()
    result = traced.exp() if flag else traced.sin()
    result.sum()


def for_checkers_alone(x: Plain) -> None:
    traced = x.trace()
    if TYPE_CHECKING:
        traced.exp()
    if typing.TYPE_CHECKING:
        traced.exp()
    traced.sin()


def either_branch(x: Plain, flag: bool = True) -> Scalar:
    traced = x.trace()
    if flag:
        result = traced.exp()
    else:
        result = traced.sin()
    return result.sum()


def early_return(x: Plain, flag: bool = True) -> Scalar:
    traced = x.trace()
    if flag:
        return traced.sum()
    return traced.mean()


def early_raise(x: Plain, flag: bool = False) -> Scalar:
    traced = x.trace()
    if flag:
        raise ValueError(str(traced.sum().item()))
    return traced.mean()


def early_exit(x: Plain, flag: bool = False) -> Scalar:
    traced = x.trace()
    if flag:
        print(traced.sum())
        sys.exit(1)
    return traced.mean()


def _stop(x: Traced) -> NoReturn:
    raise ValueError(str(x.exp()))


def early_exit_of_ones_own(x: Plain, flag: bool = False) -> Scalar:
    traced = x.trace()
    if flag:
        traced.square()
        _stop(x.trace())
    return traced.mean()


def same_condition_twice(x: Plain, flag: bool = True) -> None:
    traced = x.trace()
    if flag:
        traced.exp()
    print("between")
    if not flag:
        traced.sin()


def derived_condition(x: Plain, number: int = 1) -> None:
    traced = x.trace()
    is_one = number == 1
    if number == 1:
        traced.exp()
    if not is_one:
        traced.sin()


def same_condition_returns(x: Plain, flag: bool = True) -> None:
    traced = x.trace()
    if flag:
        print(traced.exp())
    if flag:
        return
    traced.sin()


def only_where_nothing_was_made(x: Plain, flag: bool = True) -> None:
    traced = x.trace()
    result: Traced | None = None
    if flag:
        result = traced.exp()
    if result is None:
        result = traced.sin()
    result.sum()


def exhaustive_match(x: Plain, mode: Mode = Mode.FAST) -> None:
    traced = x.trace()
    traced.exp()
    match mode:
        case Mode.FAST:
            traced = x.trace()
        case Mode.SLOW:
            traced = x.trace().sin()
    traced.sum()


def exhaustive_if(x: Plain, mode: L["a", "b"] = "a") -> None:
    traced = x.trace()
    traced.exp()
    if mode == "a":
        traced = x.trace()
    elif mode == "b":
        traced = x.trace().sin()
    traced.sum()


def match_cases(x: Plain, number: int = 0) -> None:
    traced = x.trace()
    match number:
        case 0:
            traced.exp()
        case 1 if number > 5:
            traced.sin()
        case _:
            traced.cos()


def handler(x: Plain) -> None:
    traced = x.trace()
    try:
        result = traced.reshape(_SEVEN).sum()
    except tt.ShapeError:
        result = traced.sum()
    result.backward()


def handler_that_follows_a_print(x: Plain) -> None:
    traced = x.trace()
    try:
        result = traced.sum()
        print(result)
    except tt.ShapeError:
        result = traced.mean()
    result.backward()


def suppressed(x: Plain) -> None:
    traced = x.trace()
    with contextlib.suppress(tt.ShapeError):
        traced.reshape(_SEVEN)
    traced.sum()


def raised_for_another_handler(x: Plain, flag: bool = False) -> None:
    traced = x.trace()
    try:
        try:
            if flag:
                traced.exp()
                raise KeyError("one")
        except ValueError:
            traced.sin()
    except KeyError:
        print("done")


def finally_that_reads(x: Plain) -> None:
    traced = x.trace()
    try:
        traced.exp()
    finally:
        print(traced.shape, traced)


def with_statement(x: Plain) -> None:
    with contextlib.nullcontext(x.trace()) as traced:
        traced.exp()
    with contextlib.nullcontext(x.trace()) as traced:
        traced.exp()


def either_tape(x: Plain) -> None:
    _regularized(x)
    _regularized(x.trace())


def _regularized(x: Tensor[S, T]) -> Tensor[S, T]:
    if x.owns_tape:
        return x * 0.5
    return x * 2.0


def _by_the_tape(x: Tensor[S, T]) -> Tensor[S, T]:
    if not x.owns_tape:
        return x * 2.0 + x
    return x * 3.0


def _by_the_kind_of_tape(x: Tensor[S, T]) -> Tensor[S, T]:
    if x.tape_type is NoneTape:
        print(x.exp())
    return x * 3.0


def decided_by_the_tape(x: Plain) -> None:
    _by_the_tape(x)
    _by_the_tape(x.trace())
    _by_the_kind_of_tape(x)
    _by_the_kind_of_tape(x.trace())


def boolean_operators(x: Plain, flag: bool = True) -> None:
    traced = x.trace()
    owns = flag and traced.owns_tape
    traced.exp()
    print(owns or traced.owns_tape)


class _Progress:
    def __init__(self) -> None:
        self.done = False

    def finish(self) -> None:
        self.done = True

    def is_done(self) -> bool:
        return self.done


def known_by_what_was_collected(x: Plain, flag: bool = True) -> None:
    traced = x.trace()
    results: list[Traced] = []
    if flag:
        results.append(traced.exp())
    if not results:
        results.append(traced.sin())


def known_by_an_entry(x: Plain, flag: bool = True) -> None:
    traced = x.trace()
    table: dict[str, Traced] = {}
    if flag:
        table["exp"] = traced.exp()
    if "exp" not in table:
        table["exp"] = traced.sin()


def known_by_an_object(x: Plain, flag: bool = True) -> None:
    traced = x.trace()
    progress = _Progress()
    if flag:
        traced.exp()
        progress.finish()
    if not progress.done:
        traced.sin()


def known_by_an_object_of_another_name(x: Plain, flag: bool = True) -> None:
    traced = x.trace()
    progress = _Progress()
    other = progress
    if flag:
        traced.exp()
        other.done = True
    if not progress.is_done():
        traced.sin()


def known_by_what_a_closure_assigns(x: Plain, flag: bool = True) -> None:
    traced = x.trace()
    done = False

    def finish() -> None:
        nonlocal done
        done = True

    if flag:
        traced.exp()
        finish()
    if not done:
        traced.sin()


def known_by_what_went_wrong(x: Plain) -> None:
    traced = x.trace()
    problems: list[str] = []
    try:
        int("one")
        traced.exp()
    except ValueError as error:
        problems.append(str(error))
    if problems:
        traced.sin()


def chain_of_comparisons(x: Plain, limit: int = 5) -> None:
    traced = x.trace()
    if limit < x.size < traced.exp().size + 1:
        print("between")
    if limit >= x.size:
        traced.sin()


def decided_anew_after_a_change(x: Plain, flag: bool = True) -> None:
    traced = x.trace()
    if flag:
        traced.exp()
    flag = not flag
    if flag:
        traced.sin()


def decided_the_other_way(x: Plain, other: Traced | None = None) -> None:
    other = x.trace() if other is None else other
    _either(x.trace(), other)
    _either(x.trace(), None)


def _either(traced: Traced, other: Traced | None) -> Traced:
    if other is not None:
        result = traced + other
    else:
        result = traced.exp()
    if other is None:
        return result
    return result.sin() if other is None else result.cos()


def decided_in_each_pass(x: Plain) -> None:
    traced: Traced | None = x.trace()
    for _ in range(2):
        if traced is not None:
            traced.exp()
        traced = None
