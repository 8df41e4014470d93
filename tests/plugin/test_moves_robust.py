"""Use after move under the plugin: the same answers however mypy is run, and no crash."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from tapetensor.mypy_plugin import guard
from tests.plugin.checked import CONFIGURATION, library_cache
from tests.typing.runs import ROOT

TAKES = """
from typing import Literal as L
from tapetensor import OwnedTape, Tensor1D
Traced = Tensor1D[L[3], OwnedTape]
def take(x: Traced) -> Traced: return x.exp()
"""
READS = TAKES.replace("(x: Traced) -> Traced: return x.exp()", "(x: object) -> None: print(x)")
USES = """
from lib import Traced, take
def twice(x: Traced) -> None:
    for _ in range(2):
        x.shape
    take(x)
    x.sin()
"""
OTHER_HOOKS = """
from typing import Literal as L
from tapetensor import Tensor1D
from tapetensor import nn
from tapetensor.typing import Mul, N
def flat(x: Tensor1D[Mul[N, L[2]]], y: Tensor1D[Mul[N, N]]) -> None: pass
class Net(nn.Module):
    def forward(self, x: Tensor1D[N]) -> Tensor1D[N]: return x
class Other(nn.Module):
    def forward(self, x: Tensor1D[N]) -> Tensor1D[N]: return x
"""
# Functions of another file that look at a tensor; what they return may own a tape all the same.
LENDS = TAKES.replace("Tensor1D\n", "Lent, Tensor1D\n", 1).replace(
    "(x: Traced) -> Traced: return x.exp()",
    """(x: Lent[Traced]) -> Traced: return x.with_empty_tape()
def seen(x: Traced) -> Traced:
    print(x.shape)
    return x.with_empty_tape()
def also_seen(x: Traced) -> Traced:
    return seen(x)""",
)
LENT = """
from lib import Traced, also_seen, seen, take
def several(x: Traced) -> None:
    take(x)
    seen(x)
    also_seen(x)
    x.sin()
"""
# Functions of another file that take the tape though no result of theirs may own one.
VALUES = (
    TAKES
    + """
def value(x: Traced) -> float:
    return x.sum().item()
class Log:
    def add(self, x: Traced) -> None:
        print(value(x))
def shown(x: Traced) -> float:
    if len(x) > 5:
        return value(x)
    return float(len(x))
"""
)
VALUED = """
from lib import Log, Traced, shown, value
def several(x: Traced, y: Traced) -> None:
    shown(x)
    value(x)
    value(x)
    Log().add(y)
    y.sin()
"""
ERROR = '7: error: sin: "x" was moved by "take" on line 6'


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Write a program with one mistake, of which mypy knows where the library is."""
    (tmp_path / "lib.py").write_text(TAKES)
    (tmp_path / "main.py").write_text(USES)
    monkeypatch.setenv("MYPYPATH", f"{tmp_path}{os.pathsep}{ROOT}")
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.delenv(guard.RAISE, raising=False)
    return tmp_path


@pytest.fixture
def warm(program: Path) -> Iterator[Path]:
    """Give the program a cache in which the library is, and take it away afterwards."""
    cache = library_cache(program)
    yield program
    shutil.rmtree(cache)


def _options(program: Path) -> list[str]:
    return [
        f"--config-file={CONFIGURATION}",
        f"--cache-dir={program / 'cache'}",
        "--no-pretty",
        "--no-error-summary",
        str(program / "main.py"),
    ]


@pytest.fixture(scope="module", autouse=True)
def _mypys() -> Iterator[None]:
    """End the process that all runs of mypy here are forks of."""
    yield
    if _first_mypy.cache_info().currsize:
        _first_mypy().communicate()
        _first_mypy.cache_clear()


@cache
def _first_mypy() -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "tests.plugin.forked"]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, cwd=ROOT)


def _check(program: Path, breaks: str = "") -> str:
    """Return what mypy says in a process of its own, after something was broken in it."""
    asked = {"options": _options(program), "environment": dict(os.environ), "breaks": breaks}
    running = _first_mypy()
    assert running.stdin is not None
    assert running.stdout is not None
    print(json.dumps(asked), file=running.stdin, flush=True)
    said: str = json.loads(running.stdout.readline())
    assert "Traceback" not in said, said
    return said


def test_a_cached_run_gives_the_same_answer_as_a_cold_one(warm: Path) -> None:
    # Of the library, too, the daemon has no cache.
    program = warm
    cold = _check(program)
    (program / "main.py").write_text(f"{USES}\n")
    changed = _check(program)
    cached = _check(program)

    assert cold.count("error") == 1
    assert ERROR in cold
    assert cold == changed == cached


