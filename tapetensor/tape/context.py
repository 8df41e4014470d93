"""Contexts: scopes that tapes belong to, and that close their tapes when they are left."""

from __future__ import annotations

import inspect
import sys
import threading
from contextvars import ContextVar
from itertools import count
from types import FrameType, TracebackType
from typing import Any, Protocol, Self, final
from weakref import WeakSet, ref

from typing_extensions import override

from tapetensor.arrays.stand_ins import Level
from tapetensor.errors import TapeClosedError

_next_context_id = count(1).__next__


class _Bare(threading.local):
    """The contexts of a thread that were made and are not entered yet."""

    def __init__(self) -> None:
        self.contexts: WeakSet[GradientContext] = WeakSet()


class Closable(Protocol):
    """A tape, as far as a context needs to know one."""

    def close(self, reason: str) -> None:
        """Let go of everything, and refuse further use for `reason`."""


@final
class GradientContext:
    """A scope for tapes: leaving it closes the tapes that were made in it, and no others.

    A tape belongs to the context in which `trace` (or another method that gives a tensor a tape)
    made it. If tapes of two contexts meet in an op, the tape of the result belongs to both. The use
    of a closed tape raises `TapeClosedError`; values can still be read.

    Contexts nest. Each thread and each asyncio task has its own active context (by `contextvars`).
    A context that a generator enters is active while the generator runs, and not in its caller,
    unless the generator is a context manager made by ``contextlib``. Outside of all contexts
    context 0 is active. Every thread has one, which is never left. A context can be entered once.

    A context does nothing until it is entered: ``context = tt.GradientContext()`` alone does not
    make it active. `clear_tape` says so while such a context is alive, and the mypy plugin reports
    the line that makes it.

    Contexts may be left in any order: the innermost context that is still open is active. The
    record is freed with the tensors that hold it, with or without contexts. So contexts do not save
    memory. They make sure that no tape outlives its part of the program.

    >>> import tapetensor as tt
    >>> x = tt.ones((2,))
    >>> with tt.GradientContext():
    ...     loss = x.trace().square().sum()
    ...     grads = tt.compute_gradients(loss)
    ...     forgotten = x.trace().exp()
    >>> grads[x]
    Tensor([2., 2.], shape=(2,), dtype=float32, NoneTape)
    >>> forgotten.sum()  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    tapetensor.errors.TapeClosedError: sum: the tape was closed when context ... was left; ...
    """

    __slots__ = (
        "__weakref__",
        "_before",
        "_generator",
        "_id",
        "_is_open",
        "_outer",
        "_tapes",
        "level",
        "tape",
    )

    def __init__(self) -> None:
        self._id = _next_context_id()
        # The derivative of higher order that values traced in here belong to, None for none.
        self.level: Level | None = None
        # None until it is entered.
        self._is_open: bool | None = None
        _bare.contexts.add(self)
        self._tapes: set[ref[Closable]] = set()
        # That of all that is traced in here and carries no gradients; None until there is one.
        self.tape: Any = None
        # When this one was entered: the active context, the value of `_current`, and the generator.
        self._outer: GradientContext | None = None
        self._before: GradientContext | None = None
        self._generator: FrameType | None = None

    @classmethod
    def default(cls) -> GradientContext:
        """Return a context 0, which is open from the start; every thread needs one."""
        context = cls()
        context._id = 0
        _bare.contexts.discard(context)
        context._is_open = True
        return context

    @property
    def id(self) -> int:
        """The number of the context: 0 for the default one, never used again for the others."""
        return self._id

    @property
    def is_open(self) -> bool:
        """Whether the context has been entered and not been left."""
        return self._is_open is True

    def __enter__(self) -> Self:
        """Make this the active context.

        Raises:
            TapeClosedError: if it has been entered before.
        """
        if self._is_open is not None:
            raise TapeClosedError(
                f"GradientContext: context {self._id} has been entered before, and "
                f"{'is active' if self._is_open else 'was left'}; write `with GradientContext():` "
                "for a new one"
            )
        _bare.contexts.discard(self)
        self._outer = active_context()
        self.level = self._outer.level
        self._generator = _generator_of(sys._getframe(1))
        self._is_open = True
        if self._generator is None:
            self._before = _nearest_open_of_the_task()
            _current.set(self)
        else:
            _of_generators.setdefault(self._generator, []).append(self)
        return self

    def __exit__(
        self,
        error_type: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Close the tapes of this context, and no others.

        Raises:
            TapeClosedError: if it was never entered, as context 0 is not.
        """
        if self._is_open is None or self._id == 0:
            raise TapeClosedError(
                f"GradientContext: context {self._id} was never entered; write "
                "`with GradientContext():`, which enters it and leaves it"
            )
        self._is_open = False
        if self._generator is None:
            _current.set(_nearest_open_of_the_task())
        else:
            _of_generators[self._generator].remove(self)
            if not _of_generators[self._generator]:
                del _of_generators[self._generator]
            self._generator = None
        self.close_tapes(f"context {self._id} was left")

    def nearest_open(self) -> GradientContext | None:
        """Return this context if it is open, else the nearest open one that it was entered in."""
        if self._is_open:
            return self
        return None if self._before is None else self._before.nearest_open()

    def is_inside(self, other: GradientContext) -> bool:
        """Tell whether this context is `other`, or was entered in it."""
        return self is other or (self._outer is not None and self._outer.is_inside(other))

    def add(self, tape: Closable) -> None:
        """Note that `tape` belongs to this context, which does not keep it alive."""
        tapes = self._tapes
        # The set itself drops a reference that has died: no Python code runs for it.
        tapes.add(ref(tape, tapes.discard))

    def close_tapes(self, reason: str) -> None:
        """Close all tapes that belong to this context; it stays as it is otherwise."""
        tapes, self._tapes = self._tapes, set()
        self.tape = None
        # Not a loop over the set, from which a tape that dies in the meantime drops out.
        while tapes:
            tape = tapes.pop()()
            if tape is not None:
                tape.close(reason)

    @override
    def __repr__(self) -> str:
        """Show number, state and how many tapes belong to it."""
        state = "not entered" if self._is_open is None else "open" if self._is_open else "left"
        return f"GradientContext({self._id}, {state}, {len(self._tapes)} tapes)"


class _OfThread(threading.local):
    """Context 0, of which every thread has its own."""

    def __init__(self) -> None:
        self.context = GradientContext.default()


_bare = _Bare()
_default = _OfThread()
_current: ContextVar[GradientContext | None] = ContextVar("tapetensor context", default=None)
_COROUTINE = inspect.CO_COROUTINE | inspect.CO_ITERABLE_COROUTINE
_GENERATOR = inspect.CO_GENERATOR | inspect.CO_ASYNC_GENERATOR
_AWAITING = _COROUTINE | inspect.CO_ASYNC_GENERATOR
# A generator shares its caller's context variables, so what it enters must be told apart by frame.
_of_generators: dict[FrameType, list[GradientContext]] = {}


def active_context() -> GradientContext:
    """Return the innermost context that is open here; context 0 if there is none."""
    context = _nearest_open_of_the_task()
    if _of_generators:
        context = _with_generators(context)
    return _default.context if context is None else context


def clear_tape() -> None:
    """Close all tapes of the active context; their later use raises `TapeClosedError`.

    Nothing needs it: a tape is freed with its tensors. It makes sure that no tape of an earlier
    step is used in a later one.

    Raises:
        TapeClosedError: if a context of this thread was made and never entered: its tapes may be
            meant, and it has none. Nothing is closed then.

    >>> import tapetensor as tt
    >>> with tt.GradientContext():
    ...     stale = tt.ones((2,)).trace()
    ...     tt.clear_tape()
    ...     stale.exp()  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    tapetensor.errors.TapeClosedError: exp: the tape was closed when clear_tape() was called; ...
    """
    for context in _bare.contexts:
        raise TapeClosedError(
            f"clear_tape: context {context.id} was made and never entered, so it is not active and "
            "has no tapes; write `with tt.GradientContext():` around what it is for"
        )
    active_context().close_tapes("clear_tape() was called")


def clear_default_context_tape() -> None:
    """Close all tapes of context 0 of this thread, whichever context is active."""
    _default.context.close_tapes("clear_default_context_tape() was called")


def _nearest_open_of_the_task() -> GradientContext | None:
    context = _current.get()
    return None if context is None else context.nearest_open()


def _with_generators(context: GradientContext | None) -> GradientContext | None:
    """Return the innermost of `context` and those entered by the generators that are running."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame not in _of_generators:
        frame = frame.f_back
    if frame is None:
        return context
    innermost = _of_generators[frame][-1]
    # `context` may have been entered by what the generator called.
    return context if context is not None and context.is_inside(innermost) else innermost


def _generator_of(frame: FrameType | None) -> FrameType | None:
    """Return the frame of the generator that `frame` runs for, if there is one.

    Between the two there may be what enters contexts for others: ``contextlib``, context managers
    made of generators by it, functions. But a task has variables of its own, whoever runs its loop.
    """
    while frame is not None:
        caller = frame.f_back
        kind = frame.f_code.co_flags
        if kind & _COROUTINE:
            if caller is None or not caller.f_code.co_flags & _AWAITING:
                return None
        elif kind & _GENERATOR and not (
            caller is not None and caller.f_globals.get("__name__") == "contextlib"
        ):
            return frame
        frame = caller
    return None
