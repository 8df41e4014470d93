"""Layers with one weight or two, tables of rows, and chance."""

from __future__ import annotations

import math
from typing import Any, Generic, overload

import numpy as np

from tapetensor.arguments import as_flag, as_number, as_size, check_rng
from tapetensor.arrays.array import Array, as_floating_dtype
from tapetensor.arrays.stand_ins import run_check
from tapetensor.errors import ArgumentValueError, AxisError
from tapetensor.kernels import indexing, linear_algebra
from tapetensor.nn import init
from tapetensor.nn.arguments import check_input
from tapetensor.nn.module import Module
from tapetensor.nn.typing import In, Out, W
from tapetensor.nn.views import is_training
from tapetensor.tape import NoneTape
from tapetensor.tape.history import OWN, is_detached
from tapetensor.tensor import Tensor, Tensor1D, Tensor2D, where
from tapetensor.tensor.apply import apply
from tapetensor.tensor.base import check_floating, check_integers, check_tensor
from tapetensor.tensor.indexing import I
from tapetensor.typing import Ds, F, K, N, S, T


class Linear(Module, Generic[In, Out, W]):
    """A matrix product and a shift along the last axis.

        x @ weight.T + bias

    Shape: ``(*Ds, in_features) -> (*Ds, out_features)``.
    Initialization: weight and bias uniform in ``(-1/sqrt(in_features), 1/sqrt(in_features))``, as
        PyTorch's.

    Args:
        in_features: the size of the last axis of the input, > 0.
        out_features: the size of the last axis of the output, > 0.
        dtype: float32 or float64.
        rng: draws the initial values.

    >>> import tapetensor as tt
    >>> from tapetensor import nn
    >>> layer = nn.Linear(3, 2, rng=np.random.default_rng(0))
    >>> layer.forward(tt.zeros((5, 3))).shape
    (5, 2)
    """

    weight: Tensor2D[Out, In, NoneTape, W]
    bias: Tensor1D[Out, NoneTape, W]
    in_features: In
    out_features: Out

    @overload
    def __init__(
        self: Linear[In, Out, np.float32],
        in_features: In,
        out_features: Out,
        *,
        rng: np.random.Generator,
    ) -> None: ...
    @overload
    def __init__(
        self, in_features: In, out_features: Out, dtype: type[W], *, rng: np.random.Generator
    ) -> None: ...
    def __init__(
        self,
        in_features: In,
        out_features: Out,
        dtype: type[Any] = np.float32,
        *,
        rng: np.random.Generator,
    ) -> None:
        self.in_features = as_size("Linear", "in_features", in_features, low=1)
        self.out_features = as_size("Linear", "out_features", out_features, low=1)
        scalar_type = as_floating_dtype("Linear", "weights", dtype)
        uniform = init.uniform(1.0 / math.sqrt(self.in_features))
        check_rng("Linear", rng)
        shape = (self.out_features, self.in_features)
        self.weight = init.make(uniform, shape, scalar_type, rng)
        self.bias = init.make(uniform, (self.out_features,), scalar_type, rng)

    def forward(self, x: Tensor[tuple[*Ds, In], T, W]) -> Tensor[tuple[*Ds, Out], T, W]:
        """Return ``x @ weight.T + bias``.

        Raises:
            ShapeError: if the last axis of `x` does not have the size `in_features`.
            DTypeError: if `x` has another dtype than the weights.
        """
        check_input("Linear", x, self.weight, self.in_features)
        return apply(linear_algebra.linear, (x, self.weight, self.bias))


class UnbiasedLinear(Module, Generic[In, Out, W]):
    """A matrix product along the last axis, without a shift.

        x @ weight.T

    A class of its own, and not an option of `Linear`, so that the type says there is no bias.

    Shape: ``(*Ds, in_features) -> (*Ds, out_features)``.
    Initialization: uniform in ``(-1/sqrt(in_features), 1/sqrt(in_features))``, as PyTorch's.

    Args:
        in_features: the size of the last axis of the input, > 0.
        out_features: the size of the last axis of the output, > 0.
        dtype: float32 or float64.
        rng: draws the initial values.

    >>> import tapetensor as tt
    >>> from tapetensor import nn
    >>> layer = nn.UnbiasedLinear(3, 2, rng=np.random.default_rng(0))
    >>> layer.forward(tt.zeros((1, 3)))
    Tensor([[0., 0.]], shape=(1, 2), dtype=float32, NoneTape)
    """

    weight: Tensor2D[Out, In, NoneTape, W]
    in_features: In
    out_features: Out

    @overload
    def __init__(
        self: UnbiasedLinear[In, Out, np.float32],
        in_features: In,
        out_features: Out,
        *,
        rng: np.random.Generator,
    ) -> None: ...
    @overload
    def __init__(
        self, in_features: In, out_features: Out, dtype: type[W], *, rng: np.random.Generator
    ) -> None: ...
    def __init__(
        self,
        in_features: In,
        out_features: Out,
        dtype: type[Any] = np.float32,
        *,
        rng: np.random.Generator,
    ) -> None:
        self.in_features = as_size("UnbiasedLinear", "in_features", in_features, low=1)
        self.out_features = as_size("UnbiasedLinear", "out_features", out_features, low=1)
        scalar_type = as_floating_dtype("UnbiasedLinear", "weights", dtype)
        uniform = init.uniform(1.0 / math.sqrt(self.in_features))
        check_rng("UnbiasedLinear", rng)
        shape = (self.out_features, self.in_features)
        self.weight = init.make(uniform, shape, scalar_type, rng)

    def forward(self, x: Tensor[tuple[*Ds, In], T, W]) -> Tensor[tuple[*Ds, Out], T, W]:
        """Return ``x @ weight.T``.

        Raises:
            ShapeError: if the last axis of `x` does not have the size `in_features`.
            DTypeError: if `x` has another dtype than the weight.
        """
        check_input("UnbiasedLinear", x, self.weight, self.in_features)
        return apply(linear_algebra.unbiased_linear, (x, self.weight))


