"""Saving one part in a file, and loading it."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TypeAlias

from tapetensor.arguments import as_flag
from tapetensor.arrays.array import Array
from tapetensor.errors import (
    ArgumentTypeError,
    ArgumentValueError,
    FileFormatError,
    TapeTensorError,
)
from tapetensor.io import npz, safetensors
from tapetensor.io.atomic import write_atomically
from tapetensor.io.headers import Source
from tapetensor.io.parts import Part, state_of
from tapetensor.io.pytorch import in_pytorch_names
from tapetensor.io.state import read, restore

PathLike: TypeAlias = str | os.PathLike[str]

_FORMATS = {".npz": npz, ".safetensors": safetensors}


def save(path: PathLike, part: Part, *, for_pytorch: bool = False) -> None:
    """Write the state of a part to a file, as a whole or not at all.

    The names are those of PyTorch's ``state_dict`` and of dfdx, ``0.weight`` or ``hidden.bias``,
    with all parameters and buffers; a tensor that goes by two names is there under both. Where the
    two differ, in an attention, they are dfdx's unless `for_pytorch` is given.

    Args:
        path: ends in ``.safetensors`` or ``.npz``, which says the format. A file that is there is
            replaced in one go once the new one is complete.
        part: a module, an optimizer, a numpy Generator or Notes.
        for_pytorch: whether the weights of attentions are packed as PyTorch's ``load_state_dict``
            takes them; `load` takes both.

    Raises:
        ArgumentValueError: if `path` ends otherwise, or an attention cannot be one of PyTorch's.
        ArgumentTypeError: if an argument is of the wrong kind.
        MissingDependencyError: if safetensors is wanted and not installed.
        OSError: if the file cannot be written.

    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> import numpy as np
    >>> from tapetensor import io, nn
    >>> model = nn.Linear(3, 2, rng=np.random.default_rng(0))
    >>> with TemporaryDirectory() as folder:
    ...     io.save(Path(folder) / "model.npz", model)
    ...     io.load(Path(folder) / "model.npz", model)
    """
    as_flag("save", "for_pytorch", for_pytorch)
    arrays = state_of("save", part).arrays()
    write_file("save", path, in_pytorch_names("save", part, arrays) if for_pytorch else arrays)


def load(path: PathLike, part: Part) -> None:
    """Give a part the state that a file holds, all of it or none.

    Names, shapes and dtypes are compared before anything is read. A file that PyTorch wrote of the
    same architecture will do: its ``num_batches_tracked``, which no layer here depends on, is left
    out, the packed weights of its attentions are taken apart, and of a tensor with two names one is
    enough. Nothing in a file is ever executed.

    Args:
        path: ends in ``.safetensors`` or ``.npz``, which says the format.
        part: a module, an optimizer, a numpy Generator or Notes, made as it was when it was saved.
            Its tensors keep their ids and get new data.

    Raises:
        StateMismatchError: if names, shapes, dtypes or values do not fit, with every difference.
        FileFormatError: if the file is damaged, of another format, or holds pickles.
        ArgumentValueError: if `path` ends otherwise.
        ArgumentTypeError: if an argument is of the wrong kind.
        MissingDependencyError: if safetensors is wanted and not installed.
        OSError: if the file cannot be opened.
    """
    states = {"": state_of("load", part)}
    with open_file("load", path) as source:
        arrays = read(f"load: {os.fspath(path)} does", states, source)
    restore(states, arrays)


def write_file(op: str, path: PathLike, arrays: Mapping[str, Array]) -> None:
    """Write arrays by name in the format that the name of the file asks for."""
    target = _checked(op, path)
    file_format = _FORMATS[target.suffix]
    try:
        write_atomically(target, lambda temporary: file_format.write(temporary, arrays))
    except OSError as error:
        if error.errno is None:
            raise
        # With the name that was asked for in place of a temporary one; the number says the kind.
        raise OSError(error.errno, error.strerror, os.fspath(path)) from None


@contextmanager
def open_file(op: str, path: PathLike) -> Iterator[Source]:
    """Open a file for reading; what its parser stumbles over becomes a FileFormatError."""
    target = _checked(op, path)
    try:
        with _FORMATS[target.suffix].Reader(target) as reader:
            yield reader
    except FileFormatError as error:
        raise FileFormatError(f"{op}: {target}: {error}") from error.__cause__
    except (TapeTensorError, MemoryError):
        raise
    except OSError as error:
        # A place before the beginning of a file is what a damaged archive asks for. All else is of
        # the disk, and says nothing of the file.
        if error.errno != errno.EINVAL:
            raise
        raise _damaged(op, target, error) from error
    # Parsers of damaged bytes fail in more ways than their documentation says.
    except Exception as error:
        raise _damaged(op, target, error) from error


def _damaged(op: str, target: Path, error: Exception) -> FileFormatError:
    return FileFormatError(f"{op}: {target} is damaged, or no {target.suffix} file: {error}")


def _checked(op: str, path: object) -> Path:
    if not isinstance(path, str | os.PathLike):
        raise ArgumentTypeError(f"{op}: expected a path, got {type(path).__name__}")
    target = Path(path)
    if target.suffix not in _FORMATS:
        raise ArgumentValueError(
            f"{op}: the path must end in {' or '.join(_FORMATS)}, which says the format, "
            f"got {os.fspath(path)!r}"
        )
    return target
