"""One thing after the other."""

from __future__ import annotations

from typing import Any, cast

import tapetensor as tt
from tapetensor import OwnedTape, Tensor, losses
from tests.plugin.moves.cases import Plain, Scalar


def method(x: Plain) -> None:
    traced = x.trace()
    traced.square()
    traced.exp()  # E: exp: "traced" was moved by "square" on line 14; go on with its result


def operator(x: Plain) -> None:
    traced = x.trace()
    traced * 2.0
    2.0 * traced  # E: multiply: "traced" was moved by "multiply" on line 20


def right_operand(x: Plain) -> None:
    traced = x.trace()
    x + traced
    print(-traced)  # E: negative: "traced" was moved by "add"


def left_operand(x: Plain) -> None:
    traced = x.trace()
    traced - x
    traced / x  # E: divide: "traced" was moved by "subtract"


def builtin_abs(x: Plain) -> None:
    traced = x.trace()
    abs(traced)
    traced[0]  # E: getitem: "traced" was moved by "abs"


def item(x: Plain) -> None:
    traced = x.trace()
    traced[:2]
    abs(traced)  # E: abs: "traced" was moved by "getitem"


def twice_in_one_operator(x: Plain) -> None:
    traced = x.trace()
    traced * traced  # E: multiply: "traced" is given twice


def used_and_moved_in_one_operator(x: Plain) -> None:
    traced = x.trace()
    traced + traced.exp()  # E: add: "traced" was moved by "exp" on line 55


def twice_in_a_list(x: Plain) -> None:
    traced = x.trace()
    tt.concat([traced, traced])  # E: concat: "traced" is given twice


def moved_in_a_tuple(x: Plain) -> None:
    traced = x.trace()
    tt.stack((x, traced))
    traced.sum()  # E: sum: "traced" was moved by "stack"


def function_of_the_library(x: Plain) -> None:
    traced = x.trace()
    losses.mse(traced, x)
    traced.sum()  # E: sum: "traced" was moved by "mse"


def where(x: Plain) -> None:
    traced = x.trace()
    tt.where(x > 0.0, traced, x)
    tt.maximum(traced, x)  # E: maximum: "traced" was moved by "where"


def backward_twice(x: Plain) -> None:
    loss = x.trace().sum()
    loss.backward()
    loss.backward()  # E: "loss" was moved by "backward" on line 83; a tape is replayed once


def backward_of_a_spent_loss(x: Plain) -> None:
    loss = x.trace().sum()
    (loss * 2.0).backward()
    loss.backward()  # E: backward: "loss" was moved by "multiply"


def tape_put_twice(x: Plain) -> None:
    plain, tape = x.trace().square().split_tape()
    plain.put_tape(tape)
    plain.put_tape(tape)  # E: put_tape: "tape" was moved by "put_tape"


def split_and_used(x: Plain) -> None:
    traced = x.trace()
    traced.split_tape()
    traced.exp()  # E: "traced" was moved by "split_tape" on line 101; go on with the two parts


def traced_spends_a_plain_tensor(x: Plain) -> None:
    x.traced()
    x.exp()  # E: exp: "x" was moved by "traced" on line 106; go on with what it returned


def traced_then_traced(x: Plain) -> None:
    x.traced()
    x.trace()  # E: trace: "x" was moved by "traced"


def borrowing_needs_a_live_tensor(x: Plain) -> None:
    traced = x.trace()
    traced.exp()
    traced.with_empty_tape()  # E: with_empty_tape: "traced" was moved by "exp"


def detaching_needs_a_live_tensor(x: Plain) -> None:
    traced = x.trace()
    traced.exp()
    traced.detach()  # E: detach: "traced" was moved by "exp"


def comparing_needs_a_live_tensor(x: Plain) -> None:
    traced = x.trace()
    traced.exp()
    print(x > traced)  # E: "traced" was moved by "exp"


def argmax_needs_a_live_tensor(x: Plain) -> None:
    traced = x.trace()
    traced.exp()
    traced.argmax(-1)  # E: argmax: "traced" was moved by "exp"


def assigned_in_place(x: Plain) -> None:
    traced = x.trace()
    total = x.trace()
    total += traced
    traced.exp()  # E: exp: "traced" was moved by "add" on line 142


def assigned_in_place_when_spent(x: Plain) -> None:
    total = x.trace()
    total.exp()
    total += x  # E: add: "total" was moved by "exp"


def in_a_cast(x: Plain) -> None:
    traced = x.trace()
    cast(Tensor[Any, OwnedTape], traced).exp()
    traced.sin()  # E: sin: "traced" was moved by "exp"


def in_an_f_string(x: Plain) -> None:
    traced = x.trace()
    traced.exp()
    print(f"{traced} {traced.sin()}")  # E: sin: "traced" was moved by "exp"


def chain(x: Plain) -> None:
    traced = x.trace()
    loss: Scalar = traced.square().sum()
    traced.sum().backward()  # E: sum: "traced" was moved by "square"
    loss.backward()


def one_error_per_use(x: Plain) -> None:
    traced = x.trace()
    traced.exp()
    traced.sin()  # E: sin: "traced" was moved by "exp"
    traced.cos()  # E: cos: "traced" was moved by "exp"


def item_of_a_tensor(x: Plain) -> None:
    traced = x.trace()
    traced[0].exp()
    traced[0].sin()  # E: getitem: "traced" was moved by "getitem"


def mirrored(x: Plain) -> None:
    traced = x.trace()
    1.0 + traced
    1.0 - traced  # E: subtract: "traced" was moved by "add"


def checkpointed(x: Plain) -> None:
    traced = x.trace()
    tt.checkpoint(lambda one: one.exp(), traced)
    traced.sum()  # E: sum: "traced" was moved by "checkpoint"
