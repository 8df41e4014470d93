"""Parameters that are declared as lent, in functions that take, return or keep them."""

from __future__ import annotations

from tapetensor import Lent, Tensor
from tapetensor.typing import S, T
from tests.plugin.moves.cases import Scalar, Traced

KEPT: list[Traced] = []


def used(x: Lent[Traced]) -> Traced:
    return x.exp()  # E: exp: "x" is lent to this function, and "exp" takes its tape


def used_under_another_name(x: Lent[Traced]) -> Traced:
    other = x
    return other * 2.0  # E: multiply: "other" is lent to this function


def used_by_another_function(x: Lent[Tensor[S, T]]) -> Tensor[S, T]:
    return _taken(x)  # E: _taken: "x" is lent to this function


def replayed(loss: Lent[Scalar]) -> int:
    return len(loss.backward())  # E: backward: "loss" is lent to this function


def returned(x: Lent[Traced]) -> Traced:
    return x  # E: return: "x" is lent to this function, and must not be returned


def returned_in_a_tuple(x: Lent[Traced]) -> tuple[Traced, int]:
    same = x
    return same, 1  # E: return: "same" is lent to this function


def put_away(x: Lent[Traced]) -> None:
    KEPT.append(x)  # E: assignment: "x" is lent to this function, and must not be kept


class Keeper:
    def __init__(self, x: Lent[Traced]) -> None:
        self.traced = x  # E: assignment: "x" is lent to this function

    def handle(self, x: Lent[Traced]) -> Traced:
        x = x.with_empty_tape()
        return x.exp()


def only_read(x: Lent[Traced]) -> tuple[Traced, float]:
    shown = [x]
    print(shown, x.shape)
    return x.with_empty_tape(), float(x.numpy().sum())


def _taken(x: Tensor[S, T]) -> Tensor[S, T]:
    return x.exp()
