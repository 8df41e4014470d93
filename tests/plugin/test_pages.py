"""The snippets of docs/plugin_*.md: mypy says of each line what stands behind it, or below."""

from __future__ import annotations

import pytest

from tests.plugin.checked import plugin_report, snippet_files
from tests.plugin.page_snippets import SNIPPETS


def test_the_pages_have_snippets() -> None:
    assert len(SNIPPETS) >= 7


@pytest.mark.parametrize("name", SNIPPETS)
def test_mypy_says_of_a_snippet_what_the_page_says(name: str) -> None:
    snippet, found = SNIPPETS[name], plugin_report()[snippet_files()[name]]
    said = {line: " ".join(messages) for line, messages in found.items()}
    elsewhere = [f"error: {said[line]}" for line in sorted(said.keys() - snippet.by_line.keys())]

    assert {
        line: said.get(line)
        for line, one in snippet.by_line.items()
        if one not in said.get(line, "")
    } == {}
    assert elsewhere == snippet.below
