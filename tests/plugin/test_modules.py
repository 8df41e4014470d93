"""Modules under the plugin: every marked line is reported, and no other line is."""

from __future__ import annotations

import runpy
from collections import defaultdict
from pathlib import Path

import pytest

from tests.plugin.checked import CONFIGURATION, MODULES, library_cache, plugin_report
from tests.typing.runs import errors, mypy

_MARK = "# E: "


def _expected(path: Path) -> dict[int, list[str]]:
    """Return by line what a message must contain; a mark on a line of its own is for the next."""
    expected: dict[int, list[str]] = defaultdict(list)
    before: list[str] = []
    for number, line in enumerate(path.read_text().splitlines(), 1):
        code, *marks = line.split(_MARK)
        before += [one.partition(" # noqa")[0].strip() for one in marks]
        if code.strip() and before:
            expected[number] += before
            before = []
    return dict(expected)


def _agree(fragments: list[str], messages: list[str]) -> bool:
    """Tell whether there is one message that contains all fragments, or neither."""
    if not fragments or len(messages) != 1:
        return not fragments and not messages
    return all(one in messages[0] for one in fragments)


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.stem)
def test_the_marked_lines_are_reported_and_no_others(path: Path) -> None:
    expected, said = _expected(path), dict(plugin_report()[path])
    differing = {
        number: said.get(number, [])
        for number in expected.keys() | said.keys()
        if not _agree(expected.get(number, []), said.get(number, []))
    }

    assert differing == {}


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.stem)
def test_what_is_not_in_a_function_runs(path: Path) -> None:
    runpy.run_path(str(path), run_name="__main__")


def test_a_second_run_from_the_cache_says_the_same(tmp_path: Path) -> None:
    again = errors(mypy(CONFIGURATION, library_cache(tmp_path), MODULES))

    assert again == {path: plugin_report()[path] for path in again}
    assert again.keys() == {path for path in MODULES if plugin_report()[path]}
