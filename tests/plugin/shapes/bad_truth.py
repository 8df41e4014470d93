"""The truth of many elements, and many elements as one number. Every thunk raises."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any
from typing import Literal as L

from typing_extensions import override

import tapetensor as tt
from tapetensor import Tensor, Tensor0D, Tensor1D, Tensor2D
from tapetensor.typing import N

Row = Tensor1D[L[3]]


@dataclass
class State:
    h: Row
    step: int = 0


@dataclass(eq=False)
class Identity:
    h: Row


@dataclass
class Own:
    h: Row
    name: str = field(default="own")

    @override
    def __eq__(self, other: object) -> bool:
        return isinstance(other, Own) and self.name == other.name

    __hash__ = None  # type: ignore[assignment]  # what a data class with an `__eq__` has


def clipped(g: Tensor1D[N], limit: float) -> Tensor1D[N]:
    if g > limit:  # E: if: a tensor of shape (N,) has a truth for each element, not one; ask for
        return g
    return g * 2.0


def as_number(g: Tensor1D[N]) -> float:
    return float(g)  # E: float: a tensor of shape (N,) has N elements, not one; reduce it first


def as_int(x: Tensor2D[L[2], L[3]]) -> int:
    return int(x[0])  # E: int: a tensor of shape (3,) has 3 elements, not one


def root(x: Tensor2D[L[2], L[3]]) -> float:
    return math.sqrt(x.sum(axis=0))  # E: sqrt: a tensor of shape (3,) has 3 elements, not one


def as_truth(old: Tensor1D[N], new: Tensor1D[N]) -> bool:
    return bool(abs(new - old) < 1e-3)  # E: bool: a tensor of shape (N,) has a truth for each


def asserted(x: Row) -> None:
    assert x == x + 0.0  # E: assert: a tensor of shape (3,) has a truth for each element


def repeated(x: Row) -> None:
    while abs(x) > 1e-3:  # E: while: a tensor of shape (3,) has a truth for each element
        x = x * 0.5


def chained(x: Row) -> object:
    return 0.0 < x < 1.0  # E: a chain of comparisons: a tensor of shape (3,) has a truth for each


def negated(x: Row) -> bool:
    return not x.detach()  # E: not: a tensor of shape (3,) has a truth for each element


def joined(x: Row) -> object:
    return (x > 0.0) or (x < -1.0)  # E: or: a tensor of shape (3,) has a truth for each element


def chosen(x: Row) -> Row:
    return x if x > 0.0 else -x  # E: if: ... choose by element with tt.where(mask, x, y)


def kept(rows: list[Row]) -> list[Row]:
    return [row for row in rows if row.abs()]  # E: if: a tensor of shape (3,) has a truth


def any_of(rows: list[Row]) -> bool:
    return any(row > 0.0 for row in rows)  # E: any: a tensor of shape (3,) has a truth for each


def named(x: Row) -> Row:
    mask = x > 0.0
    if mask:  # E: if: a tensor of shape (3,) has a truth for each element
        return x
    return -x


def parameter(x: Row, mask: Row) -> Row:
    if mask:  # E: if: a tensor of shape (3,) has a truth for each element
        return x.abs()
    return x


def optional(x: Row, mask: Row | None) -> Row:
    if not mask:  # E: not: a tensor of shape (3,) ... `is not None` asks whether there is one
        return x.abs()
    return x


def attribute(state: State) -> bool:
    # E: and: a tensor of shape (3,) has a truth for each element, not one
    return bool(state.h and state.step)


def contained(x: Row, rows: list[Row]) -> bool:
    return x in rows  # E: in: a tensor of shape (3,) ... any(one is x for one in items) asks for


def larger(x: Row, y: Row) -> Row:
    return max(x, y)  # E: max: a tensor of shape (3,) ... tt.maximum(x, y) takes the larger


def ordered(x: Row, y: Row) -> object:
    return sorted([(1.0, x), (1.0, y)])  # E: sorted: a tensor of shape (3,) ... give it a key


def equal(x: Row, y: Row) -> bool:
    return State(x) == State(y)  # E: ==: a tensor of shape (3,) ... with (x == y).all()


def equal_pairs(x: Row, y: Row) -> bool:
    return (1, x) == (1, y)  # E: ==: a tensor of shape (3,) has a truth for each element, not one


def right(
    loss: Tensor0D, one: Tensor2D[L[1], L[1]], any_shape: Tensor[Any], x: Row, rows: list[Row]
) -> None:
    """What has one element, or may have, has one truth; whole objects are compared as such."""
    assert loss < 10.0
    assert one == one
    assert any_shape > 0.0
    assert 0.0 < float(one) < 10.0
    assert any(x > 0.0) or (x > 0.0).all()
    assert any(row is x for row in rows)
    best = max(rows, key=lambda row: row.sum().item())
    found = best if best is not None else x
    if isinstance(found, tt.Tensor) and len(found) == 3:
        print(max(x.tolist()), round(float(loss), 2), math.sqrt(loss.item()))
    assert Identity(x) != Identity(x)
    assert Own(x) == Own(x + 1.0)
    assert 0 < len(rows) < 3


x: Row = tt.ones((3,))
twice: Tensor2D[L[2], L[3]] = tt.ones((2, 3))
right(x.sum(), tt.ones((1, 1)), tt.ones(()), x, [x])
BAD: tuple[Callable[[], object], ...] = (
    lambda: clipped(x, 0.5),
    lambda: as_number(x),
    lambda: as_int(twice),
    lambda: root(twice),
    lambda: as_truth(x, x),
    lambda: asserted(x),
    lambda: repeated(x),
    lambda: chained(x),
    lambda: negated(x),
    lambda: joined(x),
    lambda: chosen(x),
    lambda: kept([x]),
    lambda: any_of([x]),
    lambda: named(x),
    lambda: parameter(x, x),
    lambda: optional(x, x),
    lambda: attribute(State(x)),
    lambda: contained(x, [x + 1.0]),
    lambda: larger(x, x + 1.0),
    lambda: ordered(x, x + 1.0),
    lambda: equal(x, x + 1.0),
    lambda: equal_pairs(x, x + 1.0),
)
