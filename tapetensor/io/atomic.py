"""Writing a file as a whole or not at all."""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Callable
from pathlib import Path


def write_atomically(path: Path, write: Callable[[Path], None]) -> None:
    """Let `write` make a file beside `path`, and put that in its place once it is on the disk.

    Whatever happens before that moment, an exception or a power cut, leaves what was there. A
    symbolic link stays one, and a file that was there keeps its permissions.
    """
    target = Path(os.path.realpath(path))
    # In the same directory, for a file cannot be moved between file systems in one go.
    temporary = target.with_name(f".{target.name}.{secrets.token_hex(8)}.tmp")
    try:
        write(temporary)
        if target.exists():
            shutil.copymode(target, temporary)
        _flush(temporary)
        os.replace(temporary, target)
    finally:
        temporary.unlink(missing_ok=True)
    if os.name == "posix":
        # So that the new name survives a power cut as well; elsewhere directories cannot be opened.
        _flush(target.parent)


def _flush(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
