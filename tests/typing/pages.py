"""The pages of docs that tell a story, read as the programs that they are."""

from __future__ import annotations

import re
from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs"
PAGES = ["custom_ops", "gradients", "training"]


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
