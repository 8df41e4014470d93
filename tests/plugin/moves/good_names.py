"""Names, borrowing, second handles; each runs."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any, TypeAlias

import numpy as np
from typing_extensions import override

from tapetensor import Gradients, OwnedTape, Tensor, losses, nn
from tapetensor.typing import B, S, T
from tests.plugin.moves.cases import Plain, Scalar, Traced


class Holder:
    def __init__(self, x: Plain) -> None:
        self.plain = x
        self.traced = x.trace()

    @property
    def fresh(self) -> Traced:
        return self.plain.trace()

    def __getitem__(self, number: int) -> Traced:
        return self.plain.trace()

    def renew(self) -> None:
        self.traced = self.plain.trace()

    def renewed_by_a_method(self) -> None:
        self.traced.exp()
        self.renew()
        self.traced.exp()

    def renewed_by_leaving(self) -> None:
        with self:
            self.traced.exp()
        self.traced.exp()

    def __enter__(self) -> None:
        print("entered")

    def __exit__(self, *_: object) -> None:
        self.renew()

    def assigned(self) -> None:
        self.traced.exp()
        self.traced = self.plain.trace()
        self.traced.exp()


def attributes(x: Plain) -> None:
    holder = Holder(x)
    holder.renewed_by_a_method()
    holder = Holder(x)
    holder.assigned()
    holder = Holder(x)
    holder.renewed_by_leaving()
    holder = Holder(x)
    holder.traced.exp()
    holder = Holder(x)
    holder.traced.exp()


def made_anew_at_each_reading(x: Plain) -> None:
    holder = Holder(x)
    holder.fresh.exp()
    holder.fresh.exp()
    holder[0].exp()
    holder[0].exp()


class Hidden:
    """What assigns to its attribute where no call is to be seen."""

    def __init__(self, x: Plain) -> None:
        self.plain = x
        self.traced = x.trace()

    def renew(self) -> int:
        self.traced = self.plain.trace()
        return 1

    def passes(self) -> Iterator[int]:
        for number in range(2):
            self.renew()
            yield number

    def summary(self, traced: Traced) -> dict[str, Traced]:
        return {"handle": traced.with_empty_tape()}

    @property
    def renewed(self) -> int:
        return self.renew()

    @override
    def __str__(self) -> str:
        return str(self.renew())

    def __add__(self, _: int) -> int:
        return self.renew()

    def __setitem__(self, _: int, __: int) -> None:
        self.renew()


def renewed_out_of_sight(x: Plain) -> None:
    hidden = Hidden(x)
    for _ in hidden.passes():
        hidden.traced.exp()
    print([hidden.traced.exp() for _ in hidden.passes()])
    passes = hidden.passes()
    next(passes)
    hidden.traced.exp()
    next(passes)
    hidden.traced.exp()
    print(hidden.renewed)
    hidden.traced.exp()
    print(hidden)
    hidden.traced.exp()
    print(hidden + 1)
    hidden.traced.exp()
    hidden[0] = 1
    hidden.traced.exp()
    print(sorted([2, 1], key=lambda _: hidden.renew()))
    hidden.traced.exp()
    setattr(hidden, "traced", x.trace())  # noqa: B010
    hidden.traced.exp()
    vars(hidden)["traced"] = x.trace()
    hidden.traced.exp()


def renewed_while_it_waits(x: Plain) -> None:
    hidden = Hidden(x)

    async def renew() -> None:
        hidden.renew()

    async def passes() -> AsyncIterator[int]:
        hidden.renew()
        yield 1

    async def use() -> None:
        task = asyncio.create_task(renew())
        hidden.traced.exp()
        await task
        hidden.traced.exp()
        async for _ in passes():
            hidden.traced.exp()

    def steps() -> Iterator[int]:
        hidden.renew()
        hidden.traced.exp()
        yield 1
        hidden.traced.exp()

    asyncio.run(use())
    for _ in steps():
        hidden.renew()


def renewed_under_another_name(x: Plain) -> None:
    holder = Holder(x)
    other = holder
    held = [holder]
    holder.traced.exp()
    other.traced = x.trace()
    holder.traced.exp()
    held[0].traced = x.trace()
    holder.traced.exp()
    items = [x.trace()]
    same = items
    items[0].exp()
    same[0] = x.trace()
    items[0].exp()
    items[-1] = x.trace()
    items[0].exp()


def items(x: Plain) -> None:
    pair = [x.trace(), x.trace()]
    pair[0].exp()
    pair[1].exp()
    pair[0] = x.trace()
    pair[0].sin()
    pair.reverse()
    pair[0] = x.trace()
    pair[0].exp()


def item_by_variable(x: Plain) -> None:
    pair = [x.trace(), x.trace()]
    for number in range(2):
        pair[number].exp()


def popped(x: Plain) -> None:
    stack = [x.trace(), x.trace()]
    stack[0].exp()
    stack.pop(0)
    stack[0].exp()


def reading_a_spent_tensor(x: Plain) -> None:
    traced = x.trace()
    loss = traced.square().sum()
    loss.backward()
    print(loss, loss.item(), float(loss), repr(loss), loss.shape, loss.id, loss.dtype)
    print(traced.numpy(), traced.ndim, traced.size, len(traced), f"{traced}", traced.owns_tape)


def borrowing(x: Plain) -> None:
    traced = x.trace()
    print(traced > x, traced.argmax(-1), traced.detach(), traced.tape_type)
    twin = traced.with_empty_tape()
    (traced.exp() * twin).sum().backward()


def plain_tensors_are_never_spent(x: Plain) -> None:
    x.exp()
    (x * x + x).sum()
    x.trace().exp()
    (x.trace() * x).sum().backward()
    _relu(x)
    _relu(x)


def a_second_handle_for_one_of_two(x: Plain) -> None:
    traced = x.trace()
    (traced.with_empty_tape() * traced).sum().backward()


def printed(x: Plain) -> None:
    traced = x.trace()
    _log(traced)
    _show("traced", traced)
    _size(traced)
    print(_same(traced) is traced)
    traced.exp()


def lent_to_functions_that_are_seen_to_only_read(x: Plain) -> None:
    traced = x.trace()
    (traced * _handle(traced).exp()).sum().backward()
    traced = x.trace()
    _checked(traced)
    Hidden(x).summary(traced)
    (traced - _centre(traced)).sum().backward()


def kept(x: Plain) -> None:
    traced = x.trace()
    history = [traced]
    history.append(traced)
    table = {"traced": traced}
    traced.exp()
    print(history, table)


def untyped(x: Any) -> None:
    x.exp()
    x.exp()


def gradients(x: Plain) -> None:
    grads: Gradients | None = None
    for _ in range(3):
        grads = x.trace(grads).square().sum().backward()


def renamed(x: Plain) -> None:
    traced = x.trace()
    other = traced
    traced = x.trace()
    other.exp()
    traced.exp()


def renamed_in_a_loop(x: Plain) -> None:
    last: Traced | None = None
    for _ in range(3):
        traced = x.trace()
        if last is not None:
            last.exp()
        last = traced


def swapped(x: Plain) -> None:
    first, second = x.trace(), x.trace()
    first.exp()
    first, second = second, first
    first.exp()


def kept_beside_a_second_handle(x: Plain) -> None:
    traced = x.trace()
    for _ in range(2):
        traced, twin = traced, traced.share()
        twin.exp()
    traced.exp()


def deleted(x: Plain) -> None:
    traced = x.trace()
    traced.exp()
    del traced
    traced = x.trace()
    traced.exp()


def lambdas(x: Plain) -> None:
    traced = x.trace()
    later: list[Callable[[], object]] = [lambda: traced.exp()]
    traced.sum()
    traced = x.trace()
    later[0]()
    each: list[Callable[[Traced], Traced]] = [lambda one: one.exp(), lambda one: one.sin()]
    each[0](x.trace())


def moved_before_and_assigned_after_a_lambda(x: Plain) -> None:
    traced = x.trace()
    traced.exp()
    later: list[Callable[[], object]] = [lambda: traced.exp()]
    traced = x.trace()
    later[0]()


def nonlocal_name(x: Plain) -> None:
    traced = x.trace()

    def renew() -> None:
        nonlocal traced
        traced = x.trace()

    traced.exp()
    renew()
    traced.exp()


def losses_and_layers(x: Plain) -> None:
    layer = nn.Linear(3, 3, rng=_rng())
    prediction = layer.forward(x.reshape((1, 3)).trace())
    loss = losses.mse(prediction, x.reshape((1, 3)))
    print(loss.item(), prediction.numpy())
    loss.backward(wrt=layer)


def returned_for_reading(x: Plain) -> None:
    loss, output = _loss_and_output(x)
    print(output.numpy())
    loss.backward()


def _rng() -> np.random.Generator:
    return np.random.default_rng(0)


def _loss_and_output(x: Plain) -> tuple[Scalar, Traced]:
    output = x.trace().square()
    return output.sum(), output


def _relu(x: Tensor[S, T]) -> Tensor[S, T]:
    return x.relu()


def _log(x: Tensor[S, T]) -> None:
    print(x.numpy().mean())


def _show(name: str, x: Tensor[S, OwnedTape]) -> None:
    print(name, x)


def _size(x: Tensor[tuple[B], T]) -> B:
    (size,) = x.shape
    return size


def _handle(x: Traced) -> Traced:
    print(f"a handle of {x}", x.shape)
    return x.with_empty_tape()


def _centre(x: Tensor[S, T]) -> Tensor[tuple[()], T]:
    assert x.size > 0, "nothing"
    return x.with_empty_tape().mean()


def _checked(x: Traced) -> Traced:
    if x.shape != (3,):
        raise ValueError(str(x.shape))
    return x


def _same(x: object) -> object:
    return x


# An alias that contains itself: what it may hold is not followed, or it would be for ever.
_Tree: TypeAlias = "int | list[_Tree] | tuple[_Tree, _Tree]"


def beside_a_recursive_alias(x: Plain) -> None:
    print(_first([1, (2, 3)], x.trace()))


# Not followed either, as a shape.
_Endless: TypeAlias = "tuple[_Endless, ...]"


def _endless(x: Tensor[_Endless]) -> None:
    print(x)


def beside_an_endless_shape(x: Plain) -> None:
    anything: Any = x
    _endless(anything)


def _first(tree: _Tree, x: Traced) -> _Tree:
    print(x)
    return tree
