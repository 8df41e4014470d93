"""What code names is read from its instructions."""

from __future__ import annotations

import argparse
import dis
import inspect
import logging
import types
from collections.abc import Iterator

from tapetensor.compiler.trace.codes import instructions_of, names_in


def _codes(module: types.ModuleType) -> Iterator[types.CodeType]:
    waiting = [compile(inspect.getsource(module), module.__name__, "exec")]
    while waiting:
        code = waiting.pop()
        waiting += [one for one in code.co_consts if isinstance(one, types.CodeType)]
        yield code


def test_instructions_and_their_names_are_those_that_the_module_of_python_tells() -> None:
    for code in (one for module in (argparse, inspect, logging) for one in _codes(module)):
        found = list(instructions_of(code))
        told = [one for one in dis.get_instructions(code) if one.opname != "EXTENDED_ARG"]
        assert [one[:2] for one in found] == [(one.offset, one.opname) for one in told]
        for (_, _, argument, value), one in zip(found, told, strict=True):
            assert argument == (one.arg or 0) or one.arg is None
            if one.opcode in dis.hasname or one.opname == "LOAD_CONST":
                assert value == one.argval


def test_what_is_called_is_told_from_what_is_handed_on() -> None:
    names = names_in(compile("numpy.random.seed; numpy.sum(x)", "<code>", "exec"))
    assert names.reads == ("numpy", "x")
    assert names.attributes == {"random", "seed", "sum"}
    assert names.handed >= {"x"}
    assert "numpy" not in names.handed
    assert ("numpy", "random", "seed") in [path for path, _ in names.paths]


def test_attributes_of_modules_are_followed_in_code_with_many_names() -> None:
    many = "; ".join(f"name{number}" for number in range(600))
    names = names_in(compile(f"{many}; time.sub.monotonic", "<code>", "exec"))
    assert names.paths[-1][0] == ("time", "sub", "monotonic")
    assert "time" not in names.handed
