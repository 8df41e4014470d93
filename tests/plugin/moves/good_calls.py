"""What is called under a class, by a builtin or by reading a property, and takes nothing."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, overload

from typing_extensions import override

import tapetensor as tt
from tapetensor import Lent, Tensor, Tensor1D, nn
from tapetensor.typing import N, T
from tests.plugin.moves.cases import Plain, Scalar, Traced

_LAYER = nn.ReLU()


class Reads:
    def __init__(self, traced: Traced) -> None:
        self.traced = traced

    @staticmethod
    def static(traced: Traced) -> int:
        return traced.shape[0]

    @classmethod
    def of_class(cls, traced: Traced) -> Traced:
        return traced.share().exp()

    @classmethod
    def both(cls, traced: Traced) -> Traced:
        cls.of_class(traced)
        cls.static(traced)
        return traced.exp()

    @property
    def total(self) -> Scalar:
        return self.traced.share().sum()


class Overrides(Reads):
    @staticmethod
    @override
    def static(traced: Traced) -> int:
        return len(traced)


def methods_of_a_class_that_read(x: Plain) -> None:
    traced = x.trace()
    Reads.static(traced)
    Overrides.static(traced)
    Reads.of_class(traced)
    Reads.both(traced)


def property_that_shares(x: Plain) -> None:
    reads = Reads(x.trace())
    print(reads.total, reads.total)
    reads.traced.sum()


def functions_in_a_dict_that_read(x: Plain) -> None:
    table: dict[str, Callable[[Traced], Traced]] = {
        "share": lambda one: one.share(),
        "tanh": lambda one: one.share().tanh(),
    }
    traced = x.trace()
    table["share"](traced)
    table["tanh"](traced)
    traced.sum()


def mapped_for_reading(x: Plain) -> None:
    items = [x.trace(), x.trace()]
    print(list(map(Tensor.numpy, items)))
    print(list(map(Reads.static, items)))
    functools.reduce(lambda one, other: one + other, items).sum()


def reduced_from_a_first_one(x: Plain) -> None:
    items = [x.trace(), x.trace()]
    functools.reduce(lambda one, other: one + other.share(), items, x.trace()).sum()
    items[1].sin()


def mapped_and_never_run(x: Plain) -> None:
    items = [x.trace(), x.trace()]
    later = map(Tensor.exp, items)
    items[0].sin()
    del later


def asked_for_by_a_handle(x: Plain) -> None:
    handle = x.trace().exp().with_empty_tape()
    print(handle.square().sum().backward(wrt=handle))
    other = x.trace().exp()
    twin = other.with_empty_tape()
    print((twin.square() * other).sum().backward(wrt=[twin, x]))


def lent_for_its_shape(x: Plain) -> None:
    traced = x.trace()
    print(_shape_of(traced))
    traced.sum()


def _shape_of(traced: Lent[Traced]) -> tuple[Any, ...]:
    return traced.shape


def told_apart_by_what_a_pass_is_for(x: Plain) -> None:
    _gated(x)
    _gated(x.trace())


def _gated(x: Tensor1D[N, T]) -> Tensor1D[N, T]:
    gate = x.share() if nn.is_training(_LAYER, x) else x
    return x * gate.sigmoid()


def some_of_the_items(x: Plain) -> None:
    items = [x.trace(), x.trace(), x.trace()]
    for number in range(2):
        items[number].exp()
    rest = items[2:]
    rest[0].sin()


def items_put_back_by_number(x: Plain) -> None:
    items = [x.trace(), x.trace()]
    for number in range(2):
        items[number] = items[number].exp()
    items[0].sin()


def keys_of_a_dict_put_back(x: Plain) -> None:
    table = {"a": x.trace(), "b": x.trace()}
    for name in table:
        table[name] = table[name].exp()
    for name in table:
        table[name].sin()


def display_made_anew_in_each_pass(x: Plain) -> None:
    for _ in range(2):
        first, second = x.trace(), x.trace()
        for one in (first, second):
            one.exp()


def chosen_by_what_decides_later(x: Plain, flag: bool = True) -> None:
    traced, other = x.trace(), x.trace()
    chosen = traced if flag else other
    chosen.exp()
    if not flag:
        traced.sin()


_MODULE_VARIABLE: Traced = tt.from_numpy([0.5, 1.0, 2.0], shape=(3,)).trace()


def _takes_a_variable_of_the_module() -> Traced:
    return _MODULE_VARIABLE.share().exp()


_CURRENT: Traced = tt.from_numpy([0.5, 1.0, 2.0], shape=(3,)).trace()


def _renews() -> None:
    global _CURRENT
    _CURRENT = _CURRENT.tanh()


_renews()
_renews()
_takes_a_variable_of_the_module()
_takes_a_variable_of_the_module()


def forked_tapes(x: Plain) -> None:
    _, tape = x.trace().split_tape()
    for _ in range(2):
        tape.fork()


class _TracedWhenAsked(Sequence[Traced]):
    def __init__(self, x: Plain) -> None:
        self.values = [x, x]

    @override
    def __len__(self) -> int:
        return len(self.values)

    @overload
    def __getitem__(self, index: int) -> Traced: ...
    @overload
    def __getitem__(self, index: slice) -> list[Traced]: ...
    @override
    def __getitem__(self, index: int | slice) -> Traced | list[Traced]:
        if isinstance(index, int):
            return self.values[index].trace()
        return [value.trace() for value in self.values[index]]


class _TracedByName(Mapping[str, Traced]):
    def __init__(self, x: Plain) -> None:
        self.values_by_name = {"a": x}

    @override
    def __len__(self) -> int:
        return len(self.values_by_name)

    @override
    def __iter__(self) -> Iterator[str]:
        return iter(self.values_by_name)

    @override
    def __getitem__(self, name: str) -> Traced:
        return self.values_by_name[name].trace()


def _first_twice(several: Sequence[Traced]) -> None:
    several[0].exp()
    several[0].sin()
    for traced in several:
        traced.exp()
    for traced in several:
        traced.sin()


def _named_twice(several: Mapping[str, Traced]) -> None:
    several["a"].exp()
    several["a"].sin()


def sequences_and_mappings_that_trace_when_asked(x: Plain) -> None:
    _first_twice(_TracedWhenAsked(x))
    _named_twice(_TracedByName(x))
