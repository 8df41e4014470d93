"""What mypy says with the plugin, in one run over the cases and programs of all tests."""

from __future__ import annotations

import re
import shutil
from functools import cache
from pathlib import Path

from benchmarks.static.mutants import PROGRAMS, Mutant, defects
from tests.plugin.page_snippets import SNIPPETS
from tests.plugin.shape_programs import EXPRESSIONS
from tests.plugin.table_rows import refused_calls, right_calls
from tests.typing.checkers import (
    FAIL,
    PASS,
    REVEAL,
    catalogue_files,
    ten_mistakes_file,
    tutorial_files,
)
from tests.typing.own_names import own_names_file
from tests.typing.runs import CACHES, ROOT, Report, cache_of, errors, mypy, once_a_session, written

HERE = Path(__file__).parent
CONFIGURATION = HERE / "mypy.ini"
MODULES, SHAPES = (
    sorted(path for path in (HERE / folder).glob("*.py") if path.stem != "__init__")
    for folder in ("modules", "shapes")
)
PARITY = sorted(path for path in (ROOT / "tests/parity/programs").glob("*.py"))
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
_IGNORE = re.compile(r"  # type: ignore.*")
# Programs that between them have every kind of mistake listed below.
SLICE = ("gradient_accumulation", "mlp_classifier", "self_attention", "concat_features")
REJECTED = (
    "two dims swapped",
    "wrong layer size",
    "wrong size of data",
    "transpose missing",
    "transpose doubled",
    "wrong axis",
    "wrong concat axis",
    "arguments swapped",
    "float64 into float32",
    "trace twice",
    "target with a tape",
)


@cache
def plugin_report() -> Report:
    """Return the errors by file and line, those of docs included."""
    return errors(said())


@cache
def said() -> str:
    """Return what mypy prints."""
    return once_a_session("plugin", _run)


def _run() -> str:
    files = [*MODULES, *SHAPES, *REVEAL, *PASS, *EXAMPLES]
    files += [*bare_files().values(), *snippet_files().values(), expressions_file()]
    files += [*tutorial_files(), *catalogue_files().values(), own_names_file(), ten_mistakes_file()]
    files += [*PROGRAMS, *PARITY, *mutant_files().values(), refused_file()]
    return mypy(CONFIGURATION, cache_of("plugin"), files)


def library_cache(folder: Path) -> Path:
    """Make a cache in which the library is, for a run that is not shared, and return it."""
    said()
    return shutil.copytree(CACHES / "plugin", folder / "cache")


@cache
def bare_files() -> dict[Path, Path]:
    """Write the bad lines of the static tests without their marks, and return the files."""
    return {
        path: written(f"bare_{path.stem}", _IGNORE.sub("", path.read_text()), ".pyi")
        for path in FAIL
    }


@cache
def mutant_files() -> dict[str, Path]:
    """Write a slice of the mutation benchmark, and return the files by what is wrong in them."""
    return {one.operator: written(f"mutant_{n}", one.text) for n, one in enumerate(mutants())}


@cache
def mutants() -> list[Mutant]:
    """Return one wrong program of each kind that is to be rejected."""
    paths = [path for path in PROGRAMS if path.stem in SLICE]
    found = {one.operator: one for one in defects(paths, most=1)}
    return [found[operator] for operator in REJECTED if operator in found]


@cache
def snippet_files() -> dict[str, Path]:
    """Write the snippets of the plugin's pages to files and return those by name."""
    return {name: written(name, snippet.program) for name, snippet in SNIPPETS.items()}


@cache
def refused_file() -> Path:
    """Write what the table of ops refuses for its shapes as a program, and return the file."""
    return written("refused_rows", refused_calls())


@cache
def expressions_file() -> Path:
    """Write a program that reveals the types of expressions, from its third line on."""
    lines = [f"reveal_type({expression})" for expression in (*EXPRESSIONS, *right_calls())]
    head = ["import numpy as np", "import tapetensor as tt"]
    return written("expressions", "\n".join([*head, *lines, ""]))
