"""Attributes, objects and functions that are values, with tensors that are used once; each runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Generic, NamedTuple

from typing_extensions import override

from tapetensor import Gradients, Lent, OwnedTape, Tensor
from tapetensor.typing import S, T
from tests.plugin.moves.cases import Plain, Scalar, Traced


class Holder:
    def __init__(self, x: Plain) -> None:
        self.plain = x
        self.traced = x.trace()

    def renewed_by_its_name(self) -> None:
        traced = self.traced
        self.traced = traced.exp()
        self.traced.sin()

    def renewed_by_a_method(self) -> None:
        traced = self.traced
        self.renew()
        traced.exp()
        self.traced.exp()

    def renew(self) -> None:
        self.traced = self.plain.trace()

    def step(self) -> None:
        self.traced = self.traced.exp()

    def step_and_renew(self) -> None:
        self.traced.sum().backward()
        self.renew()

    def maybe(self, flag: bool) -> None:
        if flag:
            self.traced.sum().backward()

    @property
    def fresh(self) -> Traced:
        return self.plain.trace()

    @cached_property
    def kept(self) -> Traced:
        return self.plain.trace()

    @property
    def handle(self) -> Traced:
        return self.traced.with_empty_tape()


def attributes(x: Plain) -> None:
    Holder(x).renewed_by_its_name()
    Holder(x).renewed_by_a_method()
    holder = Holder(x)
    holder.step()
    holder.step()
    holder.step_and_renew()
    holder.traced.sin()
    holder = Holder(x)
    holder.maybe(False)
    holder.traced.sin()


def properties(x: Plain) -> None:
    holder = Holder(x)
    first, second = holder.fresh, holder.fresh
    first * second
    holder.handle * holder.handle
    holder.kept.exp()


class Pair(NamedTuple):
    first: Traced
    second: Traced


@dataclass
class Batch(Generic[T]):
    traced: Tensor[tuple[int], T]
    number: int = 0


@dataclass
class Changed:
    traced: Traced

    def __post_init__(self) -> None:
        self.traced = self.traced.with_empty_tape()


class Scaled:
    def __init__(self, traced: Traced) -> None:
        self.traced = traced.with_empty_tape()


class Counted:
    def __init__(self, traced: Traced, number: int) -> None:
        if number:
            traced = traced.with_empty_tape()
        self.traced = traced


def objects(x: Plain) -> None:
    pair = Pair(x.trace(), x.trace())
    pair.first.exp()
    pair.second.exp()
    first, second = Pair(x.trace(), x.trace())
    first * second
    traced = x.trace()
    changed = Changed(traced)
    (changed.traced * traced).sum()
    traced = x.trace()
    scaled = Scaled(traced)
    (scaled.traced * traced).sum()
    traced = x.trace()
    counted = Counted(traced, 1)
    (counted.traced * traced).sum()
    plain = Pair(x.trace(), x.trace())
    print(_size_of(plain), _size_of(plain))
    plain.first.exp()


def methods_that_are_bound(x: Plain) -> None:
    traced = x.trace()
    step = traced.exp
    traced = x.trace()
    step()
    traced.exp()
    traced = x.trace()
    read = traced.item if False else traced.numpy
    read()
    traced.exp()
    traced = x.trace()
    again = traced.with_empty_tape
    (again() * traced).sum()


def partials(x: Plain) -> None:
    traced = x.trace()
    scale = partial(_scaled, traced)
    traced = x.trace()
    scale(2.0)
    traced.exp()
    look = partial(_log, "loss")
    loss = x.trace().sum()
    look(loss)
    look(loss)
    loss.backward()


def functions_in_a_dict(x: Plain) -> None:
    functions: dict[str, Callable[[Scalar], float]] = {"a": _read, "b": _taken}
    loss = x.trace().sum()
    functions["a"](loss)
    loss.backward()
    several = {"a": _read, "b": _read}
    loss = x.trace().sum()
    for name in several:
        several[name](loss)
    loss.backward()


def default_arguments(x: Plain) -> None:
    traced = x.trace()

    def look(again: Traced = traced) -> None:
        print(again)

    def take(again: Traced | None = None) -> Traced:
        return x.trace().exp() if again is None else again.exp()

    def later(again: Traced = x.trace()) -> Traced:  # noqa: B008
        return again.exp()

    look()
    look()
    take()
    take()
    later(x.trace())
    later()
    traced.exp()


def closures(x: Plain) -> None:
    traced = x.trace()
    other = x.trace()

    def step() -> Traced:
        return traced.exp()

    def renewed() -> Traced:
        nonlocal other
        other = x.trace()
        return other.exp()

    renewed()
    renewed()
    step()
    traced = x.trace()
    step()
    traced = x.trace()
    later = lambda: traced.exp()  # noqa: E731
    print(later)
    traced.exp()


class Base:
    def forward(self, x: Traced) -> Traced:
        return x.exp()

    def look(self, x: Traced) -> Traced:
        return x.with_empty_tape()


class Derived(Base):
    @override
    def forward(self, x: Traced) -> Traced:
        hidden = super().forward(x.with_empty_tape())
        return hidden + x

    @override
    def look(self, x: Traced) -> Traced:
        twin = super().look(x)
        return twin * x


def methods_of_the_base_class(x: Plain) -> None:
    Derived().forward(x.trace())
    Derived().look(x.trace())


def functions_that_may_take(x: Plain) -> None:
    loss = x.trace().sum()
    _maybe(loss, train=False)
    _early(loss, 0)
    _tried(loss, x)
    _of_a_handle(loss)
    _renamed(loss)
    _read(loss)
    _read_by_another(loss)
    print(_lengths([x.trace(), x.trace()]))
    _later(loss)
    loss.backward()


def functions_that_take_what_is_plain(x: Plain) -> None:
    total = x.sum()
    _generic(total)
    _generic(total)
    batch = Batch(x)
    _of_a_batch(batch)
    _of_a_batch(batch)


def one_item_of_several(x: Plain) -> None:
    items = [x.trace(), x.trace()]
    _chosen(items, 0)
    _chosen(items, 1)


def lent(x: Plain) -> None:
    traced = x.trace()
    (_centred(traced) * _centred(traced)).sum()
    print(traced.sum().to_html()[:1], x.trace().sum().tree(ascii=True)[:1])
    loss = x.trace().sum()
    loss.to_html()
    loss.tree()
    loss.backward()


def _chosen(items: list[Traced], number: int) -> Traced:
    return items[number].exp()


def _centred(x: Lent[Traced]) -> Traced:
    twin = x.with_empty_tape()
    return twin.exp()


def _maybe(loss: Scalar, *, train: bool) -> float:
    if train:
        loss.backward()
    return loss.item()


def _early(loss: Scalar, number: int) -> int:
    if number == 0:
        return 0
    return len(loss.backward())


def _tried(loss: Scalar, x: Plain) -> None:
    try:
        _fails(x)
        loss.backward()
    except ValueError:
        print(loss)


def _fails(x: Plain) -> None:
    raise ValueError(str(x.shape))


def _of_a_handle(loss: Scalar) -> None:
    loss = loss.with_empty_tape()
    loss.exp()


def _renamed(loss: Scalar) -> None:
    other = loss
    loss = loss.with_empty_tape()
    print(other, loss.exp())


def _read(loss: Scalar) -> float:
    value = loss.item()
    print(f"loss {value:.3f}", loss.shape)
    return value


def _read_by_another(loss: Scalar) -> float:
    return _read(loss) + float(loss)


def _log(name: str, loss: Scalar) -> None:
    print(name, loss.item())


def _taken(loss: Scalar) -> float:
    return loss.exp().item()


def _later(loss: Scalar) -> Iterator[Gradients]:
    yield loss.backward()


def _lengths(items: list[Traced]) -> int:
    return sum(len(item) for item in items)


def _size_of(pair: Pair) -> int:
    return pair.first.size + pair[1].size


def _scaled(x: Traced, factor: float = 1.0) -> Traced:
    return x * factor


def _generic(x: Tensor[S, T]) -> float:
    return float(x.exp().numpy().sum())


def _of_a_batch(batch: Batch[T]) -> float:
    return float(batch.traced.exp().numpy().sum())


def _only_owners(x: Tensor[S, OwnedTape]) -> None:
    print(x)


def _parted(traced: Traced) -> Traced:
    # What hands the tape on to several handles is no mere loan to this function.
    first, second = traced.share(2)
    return first * second.exp()


def parted_in_a_function(x: Plain) -> None:
    _parted(x.trace()).sum().backward()


class _Logger:
    def log(self, traced: Traced) -> None:
        traced.sum().backward()

    def pass_on(self, traced: Traced) -> Traced:
        return traced.exp()

    def hook(self, traced: Traced) -> Traced:
        self.log(traced)
        return traced.sin()


class _Reads(_Logger):
    @override
    def log(self, traced: Traced) -> None:
        print(traced.shape)

    @override
    def pass_on(self, traced: Traced) -> Traced:
        return traced.share()


def _logged(logger: _Logger, traced: Traced) -> None:
    logger.log(traced)
    logger.pass_on(traced)
    traced.sin()


def overridden_by_what_reads(x: Plain) -> None:
    _logged(_Reads(), x.trace())
    _Reads().hook(x.trace())


class _Looks:
    @staticmethod
    def seen(traced: Traced) -> Traced:
        return traced.share()


def static_methods_that_read(x: Plain) -> None:
    traced = x.trace()
    _Looks.seen(traced)
    _Looks().seen(traced)
    traced.sin()
