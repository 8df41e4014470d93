"""docs/error_catalogue.md, read into its entries."""

from __future__ import annotations

import re
from typing import NamedTuple

from tests.typing.pages import DOCS, fenced

PAGE = (DOCS / "error_catalogue.md").read_text()


class Entry(NamedTuple):
    """A class of errors or a code: the program that provokes it, if there is one, and the words."""

    name: str
    program: str
    message: str
    cure: str


def _entries(chapter: str) -> dict[str, Entry]:
    _, text = PAGE.split(f"## {chapter}\n")
    introduction, *parts = re.split(
        r"^### ", re.split(r"^## ", text, flags=re.MULTILINE)[0], flags=re.MULTILINE
    )
    (preamble,) = fenced("python", introduction)
    entries = {}
    for part in parts:
        name = part.partition("\n")[0]
        program = "".join(f"{preamble}\n{block}" for block in fenced("python", part))
        cure = part.partition("*Cure.* ")[2]
        entries[name] = Entry(name, program, "".join(fenced("text", part)).rstrip("\n"), cure)
    return entries


CLASSES = _entries("When the program runs")
CODES = _entries("Codes of the plugin")
