"""The pages of docs that show what programs print: each snippet, run in order, prints just that."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.typing.pages import PAGES

DOCS = Path(__file__).parents[1] / "docs"
# The pages, and how many snippets each has.
PRINTING = {
    "arrays": 1,
    "compile": 3,
    "compile_refused": 1,
    "distributed": 3,
    "files": 7,
    "fine_tuning": 8,
    "large_data": 3,
    "pictures": 3,
}
# Those that a test of their own reads.
READ_ELSEWHERE = {
    "error_catalogue", "errors", "export", "index", "plugin", "plugin_modules", "plugin_shapes",
    "ten_mistakes", "tutorial",
}  # fmt: skip
# A snippet, and what it says if that is on the page.
SNIPPET = re.compile(r"^```python\n(.*?)^```\n(?:\n```text\n(.*?)^```)?", re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize(("page", "count"), PRINTING.items())
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


def test_every_page_with_python_is_read_by_some_test() -> None:
    pages = {path.stem for path in DOCS.rglob("*.md") if "```python" in path.read_text()}

    assert pages - {*PRINTING, *PAGES} - READ_ELSEWHERE == set()


def test_the_gallery_shows_what_its_examples_print_and_draw() -> None:
    page = (DOCS / "gallery.md").read_text()
    program = (DOCS / "site" / "gallery.py").read_text()
    (listed,) = re.findall(r"^EXAMPLES.*?^}", program, re.MULTILINE | re.DOTALL)
    examples = re.findall(r'^    "(\w+)": \(', listed, re.MULTILINE)

    assert examples == sorted(set(re.findall(r'--8<-- "(\w+).txt"', page)), key=examples.index)
    assert {f"{name}.py" for name in examples} == set(re.findall(r"`(\w+\.py)`", page))
    drawn = set(re.findall(r"\((?:gallery/)(\w+)\.png\)", page))
    written = set(re.findall(r'FOLDER / "(\w+)\.png"', program))
    asked = {name for name in examples if re.search(rf'"{name}": .*--picture', listed)}
    assert drawn == written | asked
