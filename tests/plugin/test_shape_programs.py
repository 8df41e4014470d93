"""mypy under the plugin agrees with the run time on random expressions, the wrong ones included."""

from __future__ import annotations

import os
import re
import warnings
from collections import defaultdict
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
from mypy import api

import tapetensor as tt
from tapetensor.mypy_plugin.guard import RAISE
from tests.plugin.shape_programs import Writer

HERE = Path(__file__).parent
CACHE = HERE.parents[1] / ".mypy_cache" / "plugin_shape_programs"
PROGRAMS = 400

_LINE = re.compile(r".+?:(?P<line>\d+): (?P<kind>error|note): (?P<message>.*)")
_TENSOR = re.compile(r".*?Tensor\[tuple\[(?P<dims>.*?)\], [\w.]+\.(?P<tape>\w+), ")


def run_time(expression: str) -> tuple[str, str] | None:
    """Return the shape and the tape state as mypy writes them; None if it is refused."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            value: Any = eval(expression, {"tt": tt})
        except tt.TapeTensorError:
            return None
    dims = ", ".join(f"Literal[{dim}]" for dim in value.shape)
    return dims or "()", "OwnedTape" if value.owns_tape else "NoneTape"


def static(expressions: list[str], folder: Path) -> dict[int, list[tuple[str, str]]]:
    """Return what mypy says of each expression."""
    file = folder / "programs.py"
    lines = [f"reveal_type({expression})" for expression in expressions]
    file.write_text("\n".join(["import tapetensor as tt", *lines, ""]))
    worker = os.environ.get("PYTEST_XDIST_WORKER", "main")
    options = [f"--config-file={HERE / 'shapes_mypy.ini'}", f"--cache-dir={CACHE}_{worker}"]
    with patch.dict(os.environ, {RAISE: "1"}):
        output, complaint, status = api.run([*options, "--no-pretty", str(file)])
    assert status in (0, 1), output + complaint
    said = defaultdict(list)
    for line in output.splitlines():
        if match := _LINE.fullmatch(line):
            said[int(match["line"]) - 2].append((match["kind"], match["message"]))
    return said


def test_random_expressions_have_the_static_shape_and_tape_of_the_run_time(tmp_path: Path) -> None:
    seed = 20260
    writer = Writer(seed)
    expressions = [writer.expression() for _ in range(PROGRAMS)]
    said = static(expressions, tmp_path)
    wrong = []
    for number, expression in enumerate(expressions):
        found = run_time(expression)
        errors = [message for kind, message in said[number] if kind == "error"]
        if found is None:
            # One sentence and no more.
            agreed = len(errors) == 1
        else:
            notes = [message for kind, message in said[number] if kind == "note"]
            match = _TENSOR.match(notes[0].replace("?", "")) if notes else None
            agreed = not errors and match is not None and match.groups() == found
        if not agreed:
            wrong.append((expression, found, said[number]))

    assert wrong == []
