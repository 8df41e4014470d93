"""A short slice of the fuzzing: `python -m tests.plugin.fuzz` goes on for as long as one likes."""

from __future__ import annotations

from pathlib import Path

from tests.plugin import fuzz
from tests.plugin.checked import library_cache
from tests.plugin.whole_programs import Program, spoiled
from tests.typing.checkers import plain_library_cache

SEED, SIZE = 20260, 6


def test_random_programs_get_right_answers_and_spoiled_ones_crash_nothing(
    tmp_path: Path,
) -> None:
    plain_library_cache(tmp_path / "plain")
    library_cache(tmp_path / "plugin")
    # How long it takes says nothing in a run of tests that share a machine.
    found = [one for one in fuzz.batch(SEED, SIZE, tmp_path) if " s with the plugin" not in one]

    assert found == []


def test_the_same_seed_writes_the_same_programs() -> None:
    first, again = Program(SEED, 10), Program(SEED, 10)

    assert first.text == again.text
    assert first.shapes == again.shapes != {}
    assert spoiled(first.text, SEED) == spoiled(again.text, SEED) != first.text


def test_a_false_claim_and_a_false_alarm_are_found() -> None:
    program = Program(SEED, 10)
    line, shape = next(iter(program.shapes.items()))
    program.shapes[line] = (*shape, 5)
    lines = program.text.splitlines()
    alarm = next(number for number, text in enumerate(lines, 1) if text.startswith("    x"))
    said = {"odd": {alarm: [("error", "no")], line: [("note", _revealed(shape))]}}
    silent = fuzz.Run({"odd": {alarm: [], line: []}}, "", 1.0)

    found = fuzz.complaints(program, "odd", silent, fuzz.Run(said, "", 1.0))

    assert [one.split(":")[0] for one in sorted(found)] == ["false alarm", "not true"]
    assert fuzz.complaints(Program(SEED, 10), "odd", silent, silent) == []


def _revealed(shape: tuple[int, ...]) -> str:
    dims = ", ".join(f"Literal[{dim}]" for dim in shape) or "()"
    return f'Revealed type is "tapetensor.tensor.tensor.Tensor[tuple[{dims}], NoneTape"'