def test_a_change_in_another_module_is_seen(warm: Path) -> None:
    program = warm
    assert ERROR in _check(program)
    (program / "lib.py").write_text(READS)
    assert _check(program) == ""
    (program / "lib.py").write_text(TAKES)
    assert ERROR in _check(program)


def test_a_function_of_another_file_that_only_looks_borrows_cached_or_not(warm: Path) -> None:
    program = warm
    (program / "lib.py").write_text(LENDS)
    for number in range(3):
        (program / "main.py").write_text(LENT + "\n" * number)
        assert _check(program) == ""

    takes = "    print(x.shape)\n    return x.exp()"
    (program / "lib.py").write_text(
        LENDS.replace("    print(x.shape)\n    return x.with_empty_tape()", takes)
    )
    assert '6: error: also_seen: "x" was moved by "seen" on line 5' in _check(program)
    (program / "lib.py").write_text(LENDS)
    assert _check(program) == ""


def test_a_function_of_another_file_that_takes_the_tape_moves_whatever_it_returns(
    warm: Path,
) -> None:
    program = warm
    (program / "lib.py").write_text(VALUES)
    for number in range(3):
        (program / "main.py").write_text(VALUED + "\n" * number)
        said = _check(program)
        assert said.count("error:") == 2
        assert '6: error: value: "x" was moved by "value" on line 5' in said
        assert '8: error: sin: "y" was moved by "add" on line 7' in said


@pytest.fixture
def daemon(program: Path) -> Iterator[list[str]]:
    """Return the command of a daemon, which is stopped afterwards."""
    command = [sys.executable, "-m", "mypy.dmypy", f"--status-file={program / 'status.json'}"]
    yield command
    subprocess.run([*command, "stop"], capture_output=True, check=False, cwd=ROOT)


def test_the_daemon_gives_the_same_answers(program: Path, daemon: list[str]) -> None:
    def check() -> str:
        command = [*daemon, "run", "--timeout=300", "--", *_options(program)]
        finished = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
        assert not finished.stderr, finished.stderr
        return "".join(f"{line}\n" for line in finished.stdout.splitlines() if "error:" in line)

    first = check()
    assert first.count("error:") == 1
    assert ERROR in first
    (program / "lib.py").write_text(READS)
    assert check() == ""
    (program / "lib.py").write_text(TAKES)
    assert check() == first
    (program / "main.py").write_text(USES.replace("    take(x)", "    x = take(x)"))
    assert check() == ""


def test_an_exception_becomes_one_note_and_the_check_goes_on(warm: Path) -> None:
    (warm / "main.py").write_text(f"{USES}    number: int = 'a'\n")

    output = _check(warm, "hooks.judge_of = broken")

    assert output.count("ZeroDivisionError") == 1
    assert "internal error" in output
    assert "issue tracker" in output
    assert "[assignment]" in output
    assert "[tape-moved]" not in output


@pytest.mark.parametrize("name", ["computed.class_of", "calling.add_call"])
def test_an_exception_in_an_annotation_or_a_class_becomes_one_note_too(
    warm: Path, name: str
) -> None:
    (warm / "main.py").write_text(f"{USES}{OTHER_HOOKS}")

    output = _check(warm, f"{name} = broken")

    assert output.count("internal error") == 1
    assert output.count("ZeroDivisionError") == 1
    assert ERROR in output


@pytest.mark.parametrize("name", ["3.0.0", "2.5.0+dev.12ab", "1.15.0", "unheard of"])
def test_an_unknown_mypy_switches_only_this_check_off_with_one_note(warm: Path, name: str) -> None:
    (warm / "main.py").write_text(f"{USES}    x.reshape((2, 2))\n")

    output = _check(warm, f"version.__version__ = {name!r}")

    assert output.count("note: tapetensor.mypy_plugin:") == 1
    assert "use after move is not checked, which is known to work with mypy 2.0 up to" in output
    assert f"this is mypy {name}" in output
    assert output.count("error:") == 1
    assert "8: error: reshape: (3,) holds 3 elements, which do not fill (2, 2)" in output


def test_a_mypy_that_lacks_what_is_used_switches_the_check_off(warm: Path) -> None:
    output = _check(warm, "flow._has_what_is_used = lambda checker: False")

    assert output.count("note:") == 1
    assert "error:" not in output
