"""docs/tutorial.md: the program runs and is right, and mypy says of each mistake what it quotes."""

from __future__ import annotations

import re

import pytest

from tests.plugin.checked import plugin_report
from tests.typing.catalogue import CODES
from tests.typing.checkers import mypy_report, normalized, tutorial_files
from tests.typing.tutorial import TUTORIAL


def test_the_program_learns_what_the_page_says(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("sklearn")
    exec(compile(TUTORIAL.program, "docs/tutorial.md", "exec", dont_inherit=True), {})

    said, expected = capsys.readouterr().out, TUTORIAL.prints
    # To 1 percent, for no two BLAS libraries round alike.
    assert abs(int(said.partition("%")[0]) - int(expected.partition("%")[0])) <= 1
    assert said.partition("%")[2] == expected.partition("%")[2]


def test_mypy_agrees_with_the_program_with_the_plugin_and_without_it() -> None:
    whole = tutorial_files()[0]

    assert mypy_report()[whole] == {}
    assert plugin_report()[whole] == {}


@pytest.mark.parametrize("number", range(len(TUTORIAL.mistakes)))
def test_mypy_says_of_each_mistake_what_the_page_says(number: int) -> None:
    mistake = TUTORIAL.mistakes[number]
    # The plugin is in the settings of the page; a plain message comes without it, too.
    reports = [plugin_report()] if mistake.plugin else [plugin_report(), mypy_report()]

    assert mistake.messages != []
    for report in reports:
        found = report[tutorial_files()[1 + number]]
        said = [f"error: {message}" for line in sorted(found) for message in found[line]]
        assert [normalized(one) for one in said] == [normalized(one) for one in mistake.messages]


def test_every_code_of_the_plugin_is_provoked() -> None:
    messages = "\n".join(one for mistake in TUTORIAL.mistakes for one in mistake.messages)

    assert set(re.findall(r"\[([a-z-]+)\]$", messages, re.MULTILINE)) >= CODES.keys()
