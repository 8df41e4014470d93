"""Errors of the disk, raised again with their consequence for a training."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def explained(
    what: str, path: str | os.PathLike[str], rest: str, op: str = "fit"
) -> Iterator[None]:
    """Raise an error of the disk again, of the same class, with its consequence for the training.

    Args:
        what: the name of what could not be written.
        path: where it should have been written.
        rest: what is there nevertheless.
        op: the name for the message.
    """
    try:
        yield
    except OSError as error:
        number = error.errno or errno.EIO
        reason = error.strerror or str(error)
        # The number makes it a PermissionError, a FileNotFoundError, ... again.
        raise OSError(
            number, f"{op}: {what} could not be written ({reason}); {rest}", os.fspath(path)
        ) from error
