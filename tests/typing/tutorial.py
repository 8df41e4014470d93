"""docs/tutorial.md, read as a program that grows, and the mistakes made on the way.

    python -m tests.typing.tutorial FOLDER

writes what the page has the reader type, for a check by what is installed elsewhere.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import NamedTuple

from tests.typing.pages import changed

PAGE = (Path(__file__).parents[2] / "docs" / "tutorial.md").read_text()
_FENCE = re.compile(r'^```(python|diff|text title="(.+?)")\n(.*?)^```$', re.MULTILINE | re.DOTALL)


class Mistake(NamedTuple):
    """One change for the worse, and what mypy says of it."""

    program: str
    plugin: bool
    messages: list[str]


class Tutorial(NamedTuple):
    """The whole program, what it prints, and the mistakes."""

    program: str
    prints: str
    mistakes: list[Mistake]


def _read(page: str) -> Tutorial:
    program, prints, diff = "", "", ""
    mistakes = []
    for kind, title, content in _FENCE.findall(page):
        if kind == "python":
            program += content
        elif kind == "diff":
            diff = content
        elif title == "prints":
            prints = content
        else:
            assert title in ("plain", "with the plugin"), title
            mistaken = changed(program, diff)
            mistakes.append(Mistake(mistaken, title != "plain", content.splitlines()))
    return Tutorial(program, prints, mistakes)


TUTORIAL = _read(PAGE)

if __name__ == "__main__":
    (settings,) = re.findall(r"^```ini\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    folder = Path(sys.argv[1])
    folder.mkdir()
    (folder / "mypy.ini").write_text(settings)
    (folder / "tutorial.py").write_text(TUTORIAL.program)
