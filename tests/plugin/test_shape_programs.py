"""mypy under the plugin agrees with the run time on random expressions, the wrong ones included."""

from __future__ import annotations

import re
import warnings
from collections import defaultdict
from typing import Any

import numpy as np

import tapetensor as tt
from tests.plugin.checked import expressions_file, said
from tests.plugin.shape_programs import EXPRESSIONS

_LINE = re.compile(r".+/(?P<file>\w+)\.py:(?P<line>\d+): (?P<kind>error|note): (?P<message>.*)")
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


def static() -> dict[int, list[tuple[str, str]]]:
    """Return what mypy says of each expression."""
    found = defaultdict(list)
    for line in said().splitlines():
        match = _LINE.fullmatch(line)
        if match and match["file"] == expressions_file().stem:
            found[int(match["line"]) - 2].append((match["kind"], match["message"]))
    return found


def test_random_expressions_have_the_static_shape_and_tape_of_the_run_time() -> None:
    answers = static()
    wrong = []
    for number, expression in enumerate(EXPRESSIONS):
        found = run_time(expression)
        errors = [message for kind, message in answers[number] if kind == "error"]
        if found is None:
            # One sentence and no more.
            agreed = len(errors) == 1
        else:
            notes = [message for kind, message in answers[number] if kind == "note"]
            match = _TENSOR.match(notes[0].replace("?", "")) if notes else None
            agreed = not errors and match is not None and match.groups() == found
            # Shapes of several ranks that meet by accident are an error of the plugin's own.
            agreed |= len(errors) == 1 and ", each of " in errors[0]
        if not agreed:
            wrong.append((expression, found, answers[number]))

    assert wrong == []
