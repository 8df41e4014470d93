"""A disk that refuses: found before training where it can be, said clearly, nothing lost."""

from __future__ import annotations

import errno
import signal
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tapetensor as tt
from tapetensor import io
from tapetensor.training import CsvLog, EarlyStopping
from tests.io.models import assert_same
from tests.training.models import SCHEDULE, Run


def full_after(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the disk be full after so many arrays of a checkpoint."""
    written = 0
    write_array: Any = np.lib.format.write_array_header_1_0

    def write(*arguments: Any, **options: Any) -> None:
        nonlocal written
        written += 1
        if written > count:
            raise OSError(errno.ENOSPC, "No space left on device")
        write_array(*arguments, **options)

    monkeypatch.setattr("numpy.lib.format.write_array_header_1_0", write)


def test_a_disk_that_is_full_in_the_middle_of_a_checkpoint_loses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, run = tmp_path / "run.npz", Run()
    run.fit(epochs=2, schedule=SCHEDULE, checkpoint=path)
    content = path.read_bytes()
    arrays = len(run.state())
    # The first checkpoint is the one that is tried out; the second one is cut short.
    full_after(arrays + 10, monkeypatch)
    with pytest.raises(OSError, match=r"checkpoint could not be written .No space left") as raised:
        run.fit(epochs=4, schedule=SCHEDULE, checkpoint=path, resume=True)
    monkeypatch.undo()

    assert raised.value.errno == errno.ENOSPC
    assert raised.value.filename == str(path)
    assert "the model in memory has all its steps, and the file is as it was" in str(raised.value)
    assert run.optimizer.steps == 18
    assert path.read_bytes() == content
    assert [one.name for one in tmp_path.iterdir()] == ["run.npz"]
    resumed, whole = Run(seed=5), Run()
    resumed.fit(epochs=4, schedule=SCHEDULE, checkpoint=path, resume=True)
    whole.fit(epochs=4, schedule=SCHEDULE)
    assert_same(io.state_dict(resumed.model), io.state_dict(whole.model))


@pytest.mark.skipif(sys.platform != "linux", reason="a limit on the size of files")
def test_a_file_system_that_takes_no_more_bytes_leaves_the_last_checkpoint(tmp_path: Path) -> None:
    resource = pytest.importorskip("resource")
    path, run = tmp_path / "run.npz", Run()
    run.fit(epochs=1, checkpoint=path)
    content = path.read_bytes()
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (len(content) // 2, before[1]))
    try:
        with pytest.raises(OSError, match=r"the checkpoint could not be written .File too large"):
            run.fit(epochs=2, checkpoint=path, resume=True)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)

    assert path.read_bytes() == content
    assert [one.name for one in tmp_path.iterdir()] == ["run.npz"]


def test_a_disk_that_is_read_only_is_found_before_the_first_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any, **__: Any) -> Any:
        raise OSError(errno.EROFS, "Read-only file system")

    run = Run()
    before = run.state()
    monkeypatch.setattr("zipfile.ZipFile", refuse)
    with pytest.raises(OSError, match=r"checkpoint could not be written .Read-only") as raised:
        run.fit(checkpoint=tmp_path / "run.npz")

    assert raised.value.errno == errno.EROFS
    assert_same(run.state(), before)


def test_two_of_its_files_in_one_place_are_refused_before_either_is_touched(tmp_path: Path) -> None:
    path, run = tmp_path / "run.npz", Run()
    run.fit(epochs=1, checkpoint=path)
    content = path.read_bytes()
    again = tmp_path / "." / "run.npz"
    stop = EarlyStopping("loss", best=again)
    with pytest.raises(tt.ArgumentValueError, match="checkpoint and the best model need a file"):
        run.fit(epochs=2, checkpoint=path, resume=True, stop=stop)
    with pytest.raises(tt.ArgumentValueError, match=r"checkpoint and a log need .*run.npz'"):
        run.fit(epochs=2, checkpoint=path, resume=True, log=[CsvLog(again)])
    with pytest.raises(tt.ArgumentValueError, match="a log and a log need a file each"):
        run.fit(epochs=2, log=[CsvLog(tmp_path / "log.csv"), CsvLog(tmp_path / "log.csv")])

    assert path.read_bytes() == content
    assert [one.name for one in tmp_path.iterdir()] == ["run.npz"]


def test_a_best_model_that_could_not_be_written_is_written_when_training_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, best = tmp_path / "run.npz", tmp_path / "best.npz"
    options: dict[str, Any] = {"checkpoint": path, "stop": EarlyStopping("loss", best=best)}
    whole, run = Run(), Run()
    whole.fit(epochs=2)
    run.fit(epochs=1, **options)
    content = best.read_bytes()

    save, calls = io.save, 0

    def refuse(*args: Any) -> None:
        nonlocal calls
        calls += 1
        # It is tried out before, and written anew for the epoch that the checkpoint is of.
        if calls > 2:
            raise OSError(errno.ENOSPC, "No space left on device")
        save(*args)

    monkeypatch.setattr(io, "save", refuse)
    with pytest.raises(OSError, match=r"best model could not be written .*; the checkpoint, if th"):
        run.fit(epochs=2, resume=True, **options)
    monkeypatch.undo()
    assert calls == 3
    assert best.read_bytes() == content

    Run(seed=5).fit(epochs=2, resume=True, **options)

    found = Run(seed=6).model
    io.load(best, found)
    assert_same(io.state_dict(found), io.state_dict(whole.model))
