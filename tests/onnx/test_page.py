"""docs/export.md: each snippet prints what the page says."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.onnx import running
from tests.test_pages import DOCS, SNIPPET


def test_every_snippet_says_what_the_page_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert running.runtime
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {"__name__": "page"}
    snippets = SNIPPET.findall((DOCS / "export.md").read_text())
    assert len(snippets) == 3
    for program, said in snippets:
        try:
            exec(compile(program, "docs/export.md", "exec"), names)
        except Exception as error:
            print(f"{type(error).__name__}: {error}")
        assert capsys.readouterr().out == said
