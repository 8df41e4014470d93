"""The plugin gives the same answers however mypy is run, and nothing in it ends a run."""

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

from tapetensor.mypy_plugin import reporting
from tests.plugin.checked import CONFIGURATION, library_cache
from tests.typing.runs import ROOT

MAKES = """
from typing import Literal as L
from tapetensor import Tensor1D
def make(x: Tensor1D[L[3]]) -> Tensor1D[L[3]]: return x.exp()
"""
MAKES_FIVE = """
from typing import Literal as L
from tapetensor import Tensor1D, zeros
def make(x: Tensor1D[L[3]]) -> Tensor1D[L[5]]: return zeros((5,))
"""
USES = """
from typing import Literal as L
from tapetensor import Tensor1D
from lib import make
def use(x: Tensor1D[L[3]]) -> None:
    make(x).reshape((2, 2))
"""
OTHER_HOOKS = """
from tapetensor import nn
from tapetensor.typing import Mul, N
def flat(x: Tensor1D[Mul[N, L[2]]], y: Tensor1D[Mul[N, N]]) -> None: pass
class Net(nn.Module):
    def forward(self, x: Tensor1D[N]) -> Tensor1D[N]: return x
class Other(nn.Module):
    def forward(self, x: Tensor1D[N]) -> Tensor1D[N]: return x
"""
ERROR = "6: error: reshape: (3,) holds 3 elements, which do not fill (2, 2)"


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Write a program with one mistake, of which mypy knows where the library is."""
    (tmp_path / "lib.py").write_text(MAKES)
    (tmp_path / "main.py").write_text(USES)
    monkeypatch.setenv("MYPYPATH", f"{tmp_path}{os.pathsep}{ROOT}")
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.delenv(reporting.RAISE, raising=False)
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
    (program / "lib.py").write_text(MAKES_FIVE)
    assert ERROR.replace("3", "5") in _check(program)
    (program / "lib.py").write_text(MAKES)
    assert ERROR in _check(program)


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
    (program / "lib.py").write_text(MAKES_FIVE)
    assert ERROR.replace("3", "5") in check()
    (program / "lib.py").write_text(MAKES)
    assert check() == first
    (program / "main.py").write_text(USES.replace("(2, 2)", "(3, 1)"))
    assert check() == ""


def test_an_exception_becomes_one_note_and_the_check_goes_on(warm: Path) -> None:
    (warm / "main.py").write_text(f"{USES}    number: int = 'a'\n")

    output = _check(warm, "calls.is_readable = broken")

    assert output.count("ZeroDivisionError") == 1
    assert "internal error" in output
    assert "issue tracker" in output
    assert "[assignment]" in output
    assert "[shape-mismatch]" not in output


@pytest.mark.parametrize("name", ["computed.class_named", "calling.add_call"])
def test_an_exception_in_an_annotation_or_a_class_becomes_one_note_too(
    warm: Path, name: str
) -> None:
    (warm / "main.py").write_text(f"{USES}{OTHER_HOOKS}")

    output = _check(warm, f"{name} = broken")

    assert output.count("internal error") == 1
    assert output.count("ZeroDivisionError") == 1
    assert ERROR in output


REDEFINES = """
from typing import Literal as L
from tapetensor import Tensor2D, nn
from tapetensor.typing import B, T
class Net(nn.Module):
    a: nn.Linear[L[8], L[16]]
    b: nn.Linear[L[16], L[4]]
    def forward(self, x: Tensor2D[B, L[8], T]) -> Tensor2D[B, L[4], T]:
        x = self.a.forward(x)
        x = x.relu()
        return self.b.forward(x)
"""
SETTING = "with `allow_redefinition = True` in mypy.ini it takes another one"


def test_a_name_takes_another_shape_with_the_setting_that_a_note_names(warm: Path) -> None:
    (warm / "main.py").write_text(REDEFINES)
    without = _check(warm)
    (warm / "main.py").write_text(f"# mypy: allow-redefinition\n{REDEFINES}")

    assert without.count(SETTING) == 1
    assert "Incompatible types in assignment" in without
    assert _check(warm) == ""


def test_a_note_says_what_dtype_a_method_wants(warm: Path) -> None:
    (warm / "main.py").write_text(
        "import tapetensor as tt\n\n"
        "print(2.0 * tt.arange(3).mean())\nprint(tt.arange(3).max(), tt.ones((3,)).mean())\n"
    )

    found = _check(warm)

    assert found.count("note: mean: not defined for dtype int64; convert first with x.ast") == 1
    assert "main.py:4" not in found
