"""A short slice of the fuzzing: `python -m tests.plugin.fuzz` goes on for as long as one likes."""

from __future__ import annotations

from pathlib import Path

from tests.plugin import fuzz
from tests.plugin.checked import library_cache
from tests.typing.checkers import plain_library_cache

SEED, SIZE = 20260, 6


def test_random_programs_get_right_answers(tmp_path: Path) -> None:
    plain_library_cache(tmp_path / "plain")
    library_cache(tmp_path / "plugin")

    assert fuzz.batch(SEED, SIZE, tmp_path) == []


def test_the_same_seed_writes_the_same_programs() -> None:
    first, again = fuzz.Program(SEED, 10), fuzz.Program(SEED, 10)

    assert first.text == again.text
    assert first.shapes == again.shapes != {}
