"""Modules under the plugin: every marked line is reported as it says, and no other line is."""

from __future__ import annotations

import os
import re
import runpy
import zlib
from collections import defaultdict
from functools import cache
from pathlib import Path
from unittest.mock import patch

import pytest
from mypy import api

from tapetensor.mypy_plugin.guard import RAISE

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
CASES = sorted(path for path in (HERE / "modules").glob("*.py") if path.stem != "__init__")
# A cache of this process alone, since mypy's takes one writer at a time; and of this plugin as it
# is, since mypy does not notice a change of one that is a package.
PLUGIN = b"".join(
    [path.read_bytes() for path in sorted((ROOT / "tapetensor" / "mypy_plugin").rglob("*.py"))]
)
WORKER = os.environ.get("PYTEST_XDIST_WORKER", "main")
CACHE = ROOT / ".mypy_cache" / f"plugin_modules_{WORKER}_{zlib.crc32(PLUGIN):08x}"

_LINE = re.compile(r"(?P<path>.+?):(?P<line>\d+): error: (?P<message>.*)")
_MARK = "# E: "


@cache
def _report(run: int = 1) -> dict[Path, dict[int, list[str]]]:
    options = [f"--config-file={HERE / 'modules_mypy.ini'}", f"--cache-dir={CACHE}", "--no-pretty"]
    # An error inside the plugin is to fail the test, not to become a note.
    with patch.dict(os.environ, {RAISE: "1"}):
        output, complaint, status = api.run([*options, *map(str, CASES)])
    assert status in (0, 1), output + complaint
    report: dict[Path, dict[int, list[str]]] = defaultdict(lambda: defaultdict(list))
    for line in output.splitlines():
        if found := _LINE.fullmatch(line):
            path = Path(os.path.abspath(found["path"]))
            report[path][int(found["line"])].append(found["message"])
    return report


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


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_the_marked_lines_are_reported_and_no_others(path: Path) -> None:
    expected, said = _expected(path), dict(_report()[path])
    differing = {
        number: said.get(number, [])
        for number in expected.keys() | said.keys()
        if not _agree(expected.get(number, []), said.get(number, []))
    }

    assert differing == {}


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_what_is_not_in_a_function_runs(path: Path) -> None:
    runpy.run_path(str(path), run_name="__main__")


def test_a_second_run_from_the_cache_says_the_same() -> None:
    assert _report(run=2) == _report(run=1)
