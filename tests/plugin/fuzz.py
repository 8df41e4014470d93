"""Random programs under the plugin, for as long as one likes: ``python -m tests.plugin.fuzz``.

Of programs that run, checked with the plugin and without it:

- no crash, and no note of an internal error;
- no false alarm: no line is an error that is none without the plugin, unless its operands meet each
  of a dim with each, which runs;
- what mypy says of a shape is true at run time;
- no slow-down beyond `SLOWEST`.

Of the same programs, spoiled so that many make no sense: no crash, and no slow-down.
"""

from __future__ import annotations

import argparse
import ast
import os
import random
import re
import resource
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from tapetensor.mypy_plugin.reporting import RAISE
from tests.plugin.whole_programs import MODULES, Program, spoiled

ROOT = Path(__file__).parents[2]
LENGTH = 25
# mypy with the plugin may take so many times as long as without it.
SLOWEST = 3.0

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

Messages = Mapping[str, Mapping[int, list[tuple[str, str]]]]


class Run(NamedTuple):
    """What one run of mypy says.

    Attributes:
        messages: by file and line, kind and text.
        crashed: what it printed, if it did not get to the end.
        seconds: how much of the processor it took.
    """

    messages: Messages
    crashed: str
    seconds: float


def check(texts: Mapping[str, str], folder: Path, configuration: Path) -> Run:
    """Return what mypy says of programs.

    Args:
        texts: by name.
        folder: where they and the cache go.
        configuration: of mypy, with the plugin or without it.
    """
    folder.mkdir(parents=True, exist_ok=True)
    files = []
    for name, text in [*MODULES.items(), *texts.items()]:
        (folder / f"{name}.py").write_text(f"{text}{_STRICT_ALONE}")
        files.append(str(folder / f"{name}.py"))
    options = [f"--config-file={configuration}", f"--cache-dir={folder / 'cache'}", "--no-pretty"]
    options += ["--hide-error-context", "--show-traceback"]
    environment = {**os.environ, RAISE: "1", "MYPYPATH": f"{folder}{os.pathsep}{ROOT}"}
    # Of that process alone: the machine may be busy with other things.
    start = resource.getrusage(resource.RUSAGE_CHILDREN)
    finished = subprocess.run(
        [sys.executable, "-m", "mypy", *options, *files],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    end = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = end.ru_utime + end.ru_stime - start.ru_utime - start.ru_stime
    output = finished.stdout
    messages: dict[str, dict[int, list[tuple[str, str]]]] = defaultdict(lambda: defaultdict(list))
    for line in output.splitlines():
        if found := _LINE.fullmatch(line):
            said = messages[found["file"]][int(found["line"])]
            said.append((found["kind"], found["message"]))
    crashed = "" if finished.returncode in (0, 1) else finished.stderr + output
    if "internal error" in output.lower():
        crashed = output
    return Run(messages, crashed, seconds)


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
    """Return what is wrong in one batch of programs, and of the same spoiled."""
    programs = {f"program_{seed + one}": Program(seed + one, LENGTH) for one in range(size)}
    texts = {name: program.text for name, program in programs.items()}
    plain = check(texts, folder / "plain", PLAIN)
    plugin = check(texts, folder / "plugin", PLUGIN)
    found = _together("valid", plain, plugin)
    for name, program in programs.items():
        found += [f"{name}: {one}" for one in complaints(program, name, plain, plugin)]
    odd = {f"odd_{name}": spoiled(text, seed) for name, text in texts.items()}
    # mypy stops at the first file that does not parse.
    odd = {name: text for name, text in odd.items() if _parses(text)}
    bad_plain = check(odd, folder / "plain", PLAIN)
    if bad_plain.crashed:
        # mypy itself does not take it.
        return found
    return found + _together("spoiled", bad_plain, check(odd, folder / "plugin", PLUGIN))


def _together(kind: str, plain: Run, plugin: Run) -> list[str]:
    if plugin.crashed and not plain.crashed:
        return [f"{kind}: mypy stopped: {plugin.crashed[-3000:]}"]
    if plugin.seconds > SLOWEST * plain.seconds + 2.0:
        return [f"{kind}: {plugin.seconds:.1f} s with the plugin, {plain.seconds:.1f} s without"]
    return []


def _parses(text: str) -> bool:
    try:
        ast.parse(text)
    except SyntaxError:
        return False
    return True


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
        # The library itself, so that it does not count as time for the first programs.
        for way, configuration in (("plain", PLAIN), ("plugin", PLUGIN)):
            check({}, folder / way, configuration)
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
