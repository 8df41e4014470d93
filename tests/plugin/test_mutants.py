"""A slice of the mutation benchmark: the valid programs, and a few of the wrong ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.static.checking import Report, report
from benchmarks.static.mutants import PROGRAMS, Mutant, defects, program, run
from benchmarks.static.operators import OPERATORS
from benchmarks.static.source import Source

# Programs that between them have every kind of mistake listed below.
SLICE = ("gradient_accumulation", "mlp_classifier", "self_attention", "concat_features")
REJECTED = (
    "two dims swapped",
    "wrong layer size",
    "wrong size of data",
    "transpose missing",
    "transpose doubled",
    "wrong axis",
    "wrong concat axis",
    "arguments swapped",
    "float64 into float32",
    "trace out of the loop",
    "backward twice",
    "trace twice",
    "target with a tape",
)


@pytest.fixture(scope="module")
def mutants() -> list[Mutant]:
    paths = [path for path in PROGRAMS if path.stem in SLICE]
    found = {one.operator: one for one in defects(paths, most=1)}
    return [found[operator] for operator in REJECTED if operator in found]


@pytest.fixture(scope="module")
def checked(mutants: list[Mutant], tmp_path_factory: pytest.TempPathFactory) -> Report:
    folder = tmp_path_factory.mktemp("mutants").resolve()
    files = [folder / f"mutant_{index}.py" for index in range(len(mutants))]
    for file, mutant in zip(files, mutants, strict=True):
        file.write_text(mutant.text)
    return report([*PROGRAMS, *files], folder / "plugin", "plugins = tapetensor.mypy_plugin")


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_a_valid_program_runs(path: Path) -> None:
    run(path.stem, program(path))


def test_there_are_enough_programs() -> None:
    assert len(PROGRAMS) >= 40


def test_no_valid_program_raises_a_false_alarm(checked: Report) -> None:
    assert {path: checked.errors[path] for path in PROGRAMS if path in checked.errors} == {}


def test_the_mistakes_of_the_slice_are_found(checked: Report, mutants: list[Mutant]) -> None:
    rejected = {path.name for path in checked.errors}
    accepted = [
        f"{mutant.operator} in {mutant.program}: {mutant.edit.description}"
        for index, mutant in enumerate(mutants)
        if f"mutant_{index}.py" not in rejected
    ]

    assert accepted == []
    assert [mutant.operator for mutant in mutants] == list(REJECTED)


def test_the_same_mistakes_are_made_in_every_run(mutants: list[Mutant]) -> None:
    paths = [path for path in PROGRAMS if path.stem in SLICE]
    again = {one.operator: one for one in defects(paths, most=1)}

    assert [again[one.operator].text for one in mutants] == [one.text for one in mutants]


@pytest.mark.parametrize("operator", OPERATORS)
def test_an_operator_changes_one_place_and_leaves_the_rest(operator: str) -> None:
    edits = 0
    for path in PROGRAMS:
        source = Source(path.stem, program(path))
        for edit in OPERATORS[operator](source):
            changed = source.changed(edit)
            compile(changed, path.name, "exec")
            before, after = source.text.splitlines(), changed.splitlines()
            assert 0 <= len(after) - len(before) <= 1
            edits += 1

    assert edits > 0
