"""Runs a scenario eagerly and compiled, on copies of one setup, and says how the two compare.

A scenario is the text of a module with a function ``f``. A line ``---`` ends the module; every
line after it is what the caller does before one more call. Each call gets fresh ``x`` and ``y``.
"""

from __future__ import annotations

import contextlib
import io
import itertools
import linecache
import re
import sqlite3
import sys
import types
import warnings
from typing import Any

import numpy as np
from typing_extensions import override

import tapetensor as tt
from tapetensor.errors import TraceError

HEADER = "import numpy as np, tapetensor as tt\nfrom tapetensor import nn, optim, losses\n"
_NUMBERS = itertools.count()
# What imports leave in a module is nobody's state.
_NO_STATE = (types.ModuleType, types.FunctionType, types.BuiltinFunctionType, type)


def parsed(text: str) -> tuple[str, list[str]]:
    """Return the module of a scenario, and what its caller does before each call."""
    module, _, between = text.partition("\n---\n")
    if "def f(" not in module:
        # A bare expression, or a body that returns something.
        body = module if re.search("return|raise", module) else f"return {module}"
        module = "def f(x, y):\n" + "\n".join(f"    {line}" for line in body.splitlines())
    return HEADER + module, ["", *(between.splitlines() or ["", ""])]


class World:
    """One independent copy of a scenario's setup."""

    def __init__(self, source: str, *, compiled: bool) -> None:
        self.name = f"law_scenario_{next(_NUMBERS)}"
        self.file = f"/users/{self.name}.py"
        self.module = types.ModuleType(self.name)
        linecache.cache[self.file] = (len(source), None, source.splitlines(True), self.file)
        sys.modules[self.name] = self.module
        exec(compile(source, self.file, "exec"), self.module.__dict__)
        self.function = self.module.__dict__["f"]
        if compiled:
            self.function = tt.compile(self.function)
        self.results: list[Any] = []

    def close(self) -> None:
        for one in vars(self.module).values():
            if isinstance(one, (sqlite3.Connection, io.IOBase)):
                one.close()
        del sys.modules[self.name], linecache.cache[self.file]

    def between(self, line: str) -> None:
        exec(line, self.module.__dict__)

    def call(self, seed: int) -> tuple[list[Any], Any]:
        """Return the arguments, and the result or the exception."""
        rng = np.random.default_rng(seed)
        arguments = [rng.standard_normal((3, 4)).astype(np.float32) for _ in range(2)]
        try:
            with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
                warnings.simplefilter("ignore")
                # What is not planned for an error of the compiler's own is no answer here.
                warnings.filterwarnings("error", message="compile: a .* was raised while")
                return arguments, self.function(*arguments)
        except Exception as error:
            return arguments, error

    def state(self) -> Any:
        return described(
            {
                name: value
                for name, value in self.module.__dict__.items()
                if not name.startswith("__") and (not isinstance(value, _NO_STATE) or _own(value))
            },
            self.name,
        )


def _own(value: Any) -> bool:
    return isinstance(value, type) and value.__module__.startswith("law_scenario")


class Elements:
    """The elements of an array, which are equal to others that differ by how they are rounded."""

    def __init__(self, value: Any) -> None:
        self.array = np.array(value)

    @override
    def __eq__(self, other: object) -> bool:
        assert isinstance(other, Elements)
        if self.array.dtype.kind not in "fc":
            return np.array_equal(self.array, other.array)
        near = 1e-5 if np.finfo(self.array.dtype).bits < 64 else 1e-12
        return np.allclose(self.array, other.array, rtol=near, atol=near, equal_nan=True)

    __hash__ = None  # type: ignore[assignment]  # nothing equal to rounding has one

    @override
    def __repr__(self) -> str:
        return repr(self.array.tolist())


def described(value: Any, name: str = "", depth: int = 0) -> Any:
    """Return what a caller can see of a value, as something that compares."""
    kind = type(value).__name__
    if depth > 8:
        return kind
    if isinstance(value, np.ndarray) and value.dtype.hasobject:
        return kind, value.shape, described(value.ravel().tolist(), name, depth + 1)
    if isinstance(value, (np.ndarray, np.generic)):
        return kind, str(value.dtype), value.shape, Elements(value)
    if isinstance(value, float):
        return kind, Elements(np.float64(value))
    if isinstance(value, (bool, int, str, bytes, type(None))):
        return kind, repr(value)
    if isinstance(value, tt.Tensor):
        return kind, described(value.detach().numpy())
    if isinstance(value, BaseException):
        return kind
    if isinstance(value, np.random.Generator):
        return kind, repr(value.bit_generator.state)
    if isinstance(value, dict):
        return kind, [(repr(k), described(v, name, depth + 1)) for k, v in value.items()]
    if isinstance(value, (list, tuple, set)):
        return kind, [described(v, name, depth + 1) for v in value]
    own = {k: v for k, v in getattr(value, "__dict__", {}).items() if not k.startswith("__")}
    return kind, described(dict(own), name, depth + 1) if own else None


def verdict(text: str) -> tuple[str, str]:
    """Return how the compiled function of a scenario compares with its own, and why."""
    source, between = parsed(text)
    eager, compiled = World(source, compiled=False), World(source, compiled=True)
    try:
        return _verdict(eager, compiled, between)
    finally:
        eager.close()
        compiled.close()


def _verdict(eager: World, compiled: World, between: list[str]) -> tuple[str, str]:
    for number, line in enumerate(between):
        eager.between(line)
        compiled.between(line)
        before = compiled.state()
        expected_arguments, expected = eager.call(number)
        arguments, result = compiled.call(number)
        if isinstance(result, TraceError):
            message = str(result)
            if compiled.state() != before:
                return "DAMAGE", f"refused, but changed the caller's objects: {message}"
            named = re.search(re.escape(compiled.file) + r":\d+", message) and "; " in message
            return ("refused" if named else "NO CURE"), message
        if isinstance(result, Exception) and not isinstance(expected, Exception):
            return "CRASH", f"call {number}: {type(result).__name__}: {result}"
        if described(result) != described(expected):
            got, right = str(described(result))[:90], str(described(expected))[:90]
            return ("STALE" if number else "WRONG"), f"call {number}: {got} for {right}"
        if described(arguments) != described(expected_arguments):
            return "DAMAGE", f"call {number}: the arguments differ"
        if compiled.state() != eager.state():
            return "DAMAGE", f"call {number}: what the module holds differs"
        eager.results.append(expected)
        compiled.results.append(result)
        if described(compiled.results) != described(eager.results):
            return "WRONG", f"call {number}: earlier results were written over"
    return "same", ""
