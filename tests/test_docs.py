"""The pages of docs that tell a story: their code runs, in order, and passes ``mypy --strict``."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.typing.checkers import mistaken_start, mypy_report, normalized, page_files
from tests.typing.pages import DOCS, PAGES, blocks, program


@pytest.mark.parametrize("page", PAGES)
def test_the_code_of_a_page_runs(
    page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code = program(page)
    # Where what it writes may lie.
    monkeypatch.chdir(tmp_path)

    assert sum(code.count(one) for one in ("assert ", "assert_type(", "check_grad(")) >= 4
    exec(compile(code, f"docs/{page}.md", "exec", dont_inherit=True), {"__name__": page})


@pytest.mark.parametrize("page", PAGES)
def test_mypy_agrees_with_every_line_of_a_page(page: str) -> None:
    assert mypy_report()[page_files()[page]] == {}


def test_mypy_says_of_the_first_mistake_what_the_first_page_says() -> None:
    (found,) = mypy_report()[mistaken_start()].values()
    (message,) = blocks("start", "text")

    assert [normalized(one) for one in found] == [normalized(message.strip())]


def test_a_line_of_a_program_is_where_it_is_in_its_page() -> None:
    lines = program("custom_ops").split("\n")

    assert lines[0] == ""
    assert "def softsign_kernel" in "".join(lines[:40])


@pytest.mark.parametrize(
    "word",
    [
        *("freeze", "augmentation", "weight decay", "warm-up", "confusion matrix", "jacobian"),
        *("regularization", "generate", "metrics", "checkpoints", "batches"),
    ],
)
def test_a_word_of_the_field_leads_to_a_section(word: str) -> None:
    text = "\n".join(page.read_text() for page in DOCS.glob("*.md"))
    headings = re.findall(r"^#{1,4} (.+)$", text, re.MULTILINE)

    assert any(word in one.lower() for one in headings)
