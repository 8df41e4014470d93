"""docs/error_catalogue.md: every error and every code is there, and is said as the page says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from mypy.errorcodes import ErrorCode

from tapetensor import TapeTensorError, errors
from tapetensor.mypy_plugin import codes
from tests.typing.catalogue import CLASSES, CODES
from tests.typing.checkers import catalogue_files, normalized, plugin_report

RUNNABLE = [name for name, entry in CLASSES.items() if entry.program]


def test_every_class_of_errors_has_an_entry_with_a_cure() -> None:
    public = {name for name, one in vars(errors).items() if isinstance(one, type)}
    public -= {"Sequence", "TapeTensorError"}

    assert set(CLASSES) == public
    assert [name for name, entry in CLASSES.items() if not entry.cure] == []
    # One process cannot show the second; tests/distributed provokes it.
    assert public - set(RUNNABLE) == {"MissingDependencyError", "DistributedError"}


def test_every_code_of_the_plugin_has_an_entry_with_a_cure() -> None:
    defined = {one.code for one in vars(codes).values() if isinstance(one, ErrorCode)}
    of_mypy = {"operator", "call-overload", "misc"}

    assert set(CODES) == defined - of_mypy
    assert [name for name, entry in CODES.items() if not (entry.cure and entry.program)] == []


def numberless(message: str) -> str:
    """Return a message without the numbers that count up while a process lives."""
    return re.sub(r"\b(id|context) \d+", r"\1 ...", message)


@pytest.mark.parametrize("name", RUNNABLE)
def test_the_snippet_raises_what_the_page_says(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    entry = CLASSES[name]
    with pytest.raises(TapeTensorError) as raised:
        exec(compile(entry.program, "page.py", "exec", dont_inherit=True), {"__name__": "page"})

    assert numberless(f"{type(raised.value).__name__}: {raised.value}") == numberless(entry.message)
    assert type(raised.value).__name__ == name


@pytest.mark.parametrize("name", CODES)
def test_mypy_with_the_plugin_says_what_the_page_says(name: str) -> None:
    (found,) = plugin_report()[catalogue_files()[name]].values()

    assert [f"error: {normalized(one)}" for one in found] == [CODES[name].message]
    assert CODES[name].message.endswith(f"[{name}]")
