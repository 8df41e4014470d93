"""docs/ten_mistakes.md: mypy says of each function what the table says, before it runs or not."""

from __future__ import annotations

import ast
import re

from tests.plugin.checked import plugin_report
from tests.typing.checkers import mypy_report, ten_mistakes_file
from tests.typing.pages import DOCS
from tests.typing.runs import Report

PAGE = (DOCS / "ten_mistakes.md").read_text()


def _found_before(report: Report) -> list[bool]:
    """Tell of each function whether there is an error in it."""
    lines = report[ten_mistakes_file()]
    functions = ast.parse(ten_mistakes_file().read_text()).body
    return [
        any(one.lineno <= line <= (one.end_lineno or 0) for line in lines)
        for one in functions
        if isinstance(one, ast.FunctionDef)
    ]


def test_both_columns_of_mypy_are_what_it_says() -> None:
    (table,) = re.findall(r"^\| Mistake \|.*?(?=\n\n)", PAGE, re.MULTILINE | re.DOTALL)
    cells = [re.split(r" *\| *", line.strip("| ")) for line in table.splitlines()[2:]]

    assert len(cells) == 10
    assert _found_before(mypy_report()) == [row[1] == "before" for row in cells]
    assert _found_before(plugin_report()) == [row[2] == "before" for row in cells]
