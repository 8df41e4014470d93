"""Gradients of rows, of tables that few rows are read of: they travel as ids and rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from tapetensor.distributed.transport import Transport
from tapetensor.kernels.numerics.segments import segment_sum
from tapetensor.nn import Embedding, Module
from tapetensor.tape.row_sparse import RowSparse, changed, dense_of
from tapetensor.tensor import Tensor

# What a rank sends first: that it has the gradient of the whole table, or that of rows.
_WHOLE, _ROWS = b"w", b"r"


def tables_of(model: Module) -> dict[int, Tensor[Any, Any, Any]]:
    """Return, by their ids, the parameters whose layers keep gradients of rows."""
    trained = {tensor.id: tensor for tensor in model.parameters().values()}
    layers = [one for one in (model, *model.modules().values()) if isinstance(one, Embedding)]
    sparse = [layer.weight.id for layer in layers if layer.sparse]
    return {key: trained[key] for key in sparse if key in trained}


def reduced_table(
    transport: Transport, table: Tensor[Any, Any, Any], gradient: Any, divisor: int
) -> Any:
    """Return the gradient of a table, summed over all ranks and divided by a number.

    It is one of rows, unless that of a rank is one of the whole table. The ranks' rows are added in
    one order on every rank, so that all get the same bits.
    """
    content = b""
    if isinstance(gradient, RowSparse):
        ids, rows = gradient.summed()
        content = _ROWS + ids.astype(np.int64).tobytes() + rows.tobytes()
    elif gradient is not None:
        content = _WHOLE
    contents = [one for one in transport.gather(content) if one]
    if not contents:
        return None
    shape, dtype = table.shape, table.dtype
    if _WHOLE in contents:
        total = np.zeros(shape, dtype) if gradient is None else np.array(dense_of(gradient))
        transport.start_sum(total).wait()
        return total / divisor
    parts = [_received(one, shape[1], dtype) for one in contents]
    ids, rows = (np.concatenate(several) for several in zip(*parts, strict=True))
    summed = RowSparse.of(shape, dtype, segment_sum, ids, rows)
    return changed(summed, lambda values: values / divisor)


def _received(content: bytes, width: int, dtype: np.dtype[Any]) -> tuple[Any, Any]:
    """Return the ids and the rows that a rank has sent."""
    count = (len(content) - len(_ROWS)) // (np.dtype(np.int64).itemsize + width * dtype.itemsize)
    ids = np.frombuffer(content, np.int64, count, len(_ROWS))
    rows = np.frombuffer(content, dtype, offset=len(_ROWS) + ids.nbytes)
    return ids.astype(np.intp), rows.reshape(count, width)
