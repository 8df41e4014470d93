"""The six steps of CONTRIBUTING are complete: what they name exists, every op took them."""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from types import FunctionType

import tapetensor as tt
from tests.ops.samples import OPS

ROOT = Path(__file__).parents[1]
CONTRIBUTING = (ROOT / "CONTRIBUTING.md").read_text()
CHANGELOG = (ROOT / "CHANGELOG.md").read_text()
REVEAL = "\n".join(path.read_text() for path in (ROOT / "tests/typing/reveal").glob("*.py"))
NAMES = sorted({name for op in OPS for name in op.covers})
WRITTEN_OUT = [name for name in NAMES if not name.startswith("__")]
# An operator is written as its symbol where it is used.
SYMBOLS = {
    "__floordiv__": "mi // 2",
    "__rfloordiv__": "2.0 // m",
    "__mod__": "m % v",
    "__rmod__": "2.0 % m",
    "__add__": " + ", "__radd__": " + ", "__sub__": " - ", "__rsub__": " - ",
    "__mul__": " * ", "__rmul__": " * ", "__truediv__": " / ", "__rtruediv__": " / ",
    "__pow__": "**", "__rpow__": "**", "__matmul__": " @ ", "__neg__": "-", "__abs__": "abs(",
    "__eq__": " == ", "__ne__": " != ", "__lt__": " < ", "__le__": " <= ", "__gt__": " > ",
    "__ge__": " >= ", "__and__": " & ", "__or__": " | ", "__xor__": " ^ ", "__invert__": "~",
    "__getitem__": "[0]",
}  # fmt: skip


def definition(name: str) -> FunctionType:
    """Return the public method or function of an op."""
    found = getattr(tt.Tensor, name, None) or getattr(tt, name)
    assert isinstance(found, FunctionType)
    return found


def test_there_are_six_steps() -> None:
    section = CONTRIBUTING.split("## How to add an op")[1].split("\n## ")[0]

    assert re.findall(r"^(\d)\. ", section, flags=re.MULTILINE) == ["1", "2", "3", "4", "5", "6"]


def test_every_file_that_a_step_names_exists() -> None:
    named = re.findall(r"`((?:tapetensor|tests|docs|examples)/[\w./*]+|[A-Z]+\.md)`", CONTRIBUTING)

    assert len(named) >= 6
    assert [name for name in named if not list(ROOT.glob(name.rstrip("/")))] == []


def test_every_op_documents_its_derivative_and_shows_an_example() -> None:
    docstrings = {name: inspect.getdoc(definition(name)) or "" for name in WRITTEN_OUT}
    parts = (">>> ", "Derivative: ", "Shape: ")

    assert [
        name for name, said in docstrings.items() if not all(one in said for one in parts)
    ] == []


def test_every_op_has_a_line_in_the_reveal_tests() -> None:
    assert [name for name in NAMES if SYMBOLS.get(name, f"{name}(") not in REVEAL] == []


def test_every_op_has_a_word_in_the_changelog() -> None:
    assert [name for name in WRITTEN_OUT if f"`{name}`" not in CHANGELOG] == []
