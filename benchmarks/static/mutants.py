"""Wrong programs: made from the valid ones, and run to find those that raise an error of ours."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np

from benchmarks.static.operators import OPERATORS, SILENT
from benchmarks.static.source import Edit, Source
from tapetensor import TapeTensorError

HERE = Path(__file__).parent
MODELS = sorted((HERE.parents[1] / "examples" / "models").glob("*.py"))
PROGRAMS = [
    *sorted(path for path in (HERE / "programs").glob("*.py") if path.stem != "__init__"),
    *MODELS,
]
# The training loops of the models, each pass of which does the same.
_STEPS = re.compile(r"\bfor _ in range\(\d+\)")
# Of one program and operator; more would only count the same mistake more often.
MOST_OF_A_KIND = 4


class Mutant(NamedTuple):
    """A program with one mistake in it.

    Attributes:
        operator: the kind of mistake.
        program: the name of the program.
        edit: the mistake.
        text: the wrong program.
        error: what it raises when it runs.
    """

    operator: str
    program: str
    edit: Edit
    text: str
    error: str


def defects(paths: Sequence[Path] = PROGRAMS, most: int = MOST_OF_A_KIND) -> Iterator[Mutant]:
    """Yield the wrong programs that raise a `TapeTensorError` at run time, or are wrong and run.

    The same ones in every run, spread evenly where there are many of one kind.

    Args:
        paths: the programs.
        most: how many to make of one program and operator.
    """
    for path in paths:
        source = Source(path.stem, program(path))
        seen = {source.text}
        for operator, make in OPERATORS.items():
            found: list[Mutant] = []
            for edit in make(source):
                text = source.changed(edit)
                is_silent = operator in SILENT
                error = None if text in seen else error_of(source.name, text, silent=is_silent)
                seen.add(text)
                if error is not None:
                    found.append(Mutant(operator, source.name, edit, text, error))
            yield from spread(found, most)


def program(path: Path) -> str:
    """Return the text of a program, which trains for two steps where it is a model."""
    text = path.read_text()
    return _STEPS.sub("for _ in range(2)", text) if path in MODELS else text


def spread(mutants: Sequence[Mutant], most: int) -> list[Mutant]:
    """Return at most so many of a sequence, evenly spaced."""
    if len(mutants) <= most:
        return list(mutants)
    return [mutants[index * len(mutants) // most] for index in range(most)]


def error_of(name: str, text: str, *, silent: bool = False) -> str | None:
    """Run a program and return the error of the library that it raises; None for none.

    Other errors are none of ours: a name that is not defined says nothing about tensors.

    Args:
        name: of the program.
        text: the program.
        silent: whether a program that runs is wrong all the same.
    """
    try:
        run(name, text)
    except TapeTensorError as error:
        return f"{type(error).__name__}: {error}"
    except Exception:
        return None
    return "it runs" if silent else None


def run(name: str, text: str) -> None:
    """Run the `main` of a program."""
    module = ModuleType(f"benchmarks.static.programs.{name}_as_run")
    names: dict[str, Any] = vars(module)
    # Modules look up the names of their annotations there.
    sys.modules[module.__name__] = module
    try:
        # A wrong program may divide by zero on its way to the error.
        with np.errstate(all="ignore"):
            exec(compile(text, f"{name}.py", "exec"), names)
            names["main"]()
    finally:
        del sys.modules[module.__name__]
