"""The twenty error classes of docs/errors.md: every snippet, every message, every count."""

from __future__ import annotations

import re

import pytest

from tapetensor import TapeTensorError
from tests.typing.checkers import HERE, mypy_report, normalized, snippet_files
from tests.typing.error_page import PAGE, ROWS, SECTIONS, Section

STATIC = [section for section in SECTIONS if section.found == "static"]
RUN_TIME = [section for section in SECTIONS if section.found == "run time"]


def _title(section: Section) -> str:
    return section.title


def test_the_table_lists_the_sections() -> None:
    listed = [(int(number), title, found) for number, title, found, _ in ROWS]

    assert listed == [(one.number, one.title, one.found) for one in SECTIONS]
    assert [one.number for one in SECTIONS] == list(range(1, 21))


def test_at_least_fifteen_classes_are_static() -> None:
    assert len(STATIC) >= 15
    assert f"{len(STATIC)} of the 20 are static" in PAGE


@pytest.mark.parametrize("section", STATIC, ids=_title)
def test_mypy_says_what_the_page_says(section: Section) -> None:
    report = mypy_report()[snippet_files()[section.number]]
    before_snippet = len(section.program) - len(section.program.split("rng=rng))\n", 1)[1])
    preamble_lines = section.program[:before_snippet].count("\n")
    said = [f"error: {message}" for line in sorted(report) for message in sorted(report[line])]

    assert [normalized(one) for one in said] == [normalized(one) for one in section.messages]
    assert min(report) > preamble_lines


@pytest.mark.parametrize("section", RUN_TIME, ids=_title)
def test_the_snippet_raises_what_the_page_says(section: Section) -> None:
    # Static it is not: the last column of the page would be wrong.
    assert mypy_report()[snippet_files()[section.number]] == {}

    with pytest.raises(TapeTensorError) as raised:
        exec(compile(section.program, "page.py", "exec"), {})

    said = re.sub(r"page\.py:\d+", "page.py", f"{type(raised.value).__name__}: {raised.value}")
    assert [said] == section.messages


@pytest.mark.parametrize(("number", "found", "guard"), [(r[0], r[2], r[3]) for r in ROWS])
def test_every_static_row_names_a_bad_line_that_exists(number: str, found: str, guard: str) -> None:
    if found == "run time":
        assert guard == "this page"
        return
    named = re.fullmatch(r"`(\w+\.pyi)`: `(.+)`", guard)
    assert named is not None, number
    file, line = named.groups()
    lines = (HERE / "fail" / file).read_text().splitlines()

    assert [one for one in lines if one.startswith(f"{line}  # type: ignore[")] != []
