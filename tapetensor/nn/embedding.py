"""A table of vectors, looked up by integer ids."""

from __future__ import annotations

from typing import Any, Generic, overload

import numpy as np

from tapetensor.arguments import as_flag, as_size, check_rng
from tapetensor.arrays.array import Array, as_floating_dtype
from tapetensor.arrays.stand_ins import run_check
from tapetensor.errors import ArgumentValueError, AxisError
from tapetensor.kernels import indexing, tables
from tapetensor.nn import init
from tapetensor.nn.module import Module
from tapetensor.nn.typing import W
from tapetensor.tape import NoneTape
from tapetensor.tape.history import OWN, is_detached
from tapetensor.tensor import Tensor, Tensor2D, where
from tapetensor.tensor.apply import apply
from tapetensor.tensor.base import check_integers
from tapetensor.tensor.indexing import I
from tapetensor.typing import Ds, K, N, T


class Embedding(Module, Generic[N, K, W]):
    """A table of trained vectors, looked up by integer ids.

        weight[ids]

    Ids are integers, yet they may own a tape (``ids.trace()``): the output owns it then, and the
    table gets its gradient.

    Shape: ``(*Ds) -> (*Ds, embedding_features)``.
    Derivative: each cotangent is added to the row that it was read from.
    Initialization: normal with mean 0 and standard deviation 1, as PyTorch's.

    Args:
        num_embeddings: the number of rows, > 0.
        embedding_features: the size of a row, > 0.
        dtype: float32 or float64.
        rng: draws the initial values.
        padding_idx: an id that stands for no word: its row begins with zeros and gets no gradient;
            None for none.
        sparse: whether a backward pass keeps of the table's gradient the rows that were read alone,
            for large tables. `Gradients` give the whole of it to whoever asks, so that nothing else
            differs; `optim.Sgd` without momentum or decay, `optim.Adagrad` without decay and
            `optim.SparseAdam` update these rows alone, and other optimizers the whole table.

    Raises:
        ArgumentValueError: if a size is not > 0, or `padding_idx` is no row.
        ArgumentTypeError: if an argument is of the wrong kind.

    >>> import tapetensor as tt
    >>> from tapetensor import nn
    >>> table = nn.Embedding(10, 4, rng=np.random.default_rng(0))
    >>> table.forward(tt.from_numpy([1, 1, 3], shape=(3,), dtype=np.int64)).shape
    (3, 4)
    """

    weight: Tensor2D[N, K, NoneTape, W]
    num_embeddings: N
    embedding_features: K
    padding_idx: int | None
    sparse: bool

    @overload
    def __init__(
        self: Embedding[N, K, np.float32],
        num_embeddings: N,
        embedding_features: K,
        *,
        rng: np.random.Generator,
        padding_idx: int | None = None,
        sparse: bool = False,
    ) -> None: ...
    @overload
    def __init__(
        self,
        num_embeddings: N,
        embedding_features: K,
        dtype: type[W],
        *,
        rng: np.random.Generator,
        padding_idx: int | None = None,
        sparse: bool = False,
    ) -> None: ...
    def __init__(
        self,
        num_embeddings: N,
        embedding_features: K,
        dtype: type[Any] = np.float32,
        *,
        rng: np.random.Generator,
        padding_idx: int | None = None,
        sparse: bool = False,
    ) -> None:
        self.num_embeddings = as_size("Embedding", "num_embeddings", num_embeddings, low=1)
        features = as_size("Embedding", "embedding_features", embedding_features, low=1)
        self.embedding_features = features
        scalar_type = as_floating_dtype("Embedding", "weights", dtype)
        check_rng("Embedding", rng)
        self.sparse = as_flag("Embedding", "sparse", sparse)
        self.padding_idx = None
        if padding_idx is not None:
            self.padding_idx = as_size("Embedding", "padding_idx", padding_idx)
            if self.padding_idx >= self.num_embeddings:
                raise ArgumentValueError(
                    f"Embedding: padding_idx must be a row of the table, 0 to "
                    f"{self.num_embeddings - 1}, got {padding_idx!r}"
                )

        def first_values(shape: Any, kind: np.dtype[Any], rng: np.random.Generator) -> Array:
            rows = init.normal(1.0)(shape, kind, rng)
            if self.padding_idx is not None:
                rows[self.padding_idx] = 0
            return rows

        shape = (self.num_embeddings, features)
        self.weight = init.make(first_values, shape, scalar_type, rng)

    def forward(self, ids: Tensor[tuple[*Ds], T, I]) -> Tensor[tuple[*Ds, K], T, W]:
        """Return the rows at `ids`.

        Raises:
            AxisError: if an id is not a row of the table; unlike an index, it is never negative.
            DTypeError: if `ids` are not integers.
        """
        check_integers("Embedding", "ids", ids)
        run_check(_refuse_beyond, ids._array, self.num_embeddings)
        found: Any
        # What was computed, and is no leaf, hands its gradient on, which needs the whole of it.
        if self.sparse and _is_leaf(self.weight):
            found = apply(tables.take_rows, (self.weight, ids), keeps_dtype=False)
        else:
            found = apply(indexing.take, (self.weight, ids), (0,), keeps_dtype=False)
        if self.padding_idx is None:
            rows: Tensor[tuple[*Ds, K], T, W] = found
            return rows
        is_padding: Any = (ids.detach() == self.padding_idx).expand_dims(-1)
        row: Any = self.weight.detach()[self.padding_idx]
        masked: Tensor[tuple[*Ds, K], T, W] = where(is_padding, row, found)
        return masked


def _is_leaf(weight: Tensor[Any, Any, Any]) -> bool:
    history = weight.history
    return history is None or history is OWN or is_detached(history)


def _refuse_beyond(ids: Array, rows: int) -> None:
    if ids.size and not 0 <= ids.min() <= ids.max() < rows:
        raise AxisError(
            f"Embedding: ids of a table with {rows} rows range from 0 to "
            f"{rows - 1}, these from {ids.min()} to {ids.max()}"
        )
