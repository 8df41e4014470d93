"""Writing a file as a whole or not at all."""

from __future__ import annotations

import errno
import os
import secrets
import shutil
import stat
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from tapetensor.machine.settings import IN_WEBASSEMBLY


def write_atomically(path: Path, write: Callable[[Path], None]) -> None:
    """Let `write` make a file beside `path`, and put that in its place once it is on the disk.

    Whatever happens before that moment, an exception or a power cut, leaves what was there. A
    symbolic link stays one, and a file that was there keeps its permissions, which what is written
    before has as well.

    Raises:
        OSError: if it cannot be written, or something is there that is no file, a pipe, say.
    """
    target = Path(os.path.realpath(path))
    check_regular(target)
    # In the same directory, for a file cannot be moved between file systems in one go. Its name is
    # short, for that of the target may be as long as names can be.
    temporary = target.with_name(f".{secrets.token_hex(8)}.tmp")
    mode = 0o600 if target.exists() else 0o666
    os.close(os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, mode))
    try:
        write(temporary)
        if target.exists():
            shutil.copymode(target, temporary)
        _flush(temporary, os.O_RDWR)
        os.replace(temporary, target)
    finally:
        temporary.unlink(missing_ok=True)
    # So that the new name survives a power cut as well; elsewhere directories cannot be opened, or
    # be flushed.
    if os.name == "posix" and not IN_WEBASSEMBLY:
        _flush(target.parent, os.O_RDONLY)


def check_regular(path: Path) -> None:
    """Refuse a pipe or a device, which nobody may ever write into or read from.

    Raises:
        OSError: if there is something at the path that is no file.
    """
    with suppress(FileNotFoundError):
        mode = path.stat().st_mode
        if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
            raise OSError(errno.EINVAL, "it is a pipe or a device, and no file", os.fspath(path))


def _flush(path: Path, access: int) -> None:
    descriptor = os.open(path, access)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
