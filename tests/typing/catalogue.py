"""docs/error_catalogue.md, read into its entries."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

PAGE = (Path(__file__).parents[2] / "docs" / "error_catalogue.md").read_text()


class Entry(NamedTuple):
    """A class of errors or a code: the program that provokes it, if there is one, and the words."""

    name: str
    program: str
    message: str
    cure: str


def _blocks(language: str, text: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def _entries(chapter: str) -> dict[str, Entry]:
    _, text = PAGE.split(f"## {chapter}\n")
    introduction, *parts = re.split(
        r"^### ", re.split(r"^## ", text, flags=re.MULTILINE)[0], flags=re.MULTILINE
    )
    (preamble,) = _blocks("python", introduction)
    entries = {}
    for part in parts:
        name = part.partition("\n")[0]
        program = "".join(f"{preamble}\n{block}" for block in _blocks("python", part))
        cure = part.partition("*Cure.* ")[2]
        entries[name] = Entry(name, program, "".join(_blocks("text", part)).rstrip("\n"), cure)
    return entries


CLASSES = _entries("When the program runs")
CODES = _entries("Codes of the plugin")
