"""Tensors over files: elements that are read where and when they are needed."""

from __future__ import annotations

from typing import Any, overload

import numpy as np

from tapetensor.arguments import as_shape
from tapetensor.arrays.array import as_dtype, check_shape
from tapetensor.errors import ArgumentTypeError, ArgumentValueError, DTypeError
from tapetensor.tape import NoneTape
from tapetensor.tape.ids import next_id
from tapetensor.tensor.base import wrap
from tapetensor.tensor.tensor import Tensor
from tapetensor.typing import D, S


@overload
def from_memmap(array: np.ndarray[Any, np.dtype[D]]) -> Tensor[Any, NoneTape, D]: ...
@overload
def from_memmap(array: np.ndarray[Any, np.dtype[D]], shape: S) -> Tensor[S, NoneTape, D]: ...
def from_memmap(array: Any, shape: Any = None) -> Any:
    """Return a tensor over a file that is mapped into memory for reading; nothing is copied.

        x = tt.from_memmap(np.load("images.npy", mmap_mode="r"), (N, 3, 32, 32))

    The tensor borrows the file: its elements are read when an op, or a batch of
    `tapetensor.data.batches`, comes to them, and the system takes their memory back when it needs
    it. So data may be larger than memory. The file must stay as it is for as long as the tensor
    lives; what `from_numpy` makes is a copy, which depends on nobody.

    Args:
        array: a `numpy.memmap`, or a part of one, that nobody can write through: of mode "r".
        shape: what the shape is; it gives the tensor its static dims, and is checked. Without it
            the dims are `Any` to the type checker.

    Raises:
        ArgumentTypeError: if it is no such array.
        ArgumentValueError: if it can be written through.
        ShapeError: if the array does not have that shape.
        DTypeError: if a tensor cannot have its dtype, or it has another order of bytes.

    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> import tapetensor as tt
    >>> with TemporaryDirectory() as folder:
    ...     np.save(Path(folder) / "x.npy", np.ones((4, 2), np.float32))
    ...     x = tt.from_memmap(np.load(Path(folder) / "x.npy", mmap_mode="r"), (4, 2))
    ...     print((x * 2).sum().item())
    16.0
    """
    if not isinstance(array, np.memmap):
        raise ArgumentTypeError(
            f"from_memmap: expected a numpy.memmap, got {type(array).__name__}; write "
            'tt.from_memmap(np.load(path, mmap_mode="r")), or tt.from_numpy(...), which copies'
        )
    dtype = as_dtype("from_memmap", array.dtype)
    if dtype != array.dtype:
        raise DTypeError(
            f"from_memmap: the file has {array.dtype}, in another order of bytes than this machine "
            f"has; write it anew as {dtype}, or copy it with tt.from_numpy(...)"
        )
    file = array.base
    while isinstance(file, np.ndarray):
        file = file.base
    buffer: Any = file
    if array.flags.writeable or buffer is None or not memoryview(buffer).readonly:
        raise ArgumentValueError(
            "from_memmap: the array can be written through, which would change what a tape has "
            'recorded; open it with mode "r", or copy it with tt.from_numpy(...)'
        )
    if shape is not None:
        check_shape("from_memmap", array, as_shape("from_memmap", shape))
    return wrap(Tensor, np.asarray(array), next_id(), None)
