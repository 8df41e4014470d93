"""A program of wrong calls of the ops that share a set of overloads, for the runs of mypy."""

from __future__ import annotations

import ast
import re
from pathlib import Path

from tests.typing.runs import ROOT, written


def _methods() -> dict[str, str]:
    """Return each reduction with a shared set of overloads, and the set."""
    sharing = {}
    for room in sorted((ROOT / "tapetensor" / "tensor").glob("*.py")):
        text = room.read_text()
        for node in ast.walk(ast.parse(text if "same_signature(" in text else "")):
            if isinstance(node, ast.FunctionDef):
                for decorator in map(ast.unparse, node.decorator_list):
                    if found := re.fullmatch(r"same_signature\((reduction|average)\)", decorator):
                        sharing[node.name] = found[1]
    return sharing


METHODS = _methods()
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
