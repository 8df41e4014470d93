"""The examples under pyright, pyrefly and ty: what docs/checkers.md lists is all they report."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from collections.abc import Iterator

import pytest

from tests.typing.checkers import ROOT, pyright_report
from tests.typing.pages import DOCS

EXAMPLES = sorted((ROOT / "examples").rglob("*.py"))
LISTED = {
    (checker, file, line.replace(r"\|", "|"), code)
    for checker, file, line, code in re.findall(
        r"^\| (pyright|pyrefly|ty) \| `(.+?)` \| `(.+?)` \| `(.+?)` \|$",
        (DOCS / "checkers.md").read_text(),
        re.MULTILINE,
    )
}

# Each prints a line for an error: where it is, and its code.
COMMANDS = {
    "pyrefly": ["check", "--output-format=min-text", "--search-path=stubs", "examples"],
    "ty": ["check", "--output-format=concise", "--extra-search-path=stubs", "examples"],
}
INTERPRETER = {"pyrefly": "--python-interpreter-path", "ty": "--python"}
_ERROR = re.compile(
    r"^(?:ERROR )?(?P<file>[\w/]+\.py):(?P<line>\d+):.*?"
    r"(?:error\[(?P<ty>[\w-]+)\]|\[(?P<pyrefly>[\w-]+)\]$)",
    re.MULTILINE,
)


def _marked() -> set[tuple[str, int]]:
    """Return the lines that show a mistake: every checker must reject them."""
    return {
        (path.relative_to(ROOT).as_posix(), number)
        for path in EXAMPLES
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if "# type: ignore[" in line
    }


def _reported(checker: str) -> Iterator[tuple[str, int, str]]:
    if importlib.util.find_spec(checker) is None:
        pytest.skip(f"needs {checker}: pip install 'tapetensor[dev]'")
    command = [sys.executable, "-m", checker, *COMMANDS[checker]]
    command += [f"{INTERPRETER[checker]}={sys.executable}"]
    finished = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert finished.returncode in (0, 1), finished.stderr
    for found in _ERROR.finditer(finished.stdout):
        yield found["file"], int(found["line"]), found["ty"] or found["pyrefly"]


def test_pyright_passes_the_examples() -> None:
    found = {
        (path.relative_to(ROOT).as_posix(), line)
        for path in EXAMPLES
        for line in pyright_report()[path]
    }

    assert len(_marked()) >= 4
    assert found == _marked()


@pytest.mark.parametrize("checker", COMMANDS)
def test_other_checkers_differ_on_the_examples_as_listed(checker: str) -> None:
    differing = {
        (checker, file, (ROOT / file).read_text().splitlines()[line - 1].strip(), code)
        for file, line, code in _reported(checker)
        if (file, line) not in _marked()
    }

    assert differing == {row for row in LISTED if row[0] == checker}
