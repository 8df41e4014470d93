"""Random programs under the plugin, for as long as one likes: ``python -m tests.plugin.fuzz``.

A program is written line by line, each with many ways to be odd. A line that raises is left out, so
what is left runs, and the shape of each variable is known. Checked with the plugin and without it:

- no crash, and no note of an internal error;
- no false alarm: no line is an error that is none without the plugin, unless its operands meet each
  of a dim with each, which runs;
- what mypy says of a shape is true at run time.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import subprocess
import sys
import tempfile
import time
import warnings
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np

from tapetensor import Tensor
from tapetensor.mypy_plugin.reporting import RAISE
from tests.plugin.shape_programs import Writer

ROOT = Path(__file__).parents[2]
LENGTH = 25

# The project's own, so that the caches of its tests serve here. What they are stricter in than
# `strict = True` alone is switched off in each program, at its end: it keeps its lines.
PLAIN, PLUGIN = ROOT / "tests/typing/mypy.ini", ROOT / "tests/plugin/mypy.ini"
_STRICT_ALONE = """
# mypy: no-warn-unreachable
# mypy: disable-error-code="ignore-without-code, truthy-bool, possibly-undefined"
# mypy: disable-error-code="mutable-override, explicit-override"
"""
_LINE = re.compile(r".*?(?P<file>\w+)\.py:(?P<line>\d+): (?P<kind>error|note): (?P<message>.*)")
_SHAPE = re.compile(
    r'Revealed type is "tapetensor\.tensor\.tensor\.Tensor\[tuple\['
    r"(?P<dims>(?:[^\[\]]|\[(?:[^\[\]]|\[[^\[\]]*\])*\])*)\], "
)
_REST = re.compile(r"\*tuple\[Any, \.\.\.\]")
_LITERAL = re.compile(r"Literal\[(\d+)\]\??")

# What untyped code hands over.
UNTYPED = """\
# mypy: ignore-errors
import tapetensor as tt

def same(x):
    return x

def pair(*values, **more):
    return values, more

class Holder:
    def __init__(self, value):
        self.value = value
"""

HEADER = """\
from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic, TypeAlias, TypeVar, cast
from typing import Literal as L

import numpy as np

import tapetensor as tt
import untyped
from tapetensor import Tensor, Tensor1D, Tensor2D, nn
from tapetensor.typing import Add, D, Ds, M, Mul, N, S, T

Twice: TypeAlias = Tensor1D[Mul[N, L[2]], T]
Loop: TypeAlias = "list[Loop] | Tensor1D[Any]"
Held = TypeVar("Held")
rng = np.random.default_rng(0)


class Own(Tensor[S, T, D]):
    def named(self) -> str:
        return f"{self.shape}"


class Pair(Generic[S, T]):
    def __init__(self, first: Tensor[S], second: Tensor[S, T]) -> None:
        self.first = first
        self.second = second

    def both(self) -> tuple[Tensor[S], Tensor[S, T]]:
        return self.first, self.second


@dataclass
class Box(Generic[Held]):
    value: Held


class Net(nn.Module, Generic[M, N]):
    wide: nn.Linear[M, Mul[M, N]]
    narrow: nn.Linear[Mul[N, M], N]

    def forward(self, x: Tensor[tuple[*Ds, M], T]) -> Tensor[tuple[*Ds, N], T]:
        return self.narrow.forward(self.wide.forward(x).relu())


def kept(x: Tensor[S, T, D]) -> Tensor[S, T, D]:
    return x


def deep(x: Tensor[S, T], times: int) -> Tensor[S, T]:
    return x if times == 0 else deep(x, times - 1)


def first_row(x: Tensor2D[M, N, T]) -> Tensor1D[N, T]:
    return x[0]


def flat(x: Tensor2D[M, N, T]) -> Tensor1D[Mul[N, M], T]:
    return x.flatten()


def doubled(x: Tensor1D[N, T]) -> Twice[N, T]:
    return tt.concat((x, x.with_empty_tape()))


def halved(x: Twice[N, T]) -> Tensor2D[N, L[2], T]:
    return x.reshape((-1, 2))


def chained(x: Tensor1D[M], y: Tensor1D[N]) -> Tensor1D[Add[N, M]]:
    return tt.concat((x, y))


def outer(x: Tensor1D[M, T], y: Tensor1D[N]) -> Tensor2D[M, N, T]:
    return x.expand_dims(1) * y


def turned(x: Tensor2D[M, N, T]) -> Tensor2D[N, M, T]:
    m, n = x.shape
    return x.transpose().reshape((n * m,)).reshape((n, m))


def applied(function: Callable[[Tensor[S]], Tensor[S]], x: Tensor[S]) -> Tensor[S]:
    return function(x)


def unannotated(x, y=1, *rest):
    return x


def any_at_all(x: Any) -> Any:
    return x.exp()

