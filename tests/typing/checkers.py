"""One run of mypy and one of pyright over all cases, for every test that asks.

The snippets of docs/errors.md and the programs of other pages are part of the run of mypy.
"""

from __future__ import annotations

import importlib.util
import json
import os
import re
import subprocess
import sys
import zlib
from collections import defaultdict
from functools import cache
from pathlib import Path

import pytest
from mypy import api

from tests.typing.catalogue import CODES
from tests.typing.error_page import SECTIONS
from tests.typing.pages import PAGES, blocks, changed, program
from tests.typing.tutorial import TUTORIAL

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
REVEAL, PASS, FAIL = (
    sorted(path for path in (HERE / folder).glob(pattern) if path.stem != "__init__")
    for folder, pattern in (("reveal", "*.py"), ("pass", "*.py"), ("fail", "*.pyi"))
)
CASES = [*REVEAL, *PASS, *FAIL]

# A cache of this process alone, since mypy's takes one writer at a time.
CACHE = ROOT / ".mypy_cache" / f"typing_tests_{os.environ.get('PYTEST_XDIST_WORKER', 'main')}"
# And of the plugin as it is, since mypy does not notice a change of one that is a package.
_PLUGIN = b"".join(
    [path.read_bytes() for path in sorted((ROOT / "tapetensor" / "mypy_plugin").rglob("*.py"))]
)
PLUGIN_CACHE = CACHE.with_name(f"{CACHE.name}_plugin_{zlib.crc32(_PLUGIN):08x}")

Report = dict[Path, dict[int, list[str]]]
_LINE = re.compile(r"(?P<path>.+?):(?P<line>\d+): error: (?P<message>.*)")
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
    """Return the errors of the project's own mypy by file and line, those of docs included."""
    pages = [*snippet_files().values(), *page_files().values(), *tutorial_files()]
    pages.append(mistaken_start())
    return report(ROOT / "mypy.ini", CACHE, [*CASES, *pages])


@cache
def plugin_report() -> Report:
    """Return the errors under the plugin in the programs of the tutorial and the catalogue."""
    files = [*tutorial_files(), *catalogue_files().values()]
    return report(HERE / "pages_mypy.ini", PLUGIN_CACHE, files)


def report(configuration: Path, cache_dir: Path, files: list[Path]) -> Report:
    """Return the errors of mypy by file and line."""
    options = [f"--config-file={configuration}", f"--cache-dir={cache_dir}", "--no-pretty"]
    output, complaint, _ = api.run([*options, *map(str, files)])
    assert not complaint, complaint
    report: Report = defaultdict(lambda: defaultdict(list))
    for line in output.splitlines():
        if found := _LINE.fullmatch(line):
            path = Path(os.path.abspath(found["path"]))
            report[path][int(found["line"])].append(found["message"])
    return report


@cache
def snippet_files() -> dict[int, Path]:
    """Write the documented snippets to files and return those by number."""
    # Always at one place: mypy's cache remembers where it found an error.
    folder = CACHE / "error_classes"
    folder.mkdir(parents=True, exist_ok=True)
    files = {section.number: folder / f"error_class_{section.number}.py" for section in SECTIONS}
    for section in SECTIONS:
        files[section.number].write_text(section.program)
    return files


@cache
def page_files() -> dict[str, Path]:
    """Write the programs of the pages to files and return those by page."""
    folder = CACHE / "pages"
    folder.mkdir(parents=True, exist_ok=True)
    files = {page: folder / f"page_{page}.py" for page in PAGES}
    for page, file in files.items():
        file.write_text(program(page))
    return files


@cache
def catalogue_files() -> dict[str, Path]:
    """Write the programs of the plugin's codes to files and return those by code."""
    folder = CACHE / "catalogue"
    folder.mkdir(parents=True, exist_ok=True)
    files = {name: folder / f"catalogue_{name.replace('-', '_')}.py" for name in CODES}
    for name, file in files.items():
        file.write_text(CODES[name].program)
    return files


@cache
def mistaken_start() -> Path:
    """Write the program of the first page, with the mistake that it makes, to a file."""
    file = page_files()["start"].with_name("page_start_mistaken.py")
    (diff,) = blocks("start", "diff")
    file.write_text(changed(program("start"), diff))
    return file


@cache
def tutorial_files() -> list[Path]:
    """Write the programs of the tutorial to files: the right one, then one for each mistake."""
    folder = CACHE / "tutorial"
    folder.mkdir(parents=True, exist_ok=True)
    programs = [TUTORIAL.program, *(mistake.program for mistake in TUTORIAL.mistakes)]
    files = [folder / f"tutorial_{number}.py" for number in range(len(programs))]
    for file, code in zip(files, programs, strict=True):
        file.write_text(code)
    return files


@cache
def pyright_report() -> Report:
    """Return the errors of pyright by file and line, with `# type: ignore` switched off."""
    if importlib.util.find_spec("pyright") is None:
        pytest.skip('the second opinion needs pyright: pip install "pyright[nodejs]"')
    command = [sys.executable, "-m", "pyright", "--outputjson", f"--project={HERE}"]
    # Packages are those of this interpreter, not of the first one on the path.
    command += ["--pythonpath", sys.executable]
    finished = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    assert finished.stdout, finished.stderr
    report: Report = defaultdict(lambda: defaultdict(list))
    for one in json.loads(finished.stdout)["generalDiagnostics"]:
        if one["severity"] == "error":
            line = one["range"]["start"]["line"] + 1
            report[Path(one["file"])][line].append(one["message"])
    return report
