"""Where no thread and no process can be started, work is done without; tests/wasm runs it there."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

import tapetensor as tt
from tapetensor import extras
from tapetensor.io import disk
from tapetensor.kernels.numerics import threads
from tapetensor.machine import doctor


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