"""

# In which x and y stand for any variable; of those that hold float32, f stands for any, v and w for
# vectors, m for a matrix: through `Any`, a function might be given what its signature does not say.
_WRAPPED = (
    "kept({x})",
    "deep({f}, 3)",
    "first_row({m})",
    "flat({m})",
    "doubled({v})",
    "halved({v})",
    "halved(flat({m}))",
    "flat(halved(doubled({v})))",
    "chained({v}, {w})",
    "outer({v}, {w})",
    "turned({m})",
    "applied(kept, {f})",
    "applied(lambda given: given * 2.0, {f})",
    "Pair({f}, {f}).both()[1]",
    "Pair(kept({f}), {f}).first",
    "Box({x}).value",
    "{x} if {x}.ndim else {x}",
    "[{x}, {x}][0]",
    "{{'a': {x}}}['a']",
    "({x}, {y})[1]",
    "(lambda given: given)({x})",
    "untyped.same({x})",
    "untyped.pair({x}, {y})[0][1]",
    "untyped.Holder({x}).value",
    "unannotated({x})",
    "any_at_all({x})",
    "cast(Any, {x})",
    "next(iter([{x}]))",
    "next(map(doubled, [{v}]))",
    "[*map(flat, [{m}])][0]",
    "partial(kept)({x})",
    "partial(doubled, {v})()",
    "tt.zeros({x}.shape) + {x}",
    "nn.Linear(3, 4, rng=rng).forward({x})",
    "nn.Sequential(nn.Linear(3, 2, rng=rng), nn.ReLU()).forward({x})",
    "tt.build(Net[L[3], L[2]], rng=rng).forward({x})",
    "{x} + {y}",
    "{x} @ {y}",
    "{x} == {y}",
    "{x}.trace() * {y}",
    "{x}.trace() ** {y}",
    "tt.maximum({x}.trace(), {y})",
    "tt.where({x} > 0.0, {y}, 0.0)",
    "{x}[{y} > 0.0]",
    "{x}.take(({y} * 0.0).astype(np.int64), axis=0)",
    "{x}.transpose() @ {x}",
)

# How a variable is declared.
_DECLARED = (
    "{name} = {value}",
    "{name} = {value}",
    "{name}: Any = {value}",
    "{name}: Tensor[Any, Any, Any] = {value}",
    "{name}: Tensor[tuple[Any, ...], Any, Any] = {value}",
    "({name} := {value})",
    "{name}, _ = {value}, 1",
    "for {name} in ({value},): pass",
)


class Program:
    """A program, and the shapes of its variables.

    Attributes:
        text: the source code.
        shapes: by line of a `reveal_type`, the shape at run time.
    """

    def __init__(self, seed: int, length: int) -> None:
        self._random = random.Random(seed)
        self._expressions = Writer(seed)
        self._lines = [*HEADER.splitlines(), "", "", "def main() -> None:"]
        self._tensors: dict[str, Tensor[Any, Any, Any]] = {}
        self.shapes: dict[int, tuple[int, ...]] = {}
        self._names = _run_header()
        for index in range(length):
            self._add(f"x{index}")
        self.text = "\n".join([*self._lines, "", "", "main()", ""])

    def _add(self, name: str) -> None:
        """Write one variable and what is known of it."""
        line = self._random.choice(_DECLARED).format(name=name, value=self._value())
        if not self._runs(line):
            return
        made: Any = self._names[name]
        self._lines.append(f"    {line}")
        if isinstance(made, Tensor):
            self._lines.append(f"    reveal_type({name})")
            self.shapes[len(self._lines)] = made.shape
            if not made.owns_tape:
                self._tensors[name] = made

    def _value(self) -> str:
        if not self._tensors or self._random.random() < 0.25:
            shape = tuple(self._random.choice((1, 2, 3, 3, 4)) for _ in range(self._rank()))
            return f"tt.ones({shape!r})"
        if self._random.random() < 0.2:
            return self._expressions.expression()
        names = {letter: self._variable(self._tensors) for letter in "xy"}
        floating = {name: one for name, one in self._tensors.items() if one.dtype == np.float32}
        for letter, rank in {"f": None, "v": 1, "w": 1, "m": 2}.items():
            names[letter] = self._variable(floating, rank)
        return self._random.choice(_WRAPPED).format(**names)

    def _variable(
        self, tensors: Mapping[str, Tensor[Any, Any, Any]], rank: int | None = None
    ) -> str:
        """Return a variable of a rank, of any for None, or a new tensor if there is none."""
        found = [name for name, one in tensors.items() if rank in (None, len(one.shape))]
        return self._random.choice(found) if found else f"tt.ones({(2, 3)[:rank]!r})"

    def _rank(self) -> int:
        return self._random.choice((0, 1, 1, 2, 2, 2, 3))

    def _runs(self, line: str) -> bool:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            try:
                exec(line, self._names)
            except Exception:
                return False
        return True


def _run_header() -> dict[str, Any]:
    module = ModuleType("untyped")
    exec(UNTYPED, vars(module))
    header = ModuleType("header")
    before, sys.modules["untyped"] = sys.modules.get("untyped"), module
    sys.modules["header"] = header
    try:
        exec(HEADER, vars(header))
    finally:
        del sys.modules["untyped"]
        if before is not None:
            sys.modules["untyped"] = before
    return vars(header)


Messages = Mapping[str, Mapping[int, list[tuple[str, str]]]]


class Run(NamedTuple):
    """What one run of mypy says.

    Attributes:
        messages: by file and line, kind and text.
        crashed: what it printed, if it did not get to the end.
    """

    messages: Messages
    crashed: str


def check(texts: Mapping[str, str], folder: Path, configuration: Path) -> Run:
    """Return what mypy says of programs.

    Args:
        texts: by name.
        folder: where they and the cache go.
        configuration: of mypy, with the plugin or without it.
    """
    folder.mkdir(parents=True, exist_ok=True)
    files = []
    for name, text in [("untyped", UNTYPED), *texts.items()]:
        (folder / f"{name}.py").write_text(f"{text}{_STRICT_ALONE}")
        files.append(str(folder / f"{name}.py"))
    options = [f"--config-file={configuration}", f"--cache-dir={folder / 'cache'}", "--no-pretty"]
    options += ["--hide-error-context", "--show-traceback"]
    environment = {**os.environ, RAISE: "1", "MYPYPATH": f"{folder}{os.pathsep}{ROOT}"}
    finished = subprocess.run(
        [sys.executable, "-m", "mypy", *options, *files],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    output = finished.stdout
    messages: dict[str, dict[int, list[tuple[str, str]]]] = defaultdict(lambda: defaultdict(list))
    for line in output.splitlines():
        if found := _LINE.fullmatch(line):
            said = messages[found["file"]][int(found["line"])]
            said.append((found["kind"], found["message"]))
    crashed = "" if finished.returncode in (0, 1) else finished.stderr + output
    if "internal error" in output.lower():
        crashed = output
    return Run(messages, crashed)


def complaints(program: Program, name: str, plain: Run, plugin: Run) -> list[str]:
    """Return what is wrong with the answers of the plugin for a program that runs."""
    found = []
    lines = program.text.splitlines()
    refused = {
        number
        for number, said in plain.messages[name].items()
        if any(kind == "error" for kind, _ in said)
    }
    for number, said in plugin.messages[name].items():
        errors = [text for kind, text in said if kind == "error" and ", each of " not in text]
        before = [message for kind, message in plain.messages[name][number] if kind == "error"]
        if errors and not before:
            found.append(f"false alarm: {lines[number - 1].strip()}: {errors[0]}")
        for kind, message in said:
            dims = _SHAPE.match(message) if kind == "note" else None
            if (
                dims
                and number in program.shapes
                # Of the result of what it refuses anyway mypy claims nothing.
                and number - 1 not in refused
                and not _agree(dims["dims"], program.shapes[number])
            ):
                found.append(
                    f"not true: {lines[number - 2].strip()}: {message}, at run time "
                    f"{program.shapes[number]}"
                )
    return found


def _agree(static: str, shape: tuple[int, ...]) -> bool:
    """Tell whether a shape may be what mypy says: ``Literal[3], Any``, and ``()`` for none."""
    if static == "Any, ...":
        return True
    dims = [] if static == "()" else _REST.sub("*", static).split(", ")
    if "*" in dims:
        place = dims.index("*")
        dims[place : place + 1] = ["Any"] * (len(shape) - len(dims) + 1)
    if len(dims) != len(shape):
        return False
    pairs = zip(map(_LITERAL.fullmatch, dims), shape, strict=True)
    return all(literal is None or int(literal[1]) == size for literal, size in pairs)


def batch(seed: int, size: int, folder: Path) -> list[str]:
    """Return what is wrong in one batch of programs."""
    programs = {f"program_{seed + one}": Program(seed + one, LENGTH) for one in range(size)}
    texts = {name: program.text for name, program in programs.items()}
    plain = check(texts, folder / "plain", PLAIN)
    plugin = check(texts, folder / "plugin", PLUGIN)
    found = [f"mypy stopped: {plugin.crashed[-3000:]}"] if plugin.crashed else []
    for name, program in programs.items():
        found += [f"{name}: {one}" for one in complaints(program, name, plain, plugin)]
    return found


def main() -> None:
    """Fuzz, and say what was found; the exit status is 1 if it is anything."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--seed", type=int, help="of the first program; random unless given")
    parser.add_argument("--batch", type=int, default=20, help="programs per run of mypy")
    arguments = parser.parse_args()
    seed = random.randrange(10**6) if arguments.seed is None else arguments.seed
    print(f"seed {seed}", flush=True)
    end = time.monotonic() + 60.0 * arguments.minutes
    programs = wrong = 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name).resolve()
        while programs == 0 or time.monotonic() < end:
            found = batch(seed + programs, arguments.batch, folder)
            for one in found:
                print(one, flush=True)
            programs, wrong = programs + arguments.batch, wrong + len(found)
            for old in folder.glob("*/*program_*.py"):
                old.unlink()
    print(f"{programs} programs from seed {seed}: {wrong} complaints")
    sys.exit(wrong > 0)


if __name__ == "__main__":
    main()
