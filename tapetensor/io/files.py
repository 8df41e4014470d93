"""Saving one part in a file, or several, and loading them: all that training needs to go on."""

from __future__ import annotations

import errno
import math
import os
import warnings
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TypeAlias

from tapetensor.arguments import as_flag, check_path
from tapetensor.arrays.array import Array, in_native_order
from tapetensor.errors import (
    ArgumentTypeError,
    ArgumentValueError,
    FileFormatError,
    StateMismatchError,
    TapeTensorError,
)
from tapetensor.io import npz, safetensors, state
from tapetensor.io.disk import BFLOAT16, PICKLE, Source, check_regular, write_atomically
from tapetensor.io.names import Loaded, Names, in_pytorch_names
from tapetensor.io.state import Part, State, in_memory, read_by_name, source_for, state_of

PathLike: TypeAlias = str | os.PathLike[str]

_FORMATS = {".npz": npz, ".safetensors": safetensors}
# PyTorch writes pickles under these, and with no rule which of them.
_PICKLES = {".pt", ".pth", ".bin", ".ckpt"}
# A checkpoint holds the states of several parts, in dicts and lists; numbers are left out.
_AS_SAFETENSORS = """
PyTorch's own files are pickles, which may run anything; with torch and safetensors.torch imported,
  state = torch.load({0!r}, map_location='cpu', weights_only=True)
  safetensors.torch.save_file((flat := lambda v, at='': {{at[1:]: v.contiguous().clone()}} if \
torch.is_tensor(v) else {{n: t for k, one in (v.items() if isinstance(v, dict) else enumerate(v) \
if isinstance(v, (list, tuple)) else ()) for n, t in flat(one, f'{{at}}.{{k}}').items()}})(state), \
{1!r})"""
_OTHERS_READ = {
    ".npy": "\nA .npy file holds one array, without a name: tt.from_numpy(numpy.load({0!r}))",
    ".onnx": "\nA model in the format ONNX is a program with weights; with onnx imported,\n"
    "  graph = onnx.load({0!r}).graph\n"
    "  io.load_state_dict(model, {{one.name: onnx.numpy_helper.to_array(one) for one in "
    "graph.initializer}})",
    **dict.fromkeys(_PICKLES, _AS_SAFETENSORS),
}
_OTHERS_WRITTEN = {
    ".npy": "\nA .npy file holds one array, without a name: numpy.save({0!r}, x.numpy())",
    ".onnx": "\nWhat writes a model in the format ONNX is tapetensor.onnx.export",
}
# Bytes of the dtypes that tensors have.
_SIZES = {
    "bool": 1,
    **{f"{kind}{bits}": bits // 8 for kind in ("int", "uint") for bits in (8, 16, 32, 64)},
    **{f"float{bits}": bits // 8 for bits in (16, 32, 64)},
}
# What `read` takes of memory at most: this, or that many times the size of the file.
_READ_AT_ONCE = 1 << 26
_MOST_INFLATED = 100


def save(path: PathLike, part: Part, *, for_pytorch: bool = False) -> None:
    """Write the state of a part to a file, as a whole or not at all.

    The file has all parameters and buffers under the names of PyTorch's ``state_dict`` and of dfdx,
    ``0.weight`` or ``hidden.bias``. A tensor with two names is saved under both. The names of
    attentions differ in PyTorch and dfdx: they are dfdx's, unless `for_pytorch` is given.

    Args:
        path: a path that ends in ``.safetensors`` or ``.npz``, the format. An existing file is
            replaced when the new one is complete.
        part: a module, an optimizer, a numpy Generator or Notes.
        for_pytorch: whether the weights of attentions are packed as PyTorch's ``load_state_dict``
            takes them; `load` takes both.

    Raises:
        ArgumentValueError: if `path` ends otherwise, or an attention cannot be one of PyTorch's.
        ArgumentTypeError: if an argument is of the wrong kind.
        MissingDependencyError: if the format is safetensors, which is not installed.
        OSError: if the file cannot be written.

    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> import numpy as np
    >>> from tapetensor import io, nn
    >>> model = nn.Linear(3, 2, rng=np.random.default_rng(0))
    >>> with TemporaryDirectory() as folder:
    ...     io.save(Path(folder) / "model.npz", model)
    ...     loaded = io.load(Path(folder) / "model.npz", model)
    """
    as_flag("save", "for_pytorch", for_pytorch)
    arrays = state_of("save", part).arrays()
    write_file("save", path, in_pytorch_names("save", part, arrays) if for_pytorch else arrays)


def load(path: PathLike, part: Part, *, names: Names | None = None, strict: bool = True) -> Loaded:
    """Load the state in a file into a part, all of it or none, and return a report.

    Names, shapes and dtypes are compared before any array is read. A file of the same architecture
    that PyTorch wrote can be loaded: its ``num_batches_tracked`` are left out, and the packed
    weights of its attentions are split. One name of a tensor with two names is enough. float16 and
    bfloat16 become float32 or float64, as the model has it, without a loss, and the report says so.
    Nothing in a file is executed.

    Args:
        path: a path that ends in ``.safetensors`` or ``.npz``, the format.
        part: a module, an optimizer, a numpy Generator or Notes, made as it was when it was saved.
            Its tensors keep their ids and get new data.
        names: a function from the names of the file to those of the module, or a dict of the names
            that differ. None in the place of a name leaves it out.
        strict: whether the file must have every name of the module and no other. If False, tensors
            that are not in the file keep their values. Shapes and dtypes must fit in any case.

    Returns:
        The names that were taken, left out, missing and converted.

    Raises:
        StateMismatchError: if names, shapes, dtypes or values do not fit, with every difference; or
            nothing would be taken.
        FileFormatError: if the file is damaged, of another format, or holds pickles.
        ArgumentValueError: if `path` ends otherwise, or `names` gives one name twice, or has one
            that is not in the file.
        ArgumentTypeError: if an argument is of the wrong kind.
        MissingDependencyError: if the format is safetensors, which is not installed.
        OSError: if the file cannot be opened.

    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> import numpy as np
    >>> from tapetensor import io, nn
    >>> rng = np.random.default_rng(0)
    >>> old = nn.Sequential(nn.Linear(3, 4, rng=rng), nn.ReLU(), nn.Linear(4, 2, rng=rng))
    >>> new = nn.Sequential(nn.Linear(3, 4, rng=rng), nn.ReLU(), nn.Linear(4, 5, rng=rng))
    >>> with TemporaryDirectory() as folder:
    ...     io.save(Path(folder) / "old.npz", old)
    ...     head = {"2.weight": None, "2.bias": None}
    ...     loaded = io.load(Path(folder) / "old.npz", new, names=head, strict=False)
    >>> print(loaded)
    taken: 2 of 4
    missing, as before: 2.weight, 2.bias
    left out: 2.weight, 2.bias
    """
    state = state_of("load", part)
    with open_file("load", path) as source:
        subject = f"{os.fspath(path)} does"
        loaded, values = read_by_name("load", subject, part, state, source, names, strict)
    state.restore(values)
    return loaded


def read(path: PathLike) -> dict[str, Array]:
    """Return all arrays of a file by name, so that names and layouts can be changed.

    `load_state_dict` takes the result. bfloat16, which numpy does not have, becomes float32,
    without a loss; float16 stays. Arrays that no tensor can have (float8, complex numbers, strings,
    pickles) are left out, and a warning names them and says why. Nothing in a file is executed.

    Args:
        path: a path that ends in ``.safetensors`` or ``.npz``, the format.

    Raises:
        FileFormatError: if the file is damaged, of another format, holds nothing that a tensor can
            be, or inflates to 100 times its size and more than 64 MiB.
        ArgumentValueError: if `path` ends otherwise.
        ArgumentTypeError: if `path` is none.
        MissingDependencyError: if the format is safetensors, which is not installed.
        OSError: if the file cannot be opened.

    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> import numpy as np
    >>> from tapetensor import io
    >>> with TemporaryDirectory() as folder:
    ...     io.write(Path(folder) / "body.npz", {"h.0.weight": np.ones((3, 2), np.float32)})
    ...     arrays = io.read(Path(folder) / "body.npz")
    >>> {name: (array.shape, str(array.dtype)) for name, array in arrays.items()}
    {'h.0.weight': ((3, 2), 'float32')}
    """
    with open_file("read", path) as source:
        size = 0
        names, left = [], []
        for name, (shape, dtype) in source.headers.items():
            stored = "float32" if dtype == BFLOAT16 else dtype
            if stored in _SIZES:
                size += math.prod(shape) * _SIZES[stored]
                names.append(name)
            else:
                left.append(f"{name!r} is {_said_of(dtype)}")
        if left:
            told = f"{os.fspath(path)}: {'; '.join(left)}"
            if not names:
                raise FileFormatError(f"read: {told}; there is nothing else in it")
            warnings.warn(f"read: {told}; the rest is read", stacklevel=2)
        if size > max(_READ_AT_ONCE, _MOST_INFLATED * os.stat(path).st_size):
            raise FileFormatError(
                f"read: {os.fspath(path)} inflates to {size} bytes, which no weights do; read what "
                "you trust with numpy.load"
            )
        return {name: source.array(name) for name in names}


def write(path: PathLike, arrays: Mapping[str, Array]) -> None:
    """Write arrays by name to a file, as a whole or not at all; `read` returns them.

    Args:
        path: a path that ends in ``.safetensors`` or ``.npz``, the format. An existing file is
            replaced when the new one is complete.
        arrays: numpy arrays of floats, integers or bools.

    Raises:
        ArgumentValueError: if `path` ends otherwise, or the format has no such name:
            ``__metadata__`` in ``.safetensors``, say. The file is as it was then.
        ArgumentTypeError: if an argument is of the wrong kind, or an array of another dtype.
        MissingDependencyError: if the format is safetensors, which is not installed.
        OSError: if the file cannot be written.

    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> import numpy as np
    >>> from tapetensor import io
    >>> with TemporaryDirectory() as folder:
    ...     io.write(Path(folder) / "arrays.npz", {"a": np.arange(3.0)})
    ...     print(io.read(Path(folder) / "arrays.npz")["a"])
    [0. 1. 2.]
    """
    for name, header in in_memory("write", arrays).headers.items():
        if header.dtype not in _SIZES:
            raise ArgumentTypeError(
                f"write: {name!r} is of {header.dtype}, and tensors are of floats of up to 64 "
                "bits, integers or bools"
            )
    write_file("write", path, arrays)


def write_file(op: str, path: PathLike, arrays: Mapping[str, Array]) -> None:
    """Write arrays by name in the format that the name of the file asks for."""
    target = _checked(op, path, _OTHERS_WRITTEN)
    arrays = {name: in_native_order(array) for name, array in arrays.items()}
    file_format = _FORMATS[target.suffix.lower()]
    told = _refusal_of_bytes(arrays) or file_format.refusal(arrays.keys())
    if told:
        raise ArgumentValueError(
            f"{op}: {target.suffix} files have no such names: {told}; write it under another name"
        )
    try:
        write_atomically(target, lambda temporary: file_format.write(temporary, arrays))
    except OSError as error:
        if error.errno is None:
            raise
        # With the name that was asked for in place of a temporary one; the number says the kind.
        raise OSError(error.errno, error.strerror, os.fspath(path)) from None


def _refusal_of_bytes(names: Iterable[str]) -> str:
    """Return which name has no bytes; empty if all have."""
    for name in names:
        try:
            name.encode()
        except UnicodeEncodeError as error:
            return f"{name!r} is no Unicode ({error.reason})"
    return ""


@contextmanager
def open_file(op: str, path: PathLike) -> Iterator[Source]:
    """Open a file for reading; what its parser stumbles over becomes a FileFormatError."""
    target = _checked(op, path, _OTHERS_READ)
    check_regular(target)
    with _parsing(op, target):
        reader = _FORMATS[target.suffix.lower()].Reader(target)

    def parsed(name: str) -> Array:
        # Of all that happens meanwhile only this may say that the file is damaged.
        with _parsing(op, target):
            array: Array = reader.array(name)
            return array

    with reader:
        try:
            yield Source(reader.headers, parsed)
        except StateMismatchError:
            # What does not fit may be what was damaged.
            with _parsing(op, target):
                reader.check()
            raise
        with _parsing(op, target):
            reader.check()


def _said_of(dtype: str) -> str:
    """Return why no tensor has a dtype that a file has."""
    if dtype == PICKLE:
        return "a pickle, which may run anything when it is loaded"
    scales = ", and whose numbers mean little without their scales" * dtype.startswith("f8")
    return f"of {dtype}, which no tensor is{scales}"


@contextmanager
def _parsing(op: str, target: Path) -> Iterator[None]:
    """Tell errors of a parser as errors of the file."""
    try:
        yield
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


def _checked(op: str, path: PathLike, others: Mapping[str, str]) -> Path:
    """Return a path whose suffix says the format; of some `others` the error says the way."""
    check_path(op, "path", path)
    target = Path(path)
    suffix = target.suffix.lower()
    if suffix not in _FORMATS:
        given = os.fspath(path)
        told = others.get(suffix, "").format(given, os.fspath(target.with_suffix(".safetensors")))
        raise ArgumentValueError(
            f"{op}: the path must end in {' or '.join(_FORMATS)}, which says the format, "
            f"got {given!r}{told}"
        )
    return target


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
        found = {
            f"{name}.": source_for("load_checkpoint", part, source.behind(f"{name}."))[0]
            for name, part in parts.items()
        }
        both = {prefix: (one, found[prefix]) for prefix, one in states.items()}
        arrays = state.read(f"load_checkpoint: {os.fspath(path)} does", both)
    for prefix, one in states.items():
        one.restore(arrays[prefix])


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
