"""docs/checkers.md: the language servers of the checkers show what the page says."""

from __future__ import annotations

import importlib.util
import re

import pytest

from tests.typing.hover import SERVERS, hovers
from tests.typing.pages import program, titled
from tests.typing.runs import ROOT, written

# What surrounds the type in the answer of a server, and where pyrefly says that a name is from.
_AROUND = re.compile(r"^```\w*$|^\((variable|attribute)\) (\w+: )?|\b(tapetensor|numpy)\.(\w+\.)*")


def _shown(answer: str) -> str:
    lines = [_AROUND.sub("", line) for line in answer.splitlines()]
    return next(line for line in lines if line)


@pytest.mark.parametrize("checker", SERVERS)
def test_a_name_has_the_type_that_the_page_says(checker: str) -> None:
    if importlib.util.find_spec(checker) is None:
        pytest.skip(f"needs {checker}: pip install 'tapetensor[dev]'")
    file = written("hover", program("checkers"))
    expected = dict(line.split(": ", 1) for line in titled("checkers", checker).splitlines())
    lines = file.read_text().splitlines()
    places = [
        next(
            (i, line.index(name)) for i, line in enumerate(lines) if re.match(rf" *{name}\b", line)
        )
        for name in expected
    ]

    shown = [_shown(answer) for answer in hovers(checker, file, places, root=ROOT)]

    assert len(expected) >= 5
    assert dict(zip(expected, shown, strict=True)) == expected
