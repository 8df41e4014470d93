"""mypy under the plugin agrees with the run time on random expressions, and the table of ops."""

from __future__ import annotations

import re
import warnings
from collections import defaultdict
from typing import Any

import numpy as np

import tapetensor as tt
from tests.plugin.checked import expressions_file, said
from tests.plugin.shape_programs import EXPRESSIONS
from tests.plugin.table_rows import right_calls

_LINE = re.compile(r".+/(?P<file>\w+)\.py:(?P<line>\d+): (?P<kind>error|note): (?P<message>.*)")
_TENSOR = re.compile(r"Tensor\[tuple\[(?P<dims>.*?)\], [\w.]+\.(?P<tape>\w+), ")


def run_time(expression: str) -> list[tuple[str, str]] | None:
    """Return the shapes and the tape states as mypy writes them; None if it is refused."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            value: Any = eval(expression, {"tt": tt, "np": np})
        except (tt.TapeTensorError, TypeError):
            return None
    found = []
    values = value if isinstance(value, tuple | list) else [value]
    for one in [one for one in values if isinstance(one, tt.Tensor)]:
        dims = ", ".join(f"Literal[{dim}]" for dim in one.shape)
        found.append((dims or "()", "OwnedTape" if one.owns_tape else "NoneTape"))
    return found


def static() -> dict[int, list[tuple[str, str]]]:
    """Return what mypy says of each expression."""
    found = defaultdict(list)
    for line in said().splitlines():
        match = _LINE.fullmatch(line)
        if match and match["file"] == expressions_file().stem:
            found[int(match["line"]) - 3].append((match["kind"], match["message"]))
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
            agreed = not errors and _revealed(answers[number]) == found
            # Shapes of several ranks that meet by accident are an error of the plugin's own.
            agreed |= len(errors) == 1 and ", each of " in errors[0]
        if not agreed:
            wrong.append((expression, found, answers[number]))

    assert wrong == []


def test_calls_of_the_table_of_ops_have_the_static_shapes_and_tapes_of_the_run_time() -> None:
    answers = static()
    wrong, known = [], 0
    for number, expression in enumerate(right_calls(), len(EXPRESSIONS)):
        found, revealed = run_time(expression), _revealed(answers[number])
        if found is None:
            # The table has other values there.
            continue
        known += 1
        errors = [message for kind, message in answers[number] if kind == "error"]
        # Plain typing gives a tensor without axes no pairs of widths.
        if revealed != found or any("Invalid self argument" not in one for one in errors):
            wrong.append((expression, found, answers[number]))

    assert wrong == []
    assert known > 500


def _revealed(answers: list[tuple[str, str]]) -> list[tuple[str, str]]:
    return [
        match
        for kind, message in answers
        if kind == "note"
        for match in _TENSOR.findall(message.replace("?", ""))
    ]
