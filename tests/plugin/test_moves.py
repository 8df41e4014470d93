"""Use after move under the plugin: what is reported, what is not, and that both are true."""

from __future__ import annotations

import importlib
import inspect
import traceback
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import tapetensor as tt
from tests.plugin.checked import EXAMPLES, LAYERS, MOVES, plugin_report
from tests.typing.checkers import PASS, REVEAL

BAD = [path for path in MOVES if path.stem.startswith("bad_")]
# What these say is wrong of a function, whether it goes wrong at run time or not.
LENT = [path for path in MOVES if path.stem.startswith("lent_")]
GOOD = [path for path in MOVES if path.stem.startswith("good_")]
CORRECT = [*EXAMPLES, *PASS, *REVEAL, *LAYERS]
# Lines of programs that show, or test, what happens at run time.
DELIBERATE = {
    "tape_ownership.py": [
        "lambda: traced.exp())",
        "lambda: loss.backward())",
        "lambda: other * other)",
        "lambda: plain.put_tape(tape))",
    ],
    "limits.py": ["    assert_type(spent * 2.0"],
}
_MARK = "# E: "


def _marks(path: Path) -> dict[int, str]:
    lines = enumerate(path.read_text().splitlines(), 1)
    return {number: line.split(_MARK)[1] for number, line in lines if _MARK in line}


def _cases(path: Path) -> dict[str, Callable[[Any], object]]:
    """Return the functions of a file that take one plain tensor."""
    module: ModuleType = importlib.import_module(f"tests.plugin.moves.{path.stem}")
    return {
        name: function
        for name, function in vars(module).items()
        if inspect.isfunction(function)
        and not name.startswith("_")
        and function.__annotations__.get("x") == "Plain"
    }


def _ids(paths: list[Path]) -> list[tuple[Path, str]]:
    return [(path, name) for path in paths for name in _cases(path)]


@pytest.mark.parametrize("path", [*BAD, *LENT], ids=lambda path: path.stem)
def test_every_marked_line_is_reported_as_it_says_and_no_other_line_is(path: Path) -> None:
    found = plugin_report()[path]
    marks = _marks(path)

    assert set(found) == set(marks)
    for line, mark in marks.items():
        assert len(found[line]) == 1
        assert mark in found[line][0]
        assert found[line][0].endswith("  [tape-moved]")


@pytest.mark.parametrize(("path", "name"), _ids(BAD))
def test_what_is_reported_raises(path: Path, name: str) -> None:
    x = tt.from_numpy([0.5, 1.0, 2.0], shape=(3,))

    with pytest.raises(tt.MovedTensorError) as caught:
        _cases(path)[name](x)

    frames = traceback.extract_tb(caught.value.__traceback__)
    lines = {frame.lineno for frame in frames if Path(frame.filename) == path}
    # A spent tensor that is returned is found out where it is used.
    assert lines & set(_marks(path)) or "returned" in name


@pytest.mark.parametrize("path", GOOD, ids=lambda path: path.stem)
def test_nothing_is_reported_of_a_program_that_is_right(path: Path) -> None:
    assert plugin_report()[path] == {}


@pytest.mark.parametrize(("path", "name"), _ids(GOOD))
def test_a_program_that_is_right_runs(path: Path, name: str) -> None:
    _cases(path)[name](tt.from_numpy([0.5, 1.0, 2.0], shape=(3,)))


@pytest.mark.parametrize("path", CORRECT, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_only_deliberate_mistakes_are_reported_of_other_programs(path: Path) -> None:
    lines = path.read_text().splitlines()
    moved = {
        number
        for number, messages in plugin_report()[path].items()
        if any("[tape-moved]" in one for one in messages)
    }

    deliberate = DELIBERATE.get(path.name, [])
    assert moved == {
        number for number, line in enumerate(lines, 1) if any(one in line for one in deliberate)
    }
    assert len(moved) == len(deliberate)
