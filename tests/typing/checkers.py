"""What mypy and pyright say of all cases, for every test that asks.

The snippets of docs/errors.md and the programs of other pages are part of the run of mypy.
"""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
from collections import defaultdict
from functools import cache
from pathlib import Path

import pytest

from tests.typing.catalogue import CODES
from tests.typing.error_page import SECTIONS
from tests.typing.own_names import own_names_file
from tests.typing.pages import DOCS, PAGES, blocks, changed, fenced, program
from tests.typing.runs import (
    CACHES,
    ROOT,
    Report,
    errors,
    mypy,
    once_a_session,
    what_checkers_read,
    written,
)
from tests.typing.tutorial import TUTORIAL

HERE = Path(__file__).parent
REVEAL, PASS, FAIL = (
    sorted(path for path in (HERE / folder).glob(pattern) if path.stem != "__init__")
    for folder, pattern in (("reveal", "*.py"), ("pass", "*.py"), ("fail", "*.pyi"))
)
CASES = [*REVEAL, *PASS, *FAIL]

README = (ROOT / "README.md").read_text()

# How mypy writes one type depends on the version of numpy, and on whether its cache was warm.
_SPELLINGS = {
    "floating[_32Bit]": "float32",
    "floating[_64Bit]": "float64",
    "signedinteger[_64Bit]": "int64",
    "(self, self: ": "(self: ",
}


def normalized(message: str) -> str:
    """Return a message of mypy in one spelling."""
    for spelling, name in _SPELLINGS.items():
        message = message.replace(spelling, name)
    return message


@cache
def mypy_report() -> Report:
    """Return the errors of mypy without the plugin by file and line, those of docs included."""
    pages = [*snippet_files().values(), *page_files().values(), *tutorial_files(), mistaken_start()]
    files = [*CASES, *pages, *readme_files(), front_page_file(), own_names_file()]
    files += [ten_mistakes_file()]
    files += sorted((ROOT / "tests/parity/programs").glob("*.py"))
    said = once_a_session("plain", lambda: mypy(HERE / "mypy.ini", CACHES / "plain", files))
    return errors(said)


def plain_library_cache(folder: Path) -> None:
    """Make a cache without the plugin in which the library is, for a run that is not shared."""
    mypy_report()
    shutil.copytree(CACHES / "plain", folder / "cache")


@cache
def snippet_files() -> dict[int, Path]:
    """Write the documented snippets to files and return those by number."""
    return {one.number: written(f"error_class_{one.number}", one.program) for one in SECTIONS}


@cache
def page_files() -> dict[str, Path]:
    """Write the programs of the pages to files and return those by page."""
    return {page: written(f"page_{page}", program(page)) for page in PAGES}


@cache
def catalogue_files() -> dict[str, Path]:
    """Write the programs of the plugin's codes to files and return those by code."""
    return {
        name: written(f"catalogue_{name.replace('-', '_')}", code.program)
        for name, code in CODES.items()
    }


@cache
def mistaken_start() -> Path:
    """Write the program of the first page, with the mistake that it makes, to a file."""
    (diff,) = blocks("start", "diff")
    return written("page_start_mistaken", changed(program("start"), diff))


@cache
def front_page_file() -> Path:
    """Write the program of the front page, with the types that it says its values have."""
    page = (DOCS / "index.md").read_text().replace("floating[_32Bit]", "np.float32")
    rows = re.findall(r"^\| `(.+?)` \| `(Tensor.+?)` \|$", page, re.MULTILINE)
    assert len(rows) == 5
    names = "from typing import Literal, assert_type\n\nfrom tapetensor import OwnedTape, Tensor\n"
    claims = [f"assert_type({value}, {said})\n" for value, said in rows]
    return written("page_index", "".join([*blocks("index", "python"), names, *claims]))


@cache
def ten_mistakes_file() -> Path:
    """Write the functions of the page on ten mistakes to a file."""
    (program,) = blocks("ten_mistakes", "python")
    return written("ten_mistakes", program)


@cache
def tutorial_files() -> list[Path]:
    """Write the programs of the tutorial to files: the right one, then one for each mistake."""
    programs = [TUTORIAL.program, *(mistake.program for mistake in TUTORIAL.mistakes)]
    return [written(f"tutorial_{number}", code) for number, code in enumerate(programs)]


@cache
def readme_files() -> list[Path]:
    """Write the story of the README to files: as it is, and with the mistake that it tells of."""
    (story,) = fenced("python", README)
    mistaken = story.replace("nn.Linear[L[512], L[10]]", "nn.Linear[L[511], L[10]]")
    assert mistaken != story
    return [written("story", story), written("story_mistaken", mistaken)]


@cache
def pyright_report() -> Report:
    """Return the errors of pyright by file and line, with `# type: ignore` switched off."""
    if importlib.util.find_spec("pyright") is None:
        pytest.skip('the second opinion needs pyright: pip install "pyright[nodejs]"')
    said = once_a_session("pyright", _pyright, session=what_checkers_read())
    report: Report = defaultdict(lambda: defaultdict(list))
    for one in json.loads(said)["generalDiagnostics"]:
        if one["severity"] == "error":
            line = one["range"]["start"]["line"] + 1
            report[Path(one["file"])][line].append(one["message"])
    return report


def _pyright() -> str:
    command = [sys.executable, "-m", "pyright", "--outputjson", f"--project={HERE}"]
    # Packages are those of this interpreter, not of the first one on the path.
    command += ["--pythonpath", sys.executable]
    # With more room for what is young, node collects less garbage.
    environment = {**os.environ, "NODE_OPTIONS": "--max-semi-space-size=256"}
    finished = subprocess.run(
        command, env=environment, capture_output=True, text=True, check=False, cwd=ROOT
    )
    assert finished.stdout, finished.stderr
    return finished.stdout
