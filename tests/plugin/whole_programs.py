"""Random programs, each with many ways to be odd, and valid: every line of them has been run.

A program is written line by line. A line that raises an error of the library is left out, so what
is left runs, and the shape of each variable is known.
"""

from __future__ import annotations

import random
import re
import sys
import warnings
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any

import numpy as np

from tapetensor import Tensor
from tests.plugin.shape_programs import Writer

# What untyped code hands over, and what comes by another name.
MODULES = {
    "untyped": """\
# mypy: ignore-errors
import tapetensor as tt

def same(x):
    return x

def pair(*values, **more):
    return values, more

class Holder:
    def __init__(self, value):
        self.value = value
""",
    "exported": """\
from tapetensor import *
from tapetensor import Tensor as Array, concat as join, zeros as blank
from tapetensor.typing import *
from typing import Any as Anything
""",
    "again": """\
from exported import *
from exported import Array as Grid, Mul as Times, blank as nothing, join as glue
""",
}

HEADER = """\
from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum
from functools import partial
from typing import Any, Generic, TypeAlias, TypeVar, cast
from typing import Literal as L

import numpy as np

import again
import exported
import tapetensor as tt
import untyped
from exported import *
from tapetensor import NoneTape, OwnedTape, Tensor, Tensor1D, Tensor2D, Tensor3D, nn
from tapetensor.typing import Add, B, D, Div, Ds, K, M, Mul, N, S, Sub, T

Huge: TypeAlias = Tensor2D[L[0], L[9223372036854775807]]
Twice: TypeAlias = Tensor1D[Mul[N, L[2]], T]
Loop: TypeAlias = "list[Loop] | Tensor1D[Any]"
Held = TypeVar("Held")
rng = np.random.default_rng(0)


class Kind(Enum):
    FEW = 2.0


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


def odd() -> None:
    huge: Huge = tt.zeros((0, 9223372036854775807))
    reveal_type(huge.transpose())
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
    "turned(turned({m}))",
    "applied(kept, {f})",
    "applied(lambda given: given * 2.0, {f})",
    "Pair({f}, {f}).both()[1]",
    "Pair(kept({f}), {f}).first",
    "Box({x}).value",
    "Box(Box({x})).value.value",
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
    "Kind.FEW.value * {x}",
    "exported.join(({x}, {y}))",
    "again.glue(({x}, {x}))",
    "again.nothing({x}.shape)",
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
    "{x}.exp().sum(axis=-1)",
    "{x}.reshape((-1,))",
    "{x}.transpose() @ {x}",
    "tt.stack(({x}, {x}))",
    "tt.where({x} > 0.0, {x}, 0.0)",
    "{x}[..., None]",
    "{x}[0]",
)

# How a variable is declared.
_DECLARED = (
    "{name} = {value}",
    "{name} = {value}",
    "{name}: Any = {value}",
    "{name}: exported.Anything = {value}",
    "{name}: Tensor[Any, Any, Any] = {value}",
    "{name}: Tensor[tuple[Any, ...], Any, Any] = {value}",
    "({name} := {value})",
    "{name}, _ = {value}, 1",
    "for {name} in ({value},): pass",
)

# Lines that do nothing to tensors; some do not type-check, with or without the plugin.
_ODD = (
    "number: int = 'text'",
    "undefined_at_all: 'Nowhere[int]'",
    "def inner(x: again.Grid[Any]) -> again.Anything: return x",
    "def inner_too(x: Tensor1D[Times[L[2], 3]]) -> Loop: return [x]",
    "assert isinstance(rng, object), rng.nothing",
    "text: list[Tensor1D[L[3]]] = []",
    "class Local(nn.Module): forward = staticmethod(abs)",
    "function = kept",
    "scale = 2 ** 3 * 5",
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
        if self._random.random() < 0.1:
            self._lines.append(f"    {self._random.choice(_ODD)}")
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
    before = {name: sys.modules.get(name) for name in MODULES}
    try:
        for name, text in MODULES.items():
            module = ModuleType(name)
            sys.modules[name] = module
            exec(text, vars(module))
        header = ModuleType("header")
        sys.modules["header"] = header
        names = vars(header)
        exec(re.sub(r"\n +reveal_type\(.*", "", HEADER), names)
    finally:
        for name, module_before in before.items():
            if module_before is None:
                del sys.modules[name]
            else:
                sys.modules[name] = module_before
    return names


_Change = Callable[[random.Random, list[str]], None]


def spoiled(text: str, seed: int) -> str:
    """Return a program with a few things done to it that no one would do."""
    choice = random.Random(seed)
    lines = text.splitlines()
    for _ in range(choice.randint(1, 6)):
        change: _Change = choice.choice((_drop, _swap, _renumber, _rename, _blur))
        change(choice, lines)
    return "\n".join([*lines, ""])


def _drop(choice: random.Random, lines: list[str]) -> None:
    index = choice.randrange(len(lines))
    indent = len(lines[index]) - len(lines[index].lstrip())
    # A block may not be empty.
    lines[index] = f"{' ' * indent}pass" if not lines[index].endswith(":") else lines[index]


def _swap(choice: random.Random, lines: list[str]) -> None:
    places = [index for index, line in enumerate(lines) if line.startswith("    x")]
    if len(places) > 1:
        one, other = choice.sample(places, 2)
        lines[one], lines[other] = lines[other], lines[one]


def _renumber(choice: random.Random, lines: list[str]) -> None:
    _replace(choice, lines, r"\b\d+\b", ("0", "-1", "7", "1.5", "10 ** 30", "True", "None"))


def _rename(choice: random.Random, lines: list[str]) -> None:
    words = ("S", "T", "M", "N", "x0", "x1", "kept", "Any", "Own", "Huge", "Loop", "Twice", "Mul")
    _replace(choice, lines, r"\b[A-Za-z_]\w*\b", words)


def _blur(choice: random.Random, lines: list[str]) -> None:
    _replace(choice, lines, r"\[[^\[\]]*\]", ("", "[Any]", "[()]", "[...]", "[int, str]", "[L[2]]"))


def _replace(choice: random.Random, lines: list[str], what: str, words: tuple[str, ...]) -> None:
    index = choice.randrange(8, len(lines))
    found = [*re.finditer(what, lines[index])]
    if found:
        place = choice.choice(found)
        line = lines[index]
        lines[index] = line[: place.start()] + choice.choice(words) + line[place.end() :]
