"""The programs of parity run, and mypy says of them what they are marked with, both ways.

``# P: words`` behind a line is what the plugin alone reports there, ``# N: words`` what it notes,
``# M: words`` what mypy alone reports, and ``# E: words`` what either does. Of the other lines
nobody reports anything.
"""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

import tapetensor as tt
from tests.parity.page import HERE
from tests.plugin.checked import plugin_report, said
from tests.typing.checkers import mypy_report
from tests.typing.runs import ROOT

PROGRAMS = sorted(p for p in (HERE / "programs").glob("*.py") if p.stem != "__init__")


def _marked(path: Path, letters: str) -> dict[int, list[str]]:
    """Return by line what messages must contain."""
    found: dict[int, list[str]] = {}
    for number, line in enumerate(path.read_text().splitlines(), 1):
        words = [one[3:].strip() for one in line.split("# ")[1:] if one[:2] in letters]
        if words:
            found[number] = words
    return found


def _misses(said: dict[int, list[str]], wanted: dict[int, list[str]]) -> dict[int, object]:
    """Return what was said or wanted of the lines where the two differ."""
    return {
        number: said.get(number) or wanted[number]
        for number in said.keys() | wanted.keys()
        if len(said.get(number, [])) != len(wanted.get(number, []))
        or not all(any(one in it for it in said[number]) for one in wanted[number])
    }


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_a_program_runs(path: Path) -> None:
    # What they clear is not what other tests hold.
    with tt.GradientContext():
        runpy.run_path(str(path), run_name="__main__")


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_the_plugin_says_what_is_marked(path: Path) -> None:
    assert _misses(dict(plugin_report()[path]), _marked(path, "P: E: ")) == {}


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_mypy_without_the_plugin_says_what_is_marked(path: Path) -> None:
    assert _misses(dict(mypy_report()[path]), _marked(path, "M: E: ")) == {}


def test_the_plugin_notes_what_is_marked_with_a_note() -> None:
    for path in PROGRAMS:
        shown = path.relative_to(ROOT)
        lines = [one for one in said().splitlines() if one.startswith(f"{shown}:")]
        noted = {
            int(line.split(":")[1]): [line]
            for line in lines
            if " note: " in line and ("forward() does not read" in line or "does not check" in line)
        }
        assert _misses(noted, _marked(path, "N: ")) == {}
