"""What the types promise: mypy and pyright agree with every line, and what should run runs."""

from __future__ import annotations

import ast
import re
import runpy
from pathlib import Path
from typing import Any
from typing import Literal as L

import numpy as np
import pytest

from tapetensor import NoneTape, OwnedTape, Tensor2D
from tests.typing import check as check_module
from tests.typing.checkers import CASES, FAIL, PASS, REVEAL, mypy_report, pyright_report
from tests.typing.operands import m

# The one file of claims that pyright must not agree with; it says why.
ONLY_MYPY = "only_mypy"

_IGNORED = re.compile(r"  # type: ignore\[[a-z, -]+\]  # .+")
_DECLARES = (ast.AnnAssign, ast.ClassDef, ast.FunctionDef, ast.Import, ast.ImportFrom)


def _name(path: Path) -> str:
    return f"{path.parent.name}/{path.name}"


def _marked(path: Path) -> set[int]:
    """Return the lines that a checker must reject."""
    lines = path.read_text().splitlines()
    return {number for number, line in enumerate(lines, 1) if "# type: ignore" in line}


def _checks(path: Path) -> set[int]:
    """Return the line of the expression of every claim."""
    calls = [one for one in ast.walk(ast.parse(path.read_text())) if isinstance(one, ast.Call)]
    return {one.args[0].lineno for one in calls if ast.unparse(one.func) == "assert_type"}


def _declares(statement: ast.stmt) -> bool:
    # A named dim is declared by assigning to a name; a bad assignment is one to an element.
    names_dim = isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name)
    return names_dim or isinstance(statement, _DECLARES)


@pytest.mark.parametrize("path", CASES, ids=_name)
def test_mypy_agrees_with_every_line(path: Path) -> None:
    # An accepted bad line is an error too: its `type: ignore` is unused.
    assert mypy_report()[path] == {}


@pytest.mark.parametrize("path", CASES, ids=_name)
def test_pyright_rejects_the_bad_lines_and_no_other(path: Path) -> None:
    errors = pyright_report()[path]

    expected = _checks(path) if path.stem == ONLY_MYPY else _marked(path)

    assert {line: errors.get(line) for line in expected ^ set(errors)} == {}


@pytest.mark.parametrize("path", [*REVEAL, *PASS], ids=_name)
def test_the_code_runs(path: Path) -> None:
    runpy.run_path(str(path), run_name="__main__")


@pytest.mark.parametrize("path", FAIL, ids=_name)
def test_every_bad_line_says_what_is_wrong_with_it(path: Path) -> None:
    lines = path.read_text().splitlines()
    cases = [one for one in ast.parse(path.read_text()).body if not _declares(one)]

    assert all(one.lineno == one.end_lineno for one in cases), "a bad line is one line"
    assert [line for one in cases if not _IGNORED.search(line := lines[one.lineno - 1])] == []


@pytest.mark.parametrize(
    ("claim", "complaint"),
    [
        (Tensor2D[L[2], L[4]], "is not 3"),
        (Tensor2D[L[2], L[3], OwnedTape], "is not the tape"),
        (Tensor2D[L[2], L[3], NoneTape, np.float64], "is not float32"),
    ],
)
def test_a_claim_that_does_not_hold_at_run_time_is_caught(claim: Any, complaint: str) -> None:
    compare: Any = check_module.assert_type

    assert compare(m, Tensor2D[L[2], L[3]]) is m
    with pytest.raises(AssertionError, match=complaint):
        compare(m, claim)
