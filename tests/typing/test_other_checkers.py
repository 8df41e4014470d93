"""The examples under pyright, pyrefly and ty: what docs/checkers.md lists is all they report."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest

from tests.typing.checkers import CASES, HERE, pyright_report
from tests.typing.pages import DOCS
from tests.typing.runs import ROOT, once_a_session, what_checkers_read

EXAMPLES = sorted((ROOT / "examples").rglob("*.py"))
LISTED = {
    (checker, file, line, code)
    for checker, file, code, line in re.findall(
        r"^- (pyright|pyrefly|ty), `(.+?)`, `(.+?)`:\n  `(.+?)`$",
        (DOCS / "checkers.md").read_text(),
        re.MULTILINE,
    )
}

# Each prints a line for an error: where it is, and its code.
COMMANDS = {
    "pyrefly": ["check", "--output-format=min-text", f"--python-interpreter-path={sys.executable}"],
    "ty": [
        *["check", "--output-format=concise", f"--python={sys.executable}", "--project=."],
        *[f"--extra-search-path={ROOT}", f"--extra-search-path={ROOT / 'stubs'}"],
    ],
}
_ERROR = re.compile(
    r"^(?:ERROR )?(?P<file>[\w/]+\.pyi?):(?P<line>\d+):.*?"
    r"(?:error\[(?P<ty>[\w-]+)\]|\[(?P<pyrefly>[\w-]+)\]$)",
    re.MULTILINE,
)


def _marked(files: Iterable[Path]) -> set[tuple[str, int]]:
    """Return the lines that show a mistake."""
    return {
        (path.relative_to(ROOT).as_posix(), number)
        for path in files
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if "# type: ignore[" in line
    }


def _reported(checker: str, folder: Path) -> set[tuple[str, int, str]]:
    """Return file, line and code of what a checker reports where nothing is ignored."""
    if importlib.util.find_spec(checker) is None:
        pytest.skip(f"needs {checker}: pip install 'tapetensor[dev]'")

    def run() -> str:
        for path in [*HERE.glob("*.py"), *CASES, *EXAMPLES]:
            copy = folder / path.relative_to(ROOT)
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_text(re.sub(r"  # type: ignore\[.*", "", path.read_text()))
        # With `strict = True` in mypy.ini, as here, pyrefly reports these, too.
        (folder / "pyrefly.toml").write_text(
            "errors.implicit-any-type-argument = true\n"
            "disable-search-path-heuristics = true\n"
            f'search-path = [".", "{ROOT}", "{ROOT / "stubs"}"]\n'
        )
        files = [path.relative_to(ROOT).as_posix() for path in [*CASES, *EXAMPLES]]
        command = [sys.executable, "-m", checker, *COMMANDS[checker], *files]
        finished = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
        assert finished.returncode in (0, 1), finished.stderr
        return finished.stdout

    said = once_a_session(checker, run, session=what_checkers_read())
    return {
        (found["file"], int(found["line"]), found["ty"] or found["pyrefly"])
        for found in _ERROR.finditer(said)
    }


def test_pyright_passes_the_examples() -> None:
    found = {
        (path.relative_to(ROOT).as_posix(), line)
        for path in EXAMPLES
        for line in pyright_report()[path]
    }

    assert len(EXAMPLES) >= 10
    assert found == _marked(EXAMPLES)


@pytest.mark.parametrize("checker", COMMANDS)
def test_other_checkers_differ_on_the_examples_as_listed(checker: str, tmp_path: Path) -> None:
    examples = {path.relative_to(ROOT).as_posix(): path.read_text() for path in EXAMPLES}
    differing = {
        (checker, file, examples[file].splitlines()[line - 1].strip(), code)
        for file, line, code in _reported(checker, tmp_path)
        if file in examples and (file, line) not in _marked(EXAMPLES)
    }

    assert differing == {row for row in LISTED if row[0] == checker}


@pytest.mark.parametrize("checker", COMMANDS)
def test_other_checkers_agree_with_the_static_tests_as_the_page_says(
    checker: str, tmp_path: Path
) -> None:
    cases = {path.relative_to(ROOT).as_posix() for path in CASES}
    found = {(file, line) for file, line, _ in _reported(checker, tmp_path) if file in cases}

    missed, false = _marked(CASES) - found, found - _marked(CASES)

    text = (DOCS / "checkers.md").read_text()
    claim = re.search(
        r"ty lets (\d+) of the\s+bad lines pass .*?and has (\d+) complaints", text, re.DOTALL
    )
    assert claim is not None
    expected = (int(claim[1]), int(claim[2])) if checker == "ty" else (0, 0)
    assert (len(missed), len(false)) == expected
