"""The snippets of docs/plugin_*.md, each with what mypy is to say of it."""

from __future__ import annotations

import ast
import re
from typing import NamedTuple

from tests.plugin import page_names
from tests.typing.pages import DOCS

# A snippet, and the errors if they stand below it.
_SNIPPET = re.compile(
    r"^```python\n(.*?)^```\n(?:\n```text\n((?:error: [^\n]+\n)+)```)?", re.MULTILINE | re.DOTALL
)
_SAYS = re.compile(r"(?P<code>.*?\S)  # (?P<said>.+)")
_TYPE = re.compile(r"[\w.]+\[.*\]")


class Snippet(NamedTuple):
    """A program, and what errors must contain: by line, or anywhere."""

    program: str
    by_line: dict[int, str]
    below: list[str]


def _imports(code: str) -> list[str]:
    """Return what a snippet needs and does not define."""
    tree = ast.parse(code)
    names = [one for one in ast.walk(tree) if isinstance(one, ast.Name)]
    defined = {one.name for one in ast.walk(tree) if isinstance(one, ast.ClassDef)}
    defined |= {one.id for one in names if isinstance(one.ctx, ast.Store)}
    wanted = {one.id for one in names} & set(page_names.__all__) - defined
    return [f"from tests.plugin.page_names import {name}" for name in sorted(wanted)]


def _snippet(code: str, below: str) -> Snippet:
    lines, by_line = [], {}
    for line in code.splitlines():
        lines.append(line)
        if (found := _SAYS.fullmatch(line)) is None:
            continue
        name, _, value = found["code"].rpartition(" = ")
        if shown := _TYPE.match(found["said"]):
            lines[-1] = found["code"] if name else ""
            lines.append(f"assert_type({name or value}, {shown[0]})")
        else:
            by_line[len(lines)] = found["said"].removesuffix(" ...")
    before = ["from typing_extensions import assert_type", *_imports("\n".join(lines))]
    program = "\n".join([*before, *lines, ""])
    return Snippet(
        program, {len(before) + n: said for n, said in by_line.items()}, below.splitlines()
    )


SNIPPETS = {
    f"{page}_{number}": _snippet(code, below)
    for page in ("plugin", "plugin_modules", "plugin_shapes")
    for number, (code, below) in enumerate(_SNIPPET.findall((DOCS / f"{page}.md").read_text()), 1)
}
