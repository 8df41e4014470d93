"""The pages of docs that tell a story, read as the programs that they are."""

from __future__ import annotations

import re
from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs"
PAGES = [
    "checkers",
    "coming_from",
    "custom_ops",
    "data",
    "forward_by_tape",
    "gradients",
    "internals",
    "modules",
    "notebook",
    "ownership",
    "shapes",
    "start",
    "training",
]


def program(page: str) -> str:
    """Return all Python of a page, every line where it stands in the page."""
    text = (DOCS / f"{page}.md").read_text()
    blank = re.sub(r"[^\n]+", "", text)
    lines = blank.split("\n")
    for block in re.finditer(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL):
        first = text[: block.start(1)].count("\n")
        code = block[1].rstrip("\n").split("\n")
        lines[first : first + len(code)] = code
    return "\n".join(lines)


def fenced(language: str, text: str) -> list[str]:
    """Return the fenced blocks of one language."""
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def blocks(page: str, language: str) -> list[str]:
    """Return the fenced blocks of one language of a page."""
    return fenced(language, (DOCS / f"{page}.md").read_text())


def titled(page: str, title: str) -> str:
    """Return the block of text with a title."""
    (found,) = blocks(page, f'text title="{title}"')
    return found


def changed(program: str, diff: str) -> str:
    """Return a program with a change: lines taken out, lines put in their place or at the end."""
    lines = diff.splitlines()
    old = "".join(f"{line[1:]}\n" for line in lines if line[0] != "+")
    new = "".join(f"{line[1:]}\n" for line in lines if line[0] != "-")
    if not old:
        return program + new
    assert program.count(old) == 1, diff
    return program.replace(old, new)
