"""Rows for training, and rows that are held out."""

from __future__ import annotations

from typing import Any, overload

import numpy as np

from tapetensor.arguments import as_number, check_rng
from tapetensor.data.rows import E, Es, G, Gs, Rows, rows_in
from tapetensor.errors import ArgumentValueError
from tapetensor.tape import NoneTape
from tapetensor.tensor import Tensor, from_numpy
from tapetensor.typing import D, Ds, N


@overload
def split(
    data: Rows[N, *Ds, D], /, *, held_out: float, rng: np.random.Generator | None = None
) -> tuple[Rows[Any, *Ds, D], Rows[Any, *Ds, D]]: ...
@overload
def split(
    data: Rows[N, *Ds, D],
    data2: Rows[N, *Es, E],
    /,
    *,
    held_out: float,
    rng: np.random.Generator | None = None,
) -> tuple[
    tuple[Rows[Any, *Ds, D], Rows[Any, *Es, E]], tuple[Rows[Any, *Ds, D], Rows[Any, *Es, E]]
]: ...
@overload
def split(
    data: Rows[N, *Ds, D],
    data2: Rows[N, *Es, E],
    data3: Rows[N, *Gs, G],
    /,
    *,
    held_out: float,
    rng: np.random.Generator | None = None,
) -> tuple[
    tuple[Rows[Any, *Ds, D], Rows[Any, *Es, E], Rows[Any, *Gs, G]],
    tuple[Rows[Any, *Ds, D], Rows[Any, *Es, E], Rows[Any, *Gs, G]],
]: ...
def split(
    *tensors: Tensor[Any, NoneTape, Any], held_out: float, rng: np.random.Generator | None = None
) -> tuple[Any, Any]:
    """Return the rows of up to three tensors in two parts: for training, and held out.

    The parts of one tensor are tensors, those of several are tuples of tensors. Rows that belong
    together, such as those of one patient, must all be in one part: split such data by hand.

    Shape: ``(N, *Ds) -> (N - n, *Ds), (n, *Ds)`` for ``n = round(held_out * N)``.

    Args:
        tensors: plain tensors with equal numbers of rows.
        held_out: the share of the rows in the second part, between 0 and 1.
        rng: draws the rows of the second part. Without it they are the last rows, as for series in
            time.

    Raises:
        ShapeError: if the tensors have not as many rows each.
        ArgumentTypeError: if an argument is of the wrong kind.
        ArgumentValueError: if the share is out of its range, or leaves a part without rows.
        UntracedTensorError: if a tensor owns a tape.

    >>> import tapetensor as tt
    >>> training, last = split(tt.arange(5), held_out=0.4)
    >>> training.tolist(), last.tolist()
    ([0, 1, 2], [3, 4])
    """
    rows = rows_in("split", tensors, low=1)
    share = as_number("split", "held_out", held_out, above=0, below=1)
    if rng is not None:
        check_rng("split", rng)
    count = rows - round(share * rows)
    if not 0 < count < rows:
        raise ArgumentValueError(
            f"split: held_out={held_out!r} of {rows} rows leaves a part without any"
        )
    order = np.arange(rows) if rng is None else rng.permutation(rows)
    first, second = (
        tuple([tensor.take(from_numpy(chosen)) for tensor in tensors])
        for chosen in (order[:count], order[count:])
    )
    return (first, second) if len(tensors) > 1 else (first[0], second[0])
