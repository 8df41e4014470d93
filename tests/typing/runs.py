"""mypy and other checkers in processes of their own, each run once for all workers of a session."""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from importlib import metadata
from pathlib import Path

from tapetensor.mypy_plugin.reporting import RAISE

ROOT = Path(__file__).parents[2]
CACHES = ROOT / ".mypy_cache" / "tests"
# What the workers of one session have in common, and no other session has.
SESSION = os.environ.get("PYTEST_XDIST_TESTRUNUID", f"{os.getpid()} at {time.time_ns()}")

Report = dict[Path, dict[int, list[str]]]
_LINE = re.compile(r"(?P<path>.+?):(?P<line>\d+): error: (?P<message>.*)")


def once_a_session(name: str, run: Callable[[], str], *, session: str = SESSION) -> str:
    """Return what a run prints: the first worker that asks does it, the others read it.

    Args:
        session: what the run is good for; `what_checkers_read()` where it says all that decides.
    """
    said, done = CACHES / f"{name}.txt", CACHES / f"{name}.session"
    with _locked(name):
        if not done.exists() or done.read_text() != session:
            done.unlink(missing_ok=True)
            said.write_text(run())
            done.write_text(session)
        return said.read_text()


@cache
def what_checkers_read() -> str:
    """Return a digest of all that checkers without a cache read: files, and packages by version."""
    digest = hashlib.sha256(sys.version.encode())
    for one in sorted(f"{one.name} {one.version}" for one in metadata.distributions()):
        digest.update(one.encode())
    for folder in ("tapetensor", "stubs", "examples", "tests/typing"):
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix in {".py", ".pyi", ".json", ".typed"}:
                digest.update(str(path).encode())
                digest.update(path.read_bytes())
    return digest.hexdigest()


@contextmanager
def _locked(name: str) -> Iterator[None]:
    """Keep others out who want the same: the system unlocks what a dead process held."""
    CACHES.mkdir(parents=True, exist_ok=True)
    with (CACHES / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def cache_of(name: str) -> Path:
    """Return the folder of a cache of mypy, emptied if the library has changed since.

    mypy does not notice a change of a plugin that is a package, nor what the plugin adds to a
    package that is read again while others come from the cache.
    """
    folder = CACHES / name
    digest = hashlib.sha256()
    for path in sorted((ROOT / "tapetensor").rglob("*.py")):
        digest.update(path.read_bytes())
    mark = folder / "plugin.sha256"
    if not mark.exists() or mark.read_text() != digest.hexdigest():
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        mark.write_text(digest.hexdigest())
    return folder


def mypy(configuration: Path, cache: Path, files: Sequence[Path]) -> str:
    """Return what mypy prints; an error inside the plugin is to stop it, not to become a note."""
    command = [sys.executable, "-m", "mypy", f"--config-file={configuration}", "--no-pretty"]
    finished = subprocess.run(
        [*command, f"--cache-dir={cache}", *map(str, files)],
        cwd=ROOT,
        env={**os.environ, RAISE: "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert finished.returncode in (0, 1), finished.stdout + finished.stderr
    return finished.stdout


def errors(said: str) -> Report:
    """Return the errors in what mypy printed, by file and line."""
    report: Report = defaultdict(lambda: defaultdict(list))
    for line in said.splitlines():
        if found := _LINE.fullmatch(line):
            path = Path(os.path.abspath(ROOT / found["path"]))
            report[path][int(found["line"])].append(found["message"])
    return report


def written(name: str, program: str, suffix: str = ".py") -> Path:
    """Write a program to a file, always at one place: caches remember where they found an error."""
    file = CACHES / "programs" / f"{name}{suffix}"
    file.parent.mkdir(parents=True, exist_ok=True)
    if not file.exists() or file.read_text() != program:
        # At once, since another worker may be reading it.
        draft = file.with_suffix(f".{os.getpid()}")
        draft.write_text(program)
        draft.replace(file)
    return file
