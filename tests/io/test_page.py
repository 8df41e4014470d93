"""docs/files.md: every snippet, run in order, says what the page says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

PAGE = (Path(__file__).parents[2] / "docs" / "files.md").read_text()
# A snippet, and what it says if that is on the page.
SNIPPETS = re.findall(
    r"^```python\n(.*?)^```\n(?:\n```text\n(.*?)^```)?", PAGE, re.MULTILINE | re.DOTALL
)


def test_every_snippet_says_what_the_page_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    assert len(SNIPPETS) == 6
    for program, said in SNIPPETS:
        try:
            exec(compile(program, "docs/files.md", "exec"), names)
        except Exception as error:
            print(f"{type(error).__name__}: {error}")

        assert capsys.readouterr().out == said
