"""The house is what its plans say: one picture in the contracts, CONTRIBUTING and internals."""

from __future__ import annotations

import ast
import re
import subprocess
import tomllib
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]
LIBRARY = ROOT / "tapetensor"
# Files may name each other's types here: the methods of one class live in several of them.
MIXED = ("tapetensor.tensor.", "tapetensor.compiler.trace.")

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


def imported(node: ast.AST) -> list[str]:
    """What a statement or a call imports, by its full name: a call does by a string."""
    if isinstance(node, ast.ImportFrom) and node.module:
        return [f"{node.module}.{alias.name}" for alias in node.names]
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.Call) and node.args:
        name = getattr(node.func, "attr", getattr(node.func, "id", ""))
        if name in ("import_module", "__import__", "import_extra"):
            parts = [one for one in ast.walk(node.args[0]) if isinstance(one, ast.Constant)]
            return [one.value for one in parts if isinstance(one.value, str)]
    return []


@cache
def parsed(path: Path) -> ast.Module:
    """The code of a file."""
    return ast.parse(path.read_text())


@cache
def imports() -> dict[str, set[str]]:
    """What each file of the library imports of it, under TYPE_CHECKING and inside functions too."""
    files = {
        ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path
        for path in LIBRARY.rglob("*.py")
    }
    found: dict[str, set[str]] = {}
    for name, path in files.items():
        full = [one for node in ast.walk(parsed(path)) for one in imported(node)]
        found[name] = {one if one in files else one.rpartition(".")[0] for one in full}
        found[name] &= files.keys() - {name}
    return found


@cache
def reached(start: str) -> set[str]:
    """The files that a file imports, directly or through others."""
    found: set[str] = set()
    waiting = [start]
    while waiting:
        for name in imports()[waiting.pop()] - found:
            found.add(name)
            waiting.append(name)
    return found


def ring_of(name: str) -> set[str]:
    """The files that a file imports and that import it, both by any way; none without a ring."""
    return {one for one in reached(name) if name in reached(one)}


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
    assert aside.union(*floors) == entries - {"__init__", "__main__"}


def test_files_are_chapters_that_end() -> None:
    sources = {path: path.read_text() for path in LIBRARY.rglob("*.py")}
    long = {str(path): text.count("\n") for path, text in sources.items() if text.count("\n") > 600}
    imports_in = re.compile(r"^ *(?:from [\w.]+ )?import ", re.MULTILINE)

    assert long == {}
    assert len(sources) <= 330
    assert sum(len(imports_in.findall(text)) for text in sources.values()) <= 4500


def test_at_most_six_modules_stand_loose_at_the_top() -> None:
    loose = [path.stem for path in LIBRARY.glob("*.py") if not path.stem.startswith("__")]

    assert len(loose) <= 6, loose


def test_no_ring_of_files_import_each_other() -> None:
    rings = {name: ring_of(name) for name in imports()}
    excused = {name for name in rings if name.startswith(MIXED)}

    assert len(rings) > 200
    assert {name: ring for name, ring in rings.items() if ring and name not in excused} == {}
    assert {one for name in excused for one in rings[name]} <= excused


def test_an_import_by_a_string_is_seen() -> None:
    source = 'import_module("tapetensor.native.eager")\nimportlib.import_module("a.b")'

    assert [one for node in ast.walk(ast.parse(source)) for one in imported(node)] == [
        "tapetensor.native.eager",
        "a.b",
    ]


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
        "tapetensor.compiler.trace.capture",
        "tapetensor.compiler.trace.tracer",
        "tapetensor.native",
    }


def imports_at_the_top(name: str) -> set[str]:
    """What a file imports of the library when it is imported, or for types alone."""
    base = ROOT.joinpath(*name.split("."))
    path = base / "__init__.py" if base.is_dir() else base.with_suffix(".py")
    body = [*parsed(path).body]
    for statement in body:
        # A type checker leaves out what is for the run time alone.
        is_read = "not TYPE_CHECKING" not in ast.unparse(statement)[:40]
        body += statement.body if isinstance(statement, ast.If) and is_read else []
    modules = {one.module for one in body if isinstance(one, ast.ImportFrom) and one.module}
    named = {
        f"{one.module}.{alias.name}"
        for one in body
        if isinstance(one, ast.ImportFrom)
        for alias in one.names
    }
    found = (modules | named) & imports().keys()
    return found | {one.rpartition(".")[0] for one in found} - {""}


def test_the_tests_that_ci_names_are_there() -> None:
    program = (ROOT / ".ci" / "run").read_text()
    named = re.findall(r"(?<![\w/])tests/[\w/{},*.]+", program)

    expanded = subprocess.run(
        ["bash", "-c", f"printf '%s\\n' {' '.join(named)}"],
        cwd=ROOT, capture_output=True, text=True, check=True,
    ).stdout.split()  # fmt: skip

    assert len(expanded) > len(named) > 10
    assert [one for one in expanded if not (ROOT / one).exists()] == []
