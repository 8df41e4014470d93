"""What objects of C hold: the state of some, and what only the garbage collector sees."""

from __future__ import annotations

import functools
import gc
import io
import queue
import sys
import types
from collections.abc import Callable
from typing import Any

from tapetensor.compiler.trace.number import NumberTracer
from tapetensor.compiler.trace.structure import is_buffer
from tapetensor.compiler.trace.tracer import ArrayTracer
from tapetensor.tensor.base import TensorBase

_CACHE = type(functools.lru_cache(len))
_SHARED = (type, types.ModuleType, types.FunctionType, types.CodeType)


def is_cache(value: Any) -> bool:
    """Tell whether a value is a function whose results are kept."""
    return isinstance(value, _CACHE)


def is_queue(value: Any) -> bool:
    """Tell whether a value is a queue that is written in C."""
    return isinstance(value, queue.SimpleQueue)


def queued(value: Any) -> list[Any]:
    """Return what waits in a queue."""
    found = [one for one in gc.get_referents(value) if one is not type(value)]
    if sys.version_info >= (3, 13):
        return found
    # Before, they were in a list, with those before them that were taken out.
    return [
        item for one in found if isinstance(one, list) for item in one[len(one) - value.qsize() :]
    ]


def put_back(value: Any, items: list[Any]) -> None:
    """Put back what waited in a queue."""
    if [*map(id, queued(value))] != [*map(id, items)]:
        while value.qsize():
            value.get_nowait()
        for item in items:
            value.put(item)


def clear_of_tracers(cache: Any) -> bool:
    """Empty a cache if it holds tracers; tell whether it did."""
    waiting, seen = [cache], {id(cache)}
    while waiting:
        one = waiting.pop()
        array = one.array if isinstance(one, TensorBase) else one
        if isinstance(array, ArrayTracer | NumberTracer):
            cache.cache_clear()
            return True
        for inner in gc.get_referents(one):
            if id(inner) not in seen and not isinstance(inner, _SHARED):
                seen.add(id(inner))
                waiting.append(inner)
    return False


def _bytes(value: Any) -> bytes:
    return bytes(memoryview(value))


def _set_bytes(value: Any, state: bytes) -> None:
    if _bytes(value) != state:
        into = value if isinstance(value, bytearray) else memoryview(value).cast("B")
        into[:] = state


def _text(value: Any) -> tuple[Any, int]:
    return value.getvalue(), value.tell()


def _set_text(value: Any, state: tuple[Any, int]) -> None:
    if _text(value) != state:
        value.seek(0)
        value.truncate()
        value.write(state[0])
        value.seek(state[1])


# How what is no more than its state is recognized, read and put back: memory, and files in it.
STATES: tuple[tuple[Callable[[Any], bool], Callable[[Any], Any], Callable[[Any, Any], None]], ...]
STATES = (
    (is_buffer, _bytes, _set_bytes),
    (lambda value: isinstance(value, io.StringIO | io.BytesIO), _text, _set_text),
)
