"""Where and how files are written: whole or not at all, with which names and permissions."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tapetensor import io
from tapetensor.io.disk import write_atomically
from tests.io.models import FORMATS, assert_same, layer, net, saved


class PowerCut(BaseException):
    """Not even an Exception, as KeyboardInterrupt is not."""


# What writes the bytes of each format.
WRITERS = {
    ".npz": "numpy.lib.format.write_array_header_1_0",
    ".safetensors": "tapetensor.io.safetensors.parts",
}


@pytest.mark.parametrize("suffix", FORMATS)
@pytest.mark.parametrize("moment", ["while writing", "os.fsync", "os.replace"])
def test_a_crash_in_the_middle_leaves_the_old_file(
    tmp_path: Path, suffix: str, moment: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / f"net{suffix}"
    old = saved(path, seed=1)
    content = path.read_bytes()

    def crash(*_: Any, **__: Any) -> None:
        raise PowerCut

    monkeypatch.setattr(WRITERS[suffix] if moment == "while writing" else moment, crash)
    with pytest.raises(PowerCut):
        io.save(path, net(2))
    monkeypatch.undo()

    assert path.read_bytes() == content
    assert [one.name for one in tmp_path.iterdir()] == [path.name]
    model = net(3)
    io.load(path, model)
    assert_same(io.state_dict(model), old)


@pytest.mark.parametrize("suffix", FORMATS)
def test_a_new_file_is_on_the_disk_before_it_takes_the_name(
    tmp_path: Path, suffix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    events: list[str] = []
    fsync, replace = os.fsync, os.replace

    def recorded_fsync(descriptor: int) -> None:
        events.append("fsync")
        fsync(descriptor)

    def recorded_replace(source: Any, target: Any) -> None:
        events.append("replace")
        assert Path(source).parent == Path(target).parent
        replace(source, target)

    monkeypatch.setattr("os.fsync", recorded_fsync)
    monkeypatch.setattr("os.replace", recorded_replace)
    io.save(tmp_path / f"net{suffix}", net(1))

    assert events == ["fsync", "replace", "fsync"]


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="no SIGKILL here")
def test_a_process_that_is_killed_while_saving_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "net.npz"
    old = saved(path)
    program = (
        "import os, signal, sys\n"
        "import numpy as np\n"
        "from tapetensor import io\n"
        "from tests.io.models import net\n"
        "model, write, count = net(2), np.lib.format.write_array_header_1_0, 0\n"
        "def dying(*arguments, **options):\n"
        "    global count\n"
        "    count += 1\n"
        "    if count == 5:\n"
        "        os.kill(os.getpid(), signal.SIGKILL)\n"
        "    write(*arguments, **options)\n"
        "np.lib.format.write_array_header_1_0 = dying\n"
        "io.save(sys.argv[1], model)\n"
    )
    finished = subprocess.run(
        [sys.executable, "-c", program, path], cwd=Path(__file__).parents[2], check=False
    )
    model = net(3)
    io.load(path, model)

    assert finished.returncode == -signal.SIGKILL
    assert_same(io.state_dict(model), old)


def test_a_link_stays_a_link_and_permissions_stay(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    target, link = tmp_path / "elsewhere" / "net.npz", tmp_path / "net.npz"
    saved(target)
    target.chmod(0o640)
    link.symlink_to(target)
    io.save(link, net(2))
    model = net(3)
    io.load(target, model)

    assert link.is_symlink()
    assert target.stat().st_mode & 0o777 == 0o640
    assert_same(io.state_dict(model), io.state_dict(net(2)))


posix_only = pytest.mark.skipif(os.name != "posix", reason="permissions and pipes of POSIX")


@posix_only
def test_what_is_written_is_never_readable_by_more_than_the_file_that_it_replaces(
    tmp_path: Path,
) -> None:
    path, seen = tmp_path / "model.npz", []
    io.save(path, layer())
    path.chmod(0o600)

    def write(temporary: Path) -> None:
        temporary.write_bytes(b"secret")
        seen.append(temporary.stat().st_mode & 0o777)

    write_atomically(path, write)

    assert seen == [0o600]
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.read_bytes() == b"secret"


@posix_only
def test_a_pipe_is_refused_and_does_not_hang(tmp_path: Path) -> None:
    path = tmp_path / "model.npz"
    os.mkfifo(path)
    for call in (io.save, io.load):
        with pytest.raises(OSError, match="it is a pipe or a device, and no file"):
            call(path, layer())

    assert path.is_fifo()
    assert list(tmp_path.iterdir()) == [path]
