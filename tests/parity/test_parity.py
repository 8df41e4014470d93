"""Every row names what exists and a test that exists; the page shows the rows."""

from __future__ import annotations

import ast
import importlib
from functools import cache
from pathlib import Path

import tapetensor
from tests.ops.samples import CASES
from tests.parity.page import PAGE, TESTS, Row, page, sections

_ROWS = [row for rows in sections().values() for row in rows]
_OPS = {one.name: one.op for one in CASES}
_COMMAND = "run `python -m tests.parity`"


@cache
def _tests_in(path: Path) -> frozenset[str]:
    return frozenset(
        node.name
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
    )


def _exists(name: str) -> bool:
    """Tell whether a dotted name can be imported from the package."""
    found: object = tapetensor
    for position, part in enumerate(parts := name.split(".")):
        if not hasattr(found, part):
            try:
                importlib.import_module(".".join(["tapetensor", *parts[: position + 1]]))
            except ImportError:
                return False
        found = getattr(found, part)
    return True


def _complaint(row: Row) -> str:
    """Return what is wrong with a row; nothing with most."""
    if missing := [name for name in row.ours if not _exists(name)]:
        return f"no such names in tapetensor: {missing}"
    if not row.ours and not row.why:
        return "nothing is named, and no reason is given"
    path, _, test = row.proof.partition("::")
    name, _, case = test.partition("[")
    if not (TESTS / path).is_file():
        return f"no such file: tests/{path}"
    if name not in _tests_in(TESTS / path):
        return f"no such test in tests/{path}: {name}"
    if case and case.rstrip("]") not in _OPS:
        return "no such row in the table of ops"
    # The others are no cases of the test of gradients.
    if case and "gradients" in path and not _OPS[case.rstrip("]")].is_differentiable:
        return "an op without gradients is proved by its value: mask[...]"
    return ""


def test_what_a_row_names_is_there_and_is_tested() -> None:
    assert {row.upstream: found for row in _ROWS if (found := _complaint(row))} == {}


def test_no_cell_is_empty_and_no_row_is_there_twice() -> None:
    assert [row for row in _ROWS if not (row.upstream and row.proof)] == []
    for title, rows in sections().items():
        names = [row.upstream for row in rows]
        assert len(names) == len(set(names)) > 10, title


def test_all_systems_are_there() -> None:
    titles = {title.partition(":")[0] for title in sections()}

    assert titles == {"dfdx", "hodu", "kizzasi", "etensor", "what users of dfdx asked for"}


def test_the_page_shows_the_rows() -> None:
    assert PAGE.read_text() == page(), _COMMAND


def test_a_name_that_is_nowhere_is_noticed() -> None:
    assert _exists("nn.Linear")
    assert _exists("mypy_plugin")
    assert not _exists("nn.Linea")
    assert not _exists("Tensor.expp")
