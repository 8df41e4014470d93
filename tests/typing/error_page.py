"""docs/errors.md, read into what it claims."""

from __future__ import annotations

import re
from typing import NamedTuple

from tests.typing.pages import DOCS, fenced

PAGE = (DOCS / "errors.md").read_text()
ROWS = re.findall(r"^\| (\d+) \| (.+) \| (static|run time) \| (.+) \|$", PAGE, re.MULTILINE)


class Section(NamedTuple):
    """One class of errors: what is wrong, when it is found, and the words."""

    number: int
    title: str
    found: str
    program: str
    messages: list[str]


def _sections() -> list[Section]:
    introduction, *parts = re.split(r"^## (?=\d)", PAGE, flags=re.MULTILINE)
    (preamble,) = fenced("python", introduction)
    sections = []
    for part in parts:
        (snippet,), (messages,) = fenced("python", part), fenced("text", part)
        heading = re.match(r"(\d+)\. (.+)\n\n\*(Static|Run time)\.\*", part)
        assert heading is not None, part
        number, title, found = heading.groups()
        program = f"{preamble}\n{snippet}"
        sections.append(Section(int(number), title, found.lower(), program, messages.splitlines()))
    return sections


SECTIONS = _sections()
