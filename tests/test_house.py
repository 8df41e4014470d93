"""The house is what its plans say: one picture in the contracts, CONTRIBUTING and internals."""

from __future__ import annotations

import ast
import re
import tomllib
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]
LIBRARY = ROOT / "tapetensor"
# Rooms may name each other's types here: the methods of one class live in several files.
MIXED = "tapetensor.tensor."
# The compiler's own circles, which go with its next design.
KNOWN = "tapetensor.compiler."

Floors = list[set[str]]


def floors_of_the_contracts() -> Floors:
    """The floors that import-linter enforces, from the top down."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
    layers = settings["contracts"][0]["layers"]
    return [set(re.findall(r"tapetensor\.(\w+)", layer)) for layer in layers]


def floors_of_internals() -> tuple[Floors, set[str]]:
    """The floors of the page, from the top down, and what stands aside."""
    text = (ROOT / "docs" / "internals.md").read_text()
    rows = re.findall(r"^\| (\d+|aside) \| (.+?) \|", text, re.MULTILINE)
    named = [(floor, set(re.findall(r"`(\w+)`", rooms))) for floor, rooms in rows]
    aside = set[str]().union(*[rooms for floor, rooms in named if floor == "aside"])
    return [rooms for floor, rooms in named if floor != "aside"], aside


def floors_of_contributing() -> tuple[Floors, set[str]]:
    """The floors of the drawing, from the top down, and what stands aside."""
    text = (ROOT / "CONTRIBUTING.md").read_text()
    drawing = text[text.index("```text\nfloor") : text.index("A room imports only")]
    floors: Floors = []
    for line in drawing.splitlines()[1:-2]:
        if line.startswith(("floor", "aside")):
            floors.append(set())
        floors[-1].update(re.findall(r"\w+", line[10:38]))
    return floors[:-1], floors[-1]


@cache
def imports() -> dict[str, set[str]]:
    """What each file of the library imports of it, under TYPE_CHECKING and inside functions too."""
    files = {
        ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path
        for path in LIBRARY.rglob("*.py")
    }
    found: dict[str, set[str]] = {}
    for name, path in files.items():
        found[name] = set()
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and node.module:
                full = [f"{node.module}.{alias.name}" for alias in node.names]
                found[name].update([one if one in files else node.module for one in full])
            elif isinstance(node, ast.Import):
                found[name].update([alias.name for alias in node.names])
        found[name] &= files.keys() - {name}
    return found


def test_the_plans_of_the_house_are_one_picture() -> None:
    floors, aside = floors_of_internals()

    assert (floors, aside) == floors_of_contributing()
    contracts = floors_of_the_contracts()
    assert [rooms - aside for rooms in contracts if rooms - aside] == floors


def test_every_room_is_on_the_plan_and_nothing_else() -> None:
    floors, aside = floors_of_internals()
    entries = {path.stem for path in LIBRARY.iterdir() if path.suffix == ".py"}
    entries |= {path.parent.name for path in LIBRARY.glob("*/__init__.py")}

    # `doctor` is the second name of a command.
    assert aside.union(*floors) == entries - {"__init__", "__main__", "doctor"}


def test_at_most_six_modules_stand_loose_at_the_top() -> None:
    loose = [path.stem for path in LIBRARY.glob("*.py") if not path.stem.startswith("__")]

    assert len(loose) <= 6, loose


def test_no_two_files_import_each_other() -> None:
    edges = imports()
    pairs = {
        (one, other)
        for one, others in edges.items()
        for other in others
        if one < other and one in edges[other]
    }
    excused = {pair for pair in pairs if all(name.startswith((MIXED, KNOWN)) for name in pair)}

    assert len(edges) > 250
    assert pairs - excused == set()


def test_a_type_checker_reads_what_users_name_of_the_compiler_and_not_what_captures() -> None:
    read, pending = set[str](), ["tapetensor"]
    while pending:
        name = pending.pop()
        if name not in read:
            read.add(name)
            pending += imports_at_the_top(name)

    assert "tapetensor.compiler.emit.plan" in read
    assert not read & {
        "tapetensor.compiler.compiled",
        "tapetensor.compiler.capture",
        "tapetensor.compiler.trace.tracer",
        "tapetensor.native",
    }


def imports_at_the_top(name: str) -> set[str]:
    """What a file imports of the library when it is imported, or for types alone."""
    base = ROOT.joinpath(*name.split("."))
    path = base / "__init__.py" if base.is_dir() else base.with_suffix(".py")
    body = [*ast.parse(path.read_text()).body]
    for statement in body:
        body += statement.body if isinstance(statement, ast.If) else []
    modules = {one.module for one in body if isinstance(one, ast.ImportFrom) and one.module}
    named = {
        f"{one.module}.{alias.name}"
        for one in body
        if isinstance(one, ast.ImportFrom)
        for alias in one.names
    }
    found = (modules | named) & imports().keys()
    return found | {one.rpartition(".")[0] for one in found} - {""}
