"""Threads of the BLAS, memory of the allocator, and machines that have neither."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import tapetensor as tt
from tapetensor import extras
from tapetensor.io import disk
from tapetensor.kernels.numerics import threads
from tapetensor.machine import doctor, openblas, settings


class Blas:
    """A BLAS that knows how many threads it has."""

    def __init__(self, threads: int) -> None:
        self.threads = threads

    def counts(self) -> tuple[Callable[[], int], Callable[[int], None]]:
        return (lambda: self.threads), (lambda count: setattr(self, "threads", count))


@pytest.fixture
def blas(monkeypatch: pytest.MonkeyPatch) -> Blas:
    made = Blas(4)
    monkeypatch.setattr(openblas, "_counts", made.counts)
    return made


def test_it_runs_on_one_thread_as_long_as_it_is_held(blas: Blas) -> None:
    with openblas.held_to_one_thread():
        assert (blas.threads, openblas.threads()) == (1, 4)
    assert (blas.threads, openblas.threads()) == (4, 4)


def test_an_error_gives_the_threads_back(blas: Blas) -> None:
    with pytest.raises(ValueError, match="inside"), openblas.held_to_one_thread():
        raise ValueError("inside")
    assert blas.threads == 4


def test_a_child_process_has_all_threads_whoever_held_them(
    blas: Blas, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(openblas, "_held", openblas._Held())
    held = openblas.held_to_one_thread()
    held.__enter__()
    openblas._held.lock.acquire()

    openblas._in_child()

    assert (blas.threads, openblas.threads()) == (4, 4)
    held.__exit__(None, None, None)
    assert (blas.threads, openblas.threads()) == (4, 4)


def test_a_blas_that_says_nothing_counts_as_one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(openblas, "_counts", lambda: None)
    assert openblas.threads() == 1
    with openblas.held_to_one_thread():
        assert openblas.threads() == 1


PASSES = """
import resource
import numpy as np
import tapetensor
def run():
    tape = [np.ones((512, 512), np.float32) for _ in range(40)]
run()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(5):
    run()
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


def faults(**environment: str) -> int:
    """Return the page faults of five passes that hold 40 MB each."""
    everything = {k: v for k, v in os.environ.items() if not k.startswith("MALLOC_")}
    everything = {**everything, settings.MEMORY_SETTING: "", **environment}
    command = [sys.executable, "-c", PASSES]
    output = subprocess.run(command, env=everything, capture_output=True, text=True, check=True)
    return int(output.stdout)


@pytest.mark.skipif(not settings._is_glibc(), reason="the allocator is not glibc's")
def test_the_next_pass_finds_the_memory_of_the_one_before() -> None:
    kept, given_back = faults(), faults(**{settings.MEMORY_SETTING: "system"})

    assert kept < 1000 < given_back


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("MALLOC_TRIM_THRESHOLD_", "1000000"),
        ("MALLOC_ARENA_MAX", "1"),
        ("GLIBC_TUNABLES", "glibc.rtld.nns=4:glibc.malloc.trim_threshold=1000000"),
    ],
)
def test_settings_of_the_allocator_are_left_alone(
    variable: str, value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(settings.MEMORY_SETTING, raising=False)
    monkeypatch.setenv(variable, value)

    assert not settings.keep_freed_memory()


def test_the_user_may_leave_it_to_the_system(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(settings.MEMORY_SETTING, "system")

    assert not settings.keep_freed_memory()


def test_another_allocator_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(settings.MEMORY_SETTING, raising=False)
    monkeypatch.setattr(settings, "_is_glibc", lambda: False)

    assert not settings.keep_freed_memory()


def _refuse(*_: Any, **__: Any) -> Any:
    raise RuntimeError("can't start new thread")


def _write(path: Path) -> None:
    path.write_text("all")


def test_what_would_run_together_runs_one_after_the_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "IN_WEBASSEMBLY", True)
    monkeypatch.setattr(threads, "ThreadPoolExecutor", _refuse)
    done: list[int] = []
    threads.run_together((done.append, 1), (done.append, 2))

    assert done == [1, 2]
    assert threads.count() == 1


def test_the_doctor_measures_in_its_own_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "IN_WEBASSEMBLY", True)
    monkeypatch.setattr("subprocess.run", _refuse)

    assert "(the only one " in doctor.examination(seconds=0.001)


def test_a_file_is_written_where_a_folder_cannot_be_flushed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(disk, "IN_WEBASSEMBLY", True)
    monkeypatch.setattr(disk, "_flush", lambda path, access: None if path.is_file() else _refuse())
    disk.write_atomically(tmp_path / "file", _write)

    assert (tmp_path / "file").read_text() == "all"


def test_an_extra_that_is_not_there_for_webassembly_is_not_asked_to_be_installed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(extras, "IN_WEBASSEMBLY", True)
    monkeypatch.setitem(sys.modules, "mpi4py", None)

    with pytest.raises(tt.MissingDependencyError, match="mpi4py: there is none for WebAssembly"):
        extras.import_extra("mpi4py.MPI", "many ranks", "mpi")
    with pytest.raises(tt.MissingDependencyError, match="pip install"):
        extras.import_extra("no_such_package", "others", "others")
