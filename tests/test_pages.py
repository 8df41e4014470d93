"""The pages of docs that show what programs print: each snippet, run in order, prints just that."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[1] / "docs"
# A snippet, and what it says if that is on the page.
SNIPPET = re.compile(r"^```python\n(.*?)^```\n(?:\n```text\n(.*?)^```)?", re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize(
    ("page", "count"),
    [("files", 6), ("compile", 3), ("arrays", 1), ("pictures", 3), ("distributed", 3)],
)
def test_every_snippet_says_what_the_page_says(
    page: str,
    count: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {"__name__": "page"}
    snippets = SNIPPET.findall((DOCS / f"{page}.md").read_text())
    assert len(snippets) == count
    for program, said in snippets:
        try:
            exec(compile(program, f"docs/{page}.md", "exec"), names)
        except Exception as error:
            print(f"{type(error).__name__}: {error}")

        assert capsys.readouterr().out == said
