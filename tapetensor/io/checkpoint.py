"""Several parts in one file: all that training needs to go on where it was."""

from __future__ import annotations

import os

from tapetensor.errors import ArgumentValueError
from tapetensor.io.files import PathLike, open_file, write_file
from tapetensor.io.parts import Part, State, state_of
from tapetensor.io.state import read, restore


def save_checkpoint(path: PathLike, /, **parts: Part) -> None:
    """Write several parts to one file, as a whole or not at all.

        save_checkpoint("run.npz", model=model, optimizer=optimizer, rng=rng)

    Each part has the name of its argument, ``model.0.weight``. A training that goes on from the
    file takes the same steps, to the bit, as a training without a break, if the file holds the
    model, its optimizer (with `lr` and `steps`, which a schedule needs) and every generator that
    the training draws from.

    Args:
        path: a path that ends in ``.safetensors`` or ``.npz``, the format.
        **parts: modules, optimizers, numpy Generators and Notes.

    Raises:
        ArgumentValueError: if `path` ends otherwise, there is no part, or two would share names.
        ArgumentTypeError: if an argument is of the wrong kind.
        MissingDependencyError: if the format is safetensors, which is not installed.
        OSError: if the file cannot be written.

    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> import numpy as np
    >>> from tapetensor import io, nn, optim
    >>> rng = np.random.default_rng(0)
    >>> model = nn.Linear(3, 2, rng=rng)
    >>> optimizer = optim.Adam(model)
    >>> with TemporaryDirectory() as folder:
    ...     run = Path(folder) / "run.npz"
    ...     io.save_checkpoint(run, model=model, optimizer=optimizer, rng=rng)
    ...     io.load_checkpoint(run, model=model, optimizer=optimizer, rng=rng)
    """
    states = _states("save_checkpoint", parts)
    arrays = {
        prefix + name: array
        for prefix, state in states.items()
        for name, array in state.arrays().items()
    }
    write_file("save_checkpoint", path, arrays)


def load_checkpoint(path: PathLike, /, **parts: Part) -> None:
    """Load the states that `save_checkpoint` wrote into parts, all of them or none.

    Args:
        path: a path that ends in ``.safetensors`` or ``.npz``, the format.
        **parts: the parts under their names in the file. Other parts of the file are not read:
            ``load_checkpoint("run.npz", model=model)`` loads a model for use.

    Raises:
        StateMismatchError: if names, shapes, dtypes or values do not fit, with every difference.
        FileFormatError: if the file is damaged, of another format, or holds pickles.
        ArgumentValueError: if `path` ends otherwise, or there is no part.
        ArgumentTypeError: if an argument is of the wrong kind.
        MissingDependencyError: if the format is safetensors, which is not installed.
        OSError: if the file cannot be opened.
    """
    states = _states("load_checkpoint", parts)
    with open_file("load_checkpoint", path) as source:
        arrays = read(f"load_checkpoint: {os.fspath(path)} does", states, source)
    restore(states, arrays)


def _states(op: str, parts: dict[str, Part]) -> dict[str, State]:
    if not parts:
        raise ArgumentValueError(f"{op}: name the parts: model=model, optimizer=optimizer, say")
    for name in parts:
        for other in parts:
            if other.startswith(f"{name}."):
                raise ArgumentValueError(
                    f"{op}: the parts {name!r} and {other!r} would share names in the file; call "
                    "them something without dots"
                )
    return {f"{name}.": state_of(op, part) for name, part in parts.items()}
