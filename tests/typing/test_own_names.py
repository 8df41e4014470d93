"""Ops that share a set of overloads keep their own names and docstrings, in messages and out.

What editors show of them is asked in test_hover.py.
"""

from __future__ import annotations

import inspect
import pickle
import re
from typing import Any

from tapetensor import Tensor
from tests.plugin.checked import plugin_report
from tests.typing.checkers import FAIL, mypy_report, pyright_report
from tests.typing.own_names import METHODS, OPERATORS, own_names_file
from tests.typing.runs import Report

SHARING = [*METHODS, *(f"__{op}__" for op in ("add", "sub", "mul", "truediv"))]
SHARING += [f"__{op}__" for op in ("radd", "rsub", "rmul", "rtruediv")]


def _messages(report: Report) -> list[str]:
    """Return what mypy says of a bad axis of each method, a bad kind, and bad operands."""
    found = report[own_names_file()]
    return [found[number][0] for number in sorted(found)]


def test_mypy_reports_an_op_under_its_own_name() -> None:
    messages = _messages(mypy_report())

    names = [f'overload variant of "{op}"' for op in METHODS]
    names = [*names, *names, *(f"operand types for {op} " for op in OPERATORS)]
    assert [
        name for name, message in zip(names, messages, strict=True) if name not in message
    ] == []


def test_the_plugin_reports_an_op_under_its_own_name() -> None:
    messages = _messages(plugin_report())

    starts = [f"{op}: axis 7 is outside the shape (2, 3)" for op in METHODS]
    starts += [f"{op}: keepdims must be a bool" for op in METHODS]
    starts += [f"{op}: shapes (2, 3) and (7,) do not broadcast" for op in OPERATORS.values()]
    assert [
        one for one, said in zip(starts, messages, strict=True) if not said.startswith(one)
    ] == []


def test_pyright_reports_an_op_under_the_name_of_its_set() -> None:
    # It has no other name for overloads than that of the function that they were written for.
    (file,) = [path for path in FAIL if path.stem == "reduction_axes"]
    cases = [
        (number, METHODS[found[1]])
        for number, line in enumerate(file.read_text().splitlines(), 1)
        if "[call-overload]" in line and (found := re.search(r"\.(\w+)\(axis=", line))
        if found[1] in METHODS
    ]

    assert len(cases) >= 5
    for number, overloads in cases:
        assert f'"{overloads}"' in pyright_report()[file][number][0]


def test_an_op_is_itself_at_run_time() -> None:
    for op in SHARING:
        method: Any = getattr(Tensor, op)

        assert method.__name__ == op
        assert method.__qualname__.endswith(f".{op}")
        assert method.__module__ != "tapetensor.tensor.signatures"
        assert pickle.loads(pickle.dumps(method)) is method


def test_no_two_ops_have_one_docstring() -> None:
    docstrings = {inspect.getdoc(getattr(Tensor, op)) for op in SHARING}

    assert None not in docstrings
    assert len(docstrings) == len(SHARING)


def test_an_op_says_what_its_self_is() -> None:
    # mypy forgets the overloads of a decorated method that does not, once it is in its cache.
    assert [op for op in SHARING if "self" not in getattr(Tensor, op).__annotations__] == []
