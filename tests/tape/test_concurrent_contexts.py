"""Contexts under threads, asyncio tasks and generators: only the right tapes close."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest

import tapetensor as tt
from tests.tape.scopes import alone, is_open, traced


@alone
def test_threads_have_contexts_of_their_own() -> None:
    inside, leave = threading.Event(), threading.Event()
    found: dict[str, Any] = {}

    def run() -> None:
        found["default"] = traced()
        with tt.GradientContext():
            found["inner"] = traced()
            inside.set()
            assert leave.wait(10)
        found["again"] = traced()

    with tt.GradientContext():
        thread = threading.Thread(target=run)
        thread.start()
        assert inside.wait(10)
        mine = traced()
        tt.clear_default_context_tape()
        leave.set()
        thread.join()

        assert is_open(mine)
        assert not is_open(found["inner"])
        assert is_open(found["default"])
        other = traced()
    assert not is_open(other)
    assert is_open(found["again"])


def test_tasks_have_contexts_of_their_own() -> None:
    async def run(name: str, found: dict[str, list[bool]]) -> None:
        outer = traced()
        with tt.GradientContext():
            inner = traced()
            await asyncio.sleep(0)
            states = [is_open(traced())]
            await asyncio.sleep(0)
        found[name] = [*states, is_open(outer), is_open(inner)]

    async def main() -> dict[str, list[bool]]:
        found: dict[str, list[bool]] = {}
        await asyncio.gather(*[run(name, found) for name in "abc"])
        return found

    assert asyncio.run(main()) == {name: [True, True, False] for name in "abc"}


def test_a_task_that_outlives_the_context_it_was_started_in_goes_on_outside_of_it() -> None:
    async def run(left: asyncio.Event) -> tuple[Any, Any]:
        early = traced()
        await left.wait()
        return early, traced()

    async def main() -> tuple[Any, Any]:
        left = asyncio.Event()
        with tt.GradientContext():
            task = asyncio.create_task(run(left))
            await asyncio.sleep(0)
        left.set()
        return await task

    early, late = asyncio.run(main())

    assert not is_open(early)
    assert is_open(late)


def steps() -> Iterator[Any]:
    """Yield a traced value of a context that is open while the generator is suspended."""
    with tt.GradientContext():
        while True:
            yield traced()


@contextlib.contextmanager
def scope() -> Iterator[None]:
    with tt.GradientContext():
        yield


@contextlib.asynccontextmanager
async def asynchronous_scope() -> AsyncIterator[None]:
    with tt.GradientContext():
        yield


class Scope:
    """A context manager that holds a context."""

    def __enter__(self) -> None:
        self.context = tt.GradientContext().__enter__()

    def __exit__(self, *error: object) -> None:
        self.context.__exit__(None, None, None)


def test_a_generator_that_is_suspended_in_a_context_does_not_make_it_that_of_its_caller() -> None:
    generator = steps()
    theirs = next(generator)
    mine = traced()
    assert is_open(next(generator))
    generator.close()  # type: ignore[attr-defined]  # it is a generator

    assert is_open(mine)
    assert not is_open(theirs)


def test_a_generator_resumed_within_another_context_goes_on_in_its_own() -> None:
    generator = steps()
    next(generator)
    with tt.GradientContext():
        mine = traced()
        theirs = next(generator)

    assert not is_open(mine)
    assert is_open(theirs)


@pytest.mark.parametrize("way", [contextlib.ExitStack, scope, Scope])
def test_a_generator_keeps_to_itself_what_is_entered_for_it(way: Callable[[], Any]) -> None:
    def run() -> Iterator[Any]:
        with way() as entered:
            if isinstance(entered, contextlib.ExitStack):
                entered.enter_context(tt.GradientContext())
            yield traced()

    generator = run()
    theirs = next(generator)
    mine = traced()

    assert next(generator, None) is None
    assert not is_open(theirs)
    assert is_open(mine)


def test_an_asynchronous_generator_keeps_to_itself_what_is_entered_for_it() -> None:
    async def entered(stack: contextlib.AsyncExitStack) -> None:
        stack.enter_context(tt.GradientContext())

    async def run() -> AsyncIterator[Any]:
        async with asynchronous_scope(), contextlib.AsyncExitStack() as stack:
            await entered(stack)
            yield traced()

    async def main() -> tuple[Any, Any]:
        async with contextlib.aclosing(run()) as generator:  # type: ignore[type-var]  # it is one
            return await anext(generator), traced()

    theirs, mine = asyncio.run(main())

    assert not is_open(theirs)
    assert is_open(mine)
