"""A slice of the mutation benchmark: the valid programs, and a few of the wrong ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.static.mutants import PROGRAMS, program, run
from benchmarks.static.operators import OPERATORS
from benchmarks.static.source import Source
from tests.plugin.checked import REJECTED, mutant_files, mutants, plugin_report


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_a_valid_program_runs(path: Path) -> None:
    run(path.stem, program(path))


def test_there_are_enough_programs() -> None:
    assert len(PROGRAMS) >= 40


def test_no_valid_program_raises_a_false_alarm() -> None:
    assert {path: plugin_report()[path] for path in PROGRAMS if plugin_report()[path]} == {}


def test_the_mistakes_of_the_slice_are_found() -> None:
    accepted = [
        f"{one.operator} in {one.program}: {one.edit.description}"
        for one in mutants()
        if not plugin_report()[mutant_files()[one.operator]]
    ]

    assert accepted == []
    assert [one.operator for one in mutants()] == list(REJECTED)


def test_the_same_mistakes_are_made_in_every_run() -> None:
    again = mutants.__wrapped__()

    assert [one.text for one in again] == [one.text for one in mutants()]


@pytest.mark.parametrize("operator", OPERATORS)
def test_an_operator_changes_one_place_and_leaves_the_rest(operator: str) -> None:
    edits = 0
    for path in PROGRAMS:
        source = Source(path.stem, program(path))
        made = list(OPERATORS[operator](source))
        # Of very many of one kind in one program some, from all over it.
        for edit in made[:: max(1, len(made) // 10)]:
            changed = source.changed(edit)
            compile(changed, path.name, "exec")
            before, after = source.text.splitlines(), changed.splitlines()
            assert 0 <= len(after) - len(before) <= 1
            edits += 1

    assert edits > 0
