"""What users call of the compiler: `compile`, and the plans of what it returned.

What captures and plans is imported at the first call. So a type checker, which reads what is
imported at the top, does not read all of the compiler for every program that imports the library.
"""

from __future__ import annotations

import inspect
import types
from collections.abc import Callable, Sequence
from typing import Any

from typing_extensions import TypeVar

from tapetensor.arguments import check_function
from tapetensor.compiler.emit.plan import Plan
from tapetensor.compiler.trace.node import Backend
from tapetensor.errors import ArgumentTypeError, ArgumentValueError

F_ = TypeVar("F_", bound=Callable[..., Any])


def compile(function: F_, *, backend: Backend | None = None, trusts: Sequence[str] = ()) -> F_:
    """Return `function` planned: captured at the first call, replayed without Python afterwards.

    Args:
        function: what to compile.
        backend: what runs groups of steps. "numpy" needs nothing else. "numba" makes machine code
            of them, which takes seconds at the first call ever and less from the cache on disk
            after it; it is in ``pip install 'tapetensor[numba]'``. None means what the environment
            variable ``TAPETENSOR_BACKEND`` says, and "numpy" without it.
        trusts: the names of modules of yours, or of installed packages, whose functions compute of
            what they are given and do nothing else. They run unwatched, and so do those below them.

    Raises:
        ArgumentTypeError: if there is nothing to compile, or it is no plain function.
        ArgumentValueError: if there is no such backend, or it is compiled already with another.
        MissingDependencyError: if the backend is not installed.
    """
    from tapetensor.compiler.compiled import Compiled
    from tapetensor.compiler.emit.steps import chosen_backend

    known: Any = getattr(function, "__func__", function)
    if isinstance(known, Compiled):
        known_backend = vars(known)["_backend"]
        if backend in (None, known_backend):
            return function
        raise ArgumentValueError(
            f"compile: the function is compiled already, with backend={known_backend!r}; "
            "compile the plain one"
        )
    if isinstance(function, staticmethod | classmethod):
        # These are no functions, but make one where they are looked up.
        descriptor: Any = type(function)(compile(function.__func__, backend=backend, trusts=trusts))
        return descriptor  # type: ignore[no-any-return]
    check_function("compile", "the argument", function)
    plain = inspect.unwrap(function)
    if inspect.iscoroutinefunction(plain) or inspect.isasyncgenfunction(plain):
        raise ArgumentTypeError(
            f"compile: {plain.__name__} is async, and a plan does not wait; "
            "compile the function that computes, and call it from there"
        )
    if inspect.isgeneratorfunction(plain):
        raise ArgumentTypeError(
            f"compile: {plain.__name__} yields, and a plan runs as a whole; "
            "compile the function that makes one of the values"
        )
    compiled: Any = Compiled(function, chosen_backend(backend), tuple(trusts))
    result: F_ = compiled
    return result


def plans(function: Callable[..., Any]) -> tuple[Plan, ...]:
    """Return the plans that a compiled function holds, the last used one first.

    Raises:
        ArgumentTypeError: if the function is not compiled.
    """
    from tapetensor.compiler.compiled import Compiled

    if isinstance(function, types.MethodType):
        function = function.__func__
    if not isinstance(function, Compiled):
        raise ArgumentTypeError("plans: expected a function that tt.compile returned")
    return tuple(vars(function)["_cache"].plans)
