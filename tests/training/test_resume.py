"""A training that is interrupted, or that the disk refuses, goes on as if it had not been."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tapetensor as tt
from tapetensor import io
from tapetensor.data import batches
from tapetensor.training import CsvLog, EarlyStopping
from tests.io.models import assert_same, needs_safetensors
from tests.training.models import METRICS, SCHEDULE, Run, numbers, pressing_ctrl_c


@pytest.mark.parametrize(
    ("suffix", "at", "is_compiled", "number"),
    # The first step, in the middle, the last of an epoch, the first of one, the very last.
    [
        *[(".npz", at, False, signal.SIGINT) for at in (0, 3, 5, 6, 17)],
        *[(".npz", at, True, signal.SIGINT) for at in (0, 13)],
        pytest.param(".safetensors", 13, False, signal.SIGTERM, marks=needs_safetensors),
    ],
)
def test_ctrl_c_ends_with_a_checkpoint_from_which_training_goes_on_to_the_bit(
    tmp_path: Path, suffix: str, at: int, is_compiled: bool, number: signal.Signals
) -> None:
    whole, first, second = Run(seed=1), Run(seed=1), Run(seed=2)
    options: dict[str, Any] = {"metrics": METRICS, "validation": whole.held_out}
    options["compile"] = is_compiled
    expected = whole.fit(schedule=SCHEDULE, **options)
    options["checkpoint"] = tmp_path / f"run{suffix}"
    before = signal.getsignal(number)
    ended = first.fit(schedule=pressing_ctrl_c(at, number), **options)
    assert signal.getsignal(number) is before
    steps = first.optimizer.steps
    history = second.fit(schedule=SCHEDULE, resume=True, **options)

    assert steps == at + 1
    assert ended.ended == "interrupted"
    assert history.ended == "epochs"
    assert numbers(history) == numbers(expected)
    assert_same(second.state(), whole.state())


def test_a_training_that_is_stopped_after_epochs_goes_on_to_the_bit(tmp_path: Path) -> None:
    path = tmp_path / "run.npz"
    whole, first, second = Run(seed=1), Run(seed=1), Run(seed=2)
    expected = whole.fit(epochs=4)
    first.fit(epochs=2, checkpoint=path)
    history = second.fit(epochs=4, checkpoint=path, resume=True)
    again = second.fit(epochs=4, checkpoint=path, resume=True)

    assert numbers(history) == numbers(expected) == numbers(again)
    assert_same(second.state(), whole.state())


@pytest.mark.parametrize("notes", [{"epoch": 3}, [1, 2], None])
def test_a_checkpoint_of_something_else_is_refused(tmp_path: Path, notes: Any) -> None:
    path, run = tmp_path / "run.npz", Run()
    io.save_checkpoint(path, model=run.model, training=io.Notes(notes))
    before = run.state()
    with pytest.raises(tt.StateMismatchError, match="not written by fit"):
        run.fit(checkpoint=path, resume=True)
    io.save_checkpoint(tmp_path / "other.npz", model=run.model)
    with pytest.raises(tt.StateMismatchError, match=r"training\.expected is one array"):
        run.fit(checkpoint=tmp_path / "other.npz", resume=True)

    assert_same(run.state(), before)


def test_fewer_batches_than_were_done_are_refused(tmp_path: Path) -> None:
    path, run = tmp_path / "run.npz", Run()
    run.fit(checkpoint=path, schedule=pressing_ctrl_c(4))
    x, labels = run.batches._tensors
    few = batches(x, labels, size=20, rng=run.batches.rng)
    before = run.state()
    with pytest.raises(tt.StateMismatchError, match=r"5 batches of the epoch are done, .* are 3"):
        run.fit(batches=few, checkpoint=path, resume=True)
    assert_same(run.state(), before)
    # How many there are is known only when they have come, and still before anything changes.
    with pytest.raises(tt.StateMismatchError, match=r"5 batches of the epoch are done, .* are 3"):
        run.fit(batches=lambda: few, rng=few.rng, checkpoint=path, resume=True)
    assert_same(run.state(), before)


def test_a_second_ctrl_c_ends_at_once() -> None:
    def schedule(step: int) -> float:
        for _ in range(2 * (step == 3)):
            os.kill(os.getpid(), signal.SIGINT)
        return SCHEDULE(step)

    run = Run()
    with pytest.raises(KeyboardInterrupt):
        run.fit(schedule=schedule)

    assert run.optimizer.steps == 3
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_program_at_whose_terminal_somebody_presses_ctrl_c_goes_on_to_its_end(
    tmp_path: Path,
) -> None:
    program = (
        "import os, signal, sys\n"
        "from tests.training.models import Run\n"
        # What runs in the background of a shell has it ignored.
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "def schedule(step):\n"
        "    if step == 100: print('running', flush=True)\n"
        "    return 0.001\n"
        "history = Run().fit(epochs=10**9, schedule=schedule, checkpoint=sys.argv[1])\n"
        "print(history.ended, history['steps'][-1] >= 96)\n"
    )
    command = [sys.executable, "-c", program, str(tmp_path / "run.npz")]
    pipe = subprocess.PIPE
    with subprocess.Popen(
        command, cwd=Path(__file__).parents[2], stdout=pipe, stderr=pipe, text=True
    ) as running:
        assert running.stdout is not None
        assert running.stdout.readline() == "running\n"
        running.send_signal(signal.SIGINT)
        output, errors = running.communicate(timeout=60)

    assert output == "interrupted True\n"
    assert errors.strip().startswith("fit: ends after this step; Ctrl-C once more ends at once")
    assert running.returncode == 0
    assert (tmp_path / "run.npz").exists()


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

    assert_same(io.read(best), io.state_dict(whole.model))
