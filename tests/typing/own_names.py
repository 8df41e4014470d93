"""A program of wrong calls of the ops that share a set of overloads, for the runs of mypy."""

from __future__ import annotations

from pathlib import Path

from tests.typing.runs import written

# Each op, and the set that its overloads are from.
METHODS = {
    "sum": "reduction",
    "max": "reduction",
    "min": "reduction",
    "mean": "average",
    "logsumexp": "average",
}
OPERATORS = {"+": "add", "-": "subtract", "*": "multiply", "/": "divide"}
HEAD = """\
from typing import Literal

from tapetensor import Tensor1D, Tensor2D

def called(x: Tensor2D[Literal[2], Literal[3]], y: Tensor1D[Literal[7]]) -> None:"""


def own_names_file() -> Path:
    """Return the program: a bad axis of each method, a bad kind, and bad operands."""
    lines = [f"x.{op}(axis=7)" for op in METHODS]
    lines += [f'x.{op}(keepdims="yes")' for op in METHODS]
    lines += [f"x {op} y" for op in OPERATORS]
    return written("own_names", "\n".join([HEAD, *[f"    {line}" for line in lines], ""]))