class Bias1d(Module, Generic[N, W]):
    """Add a trained vector along the last axis.

        x + bias

    Shape: ``(*Ds, N) -> (*Ds, N)``.
    Initialization: 0.

    Args:
        features: the size of the last axis, > 0.
        dtype: float32 or float64.

    >>> import tapetensor as tt
    >>> from tapetensor import nn
    >>> nn.Bias1d(2).forward(tt.ones((3, 2))).shape
    (3, 2)
    """

    bias: Tensor1D[N, NoneTape, W]
    features: N

    @overload
    def __init__(self: Bias1d[N, np.float32], features: N) -> None: ...
    @overload
    def __init__(self, features: N, dtype: type[W]) -> None: ...
    def __init__(self, features: N, dtype: type[Any] = np.float32) -> None:
        self.features = as_size("Bias1d", "features", features, low=1)
        scalar_type = as_floating_dtype("Bias1d", "weights", dtype)
        self.bias = init.make(init.zeros, (self.features,), scalar_type, init.NO_RANDOMNESS)

    def forward(self, x: Tensor[tuple[*Ds, N], T, W]) -> Tensor[tuple[*Ds, N], T, W]:
        """Return ``x + bias``.

        Raises:
            ShapeError: if the last axis of `x` does not have the size of the layer.
            DTypeError: if `x` has another dtype than the bias.
        """
        check_input("Bias1d", x, self.bias, self.features)
        return x + self.bias


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
            found = apply(indexing.take_rows, (self.weight, ids), keeps_dtype=False)
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


class Dropout(Module):
    """Zero elements at random in training; the identity in inference.

        x * mask / (1 - p)

    `Tensor.dropout` as a layer: where the input owns a tape the model is being trained and a fresh
    mask is drawn, where it owns none the input is returned as it is. In what `inference` returned
    nothing is ever dropped.

    Shape: that of the input.
    Derivative: the same mask, scaled the same.

    Args:
        p: the probability of a zero, in [0, 1].
        rng: where the masks come from. Processes that are forked have copies of it in one state
            and draw the same masks: give each a child, ``drop.rng = rng.spawn(workers)[number]``.

    Raises:
        ArgumentValueError: if `p` lies outside [0, 1].

    Source: Srivastava et al. (2014), "Dropout: a simple way to prevent neural networks from
        overfitting".

    >>> import numpy as np
    >>> import tapetensor as tt
    >>> from tapetensor import nn
    >>> drop = nn.Dropout(0.5, rng=np.random.default_rng(0))
    >>> drop.forward(tt.ones((4,)))
    Tensor([1., 1., 1., 1.], shape=(4,), dtype=float32, NoneTape)
    >>> drop.forward(tt.ones((4,)).trace()).detach().numpy()
    array([2., 2., 2., 0.], dtype=float32)
    """

    p: float
    rng: np.random.Generator

    def __init__(self, p: float = 0.5, *, rng: np.random.Generator) -> None:
        self.p = as_number("Dropout", "p", p, at_least=0, at_most=1)
        check_rng("Dropout", rng)
        self.rng = rng

    def forward(self, x: Tensor[S, T, F]) -> Tensor[S, T, F]:
        """Return `x`, with elements dropped if it owns a tape."""
        return dropped(self, x, self.p, self.rng)


class DropoutOneIn(Module, Generic[N]):
    """Zero one element in `n` at random in training; the identity in inference.

    `Dropout` with ``p = 1 / n``, which the type says: ``DropoutOneIn[Literal[5]]``.

    Shape: that of the input.
    Derivative: the same mask, scaled the same.

    Args:
        n: one in how many, > 0.
        rng: where the masks come from.

    >>> from typing import Literal as L
    >>> import numpy as np
    >>> import tapetensor as tt
    >>> from tapetensor import nn
    >>> tt.build(nn.DropoutOneIn[L[5]], rng=np.random.default_rng(0))
    DropoutOneIn(n=5)
    """

    n: N
    rng: np.random.Generator

    def __init__(self, n: N, *, rng: np.random.Generator) -> None:
        self.n = as_size("DropoutOneIn", "n", n, low=1)
        check_rng("DropoutOneIn", rng)
        self.rng = rng

    def forward(self, x: Tensor[S, T, F]) -> Tensor[S, T, F]:
        """Return `x`, with elements dropped if it owns a tape."""
        return dropped(self, x, 1.0 / self.n, self.rng)


def dropped(
    module: Module, x: Tensor[S, T, F], p: float, rng: np.random.Generator
) -> Tensor[S, T, F]:
    """Return `x`, with elements dropped with probability `p` if the module trains on it."""
    layer = type(module).__name__
    check_tensor(layer, "the input", x)
    if p == 0.0 or not is_training(module, x):
        return x
    check_floating(layer, x)
    return x.dropout(p, rng=rng)
