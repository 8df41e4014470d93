"""The pages of docs that tell a story: their code runs, in order, and passes ``mypy --strict``."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.typing.checkers import mypy_report, page_files
from tests.typing.pages import PAGES, program


@pytest.mark.parametrize("page", PAGES)
def test_the_code_of_a_page_runs(
    page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code = program(page)
    # Where what it writes may lie.
    monkeypatch.chdir(tmp_path)

    assert code.count("assert ") + code.count("check_grad(") >= 4
    exec(compile(code, f"docs/{page}.md", "exec", dont_inherit=True), {"__name__": page})


@pytest.mark.parametrize("page", PAGES)
def test_mypy_agrees_with_every_line_of_a_page(page: str) -> None:
    assert mypy_report()[page_files()[page]] == {}


def test_a_line_of_a_program_is_where_it_is_in_its_page() -> None:
    lines = program("custom_ops").split("\n")

    assert lines[0] == ""
    assert "def softsign_kernel" in "".join(lines[:40])
