"""Multi-head attention."""

from __future__ import annotations

from typing import Any, Generic, overload

import numpy as np

from tapetensor.arguments import as_size, check_rng
from tapetensor.arrays.dtypes import as_floating_dtype
from tapetensor.errors import ArgumentTypeError, ArgumentValueError
from tapetensor.nn.arguments import check_input
from tapetensor.nn.linear import Linear
from tapetensor.nn.module import Module
from tapetensor.nn.tapes import trained_together
from tapetensor.nn.typing import Embed, Heads, Keys, Values, W
from tapetensor.tape import NoneTape, OwnedTape
from tapetensor.tensor import Tensor, scaled_dot_product_attention
from tapetensor.tensor.attention import check_bias, mask_array, scores_shape
from tapetensor.tensor.base import check_not_spent
from tapetensor.tensor.tensor import Joins
from tapetensor.typing import Ds, M, N, T


class MultiHeadAttention(Module, Generic[Embed, Heads, W, Keys, Values]):
    """Attention of several heads, each of which looks at a part of the features.

        w_o(concat over heads of softmax(q @ k.T / sqrt(keys per head)) @ v)

    where ``q``, ``k`` and ``v`` are what ``w_q``, ``w_k`` and ``w_v`` make of query, key and value.

    Shape: ``(*Ds, M, in_features)`` for the query and ``(*Ds, N, in_features)`` for key and value
        give ``(*Ds, M, in_features)``.
    Tape: the output owns the tapes of all inputs, merged. If one owns a tape all weights are
        trained, also those that meet an input without one.
    Initialization: that of `Linear`.

    Args:
        in_features: the size of the last axis of all inputs, > 0.
        heads: how many heads; it divides `key_features` and `value_features`.
        key_features: the features of queries and keys, all heads together; `in_features` unless
            given.
        value_features: the features of values, all heads together; `in_features` unless given.
        dtype: float32 or float64.
        rng: where the first values come from.

    Raises:
        ArgumentValueError: if `heads` does not divide the features.

    Source: Vaswani et al. (2017), "Attention is all you need", section 3.2.2.

    >>> from typing import Literal as L
    >>> import tapetensor as tt
    >>> from tapetensor import nn
    >>> attention = tt.build(nn.MultiHeadAttention[L[8], L[2]], rng=np.random.default_rng(0))
    >>> attention.forward(tt.ones((5, 3, 8)), causal=True).shape
    (5, 3, 8)
    """

    w_q: Linear[Embed, Keys, W]
    w_k: Linear[Embed, Keys, W]
    w_v: Linear[Embed, Values, W]
    w_o: Linear[Values, Embed, W]
    in_features: Embed
    heads: Heads
    key_features: Keys
    value_features: Values

    @overload
    def __init__(
        self: MultiHeadAttention[Embed, Heads, np.float32, Embed, Embed],
        in_features: Embed,
        heads: Heads,
        *,
        rng: np.random.Generator,
    ) -> None: ...
    @overload
    def __init__(
        self: MultiHeadAttention[Embed, Heads, W, Embed, Embed],
        in_features: Embed,
        heads: Heads,
        dtype: type[W],
        *,
        rng: np.random.Generator,
    ) -> None: ...
    @overload
    def __init__(
        self: MultiHeadAttention[Embed, Heads, np.float32, Keys, Values],
        in_features: Embed,
        heads: Heads,
        *,
        key_features: Keys,
        value_features: Values,
        rng: np.random.Generator,
    ) -> None: ...
    @overload
    def __init__(
        self,
        in_features: Embed,
        heads: Heads,
        dtype: type[W],
        *,
        key_features: Keys,
        value_features: Values,
        rng: np.random.Generator,
    ) -> None: ...
    def __init__(
        self,
        in_features: Embed,
        heads: Heads,
        dtype: type[Any] = np.float32,
        *,
        key_features: Keys | None = None,
        value_features: Values | None = None,
        rng: np.random.Generator,
    ) -> None:
        self.in_features = as_size("MultiHeadAttention", "in_features", in_features, low=1)
        self.heads = as_size("MultiHeadAttention", "heads", heads, low=1)
        keys = self._width("key_features", key_features)
        values = self._width("value_features", value_features)
        scalar_type = as_floating_dtype("MultiHeadAttention", "weights", dtype).type
        check_rng("MultiHeadAttention", rng)
        self.key_features = keys
        self.value_features = values
        self.w_q = Linear(self.in_features, keys, scalar_type, rng=rng)
        self.w_k = Linear(self.in_features, keys, scalar_type, rng=rng)
        self.w_v = Linear(self.in_features, values, scalar_type, rng=rng)
        self.w_o = Linear(values, self.in_features, scalar_type, rng=rng)

    def _width(self, name: str, features: Any) -> Any:
        """Return the features of all heads, after checking that each gets as many."""
        given = self.in_features if features is None else features
        size: Any = as_size("MultiHeadAttention", name, given, low=1)
        if size % self.heads:
            raise ArgumentValueError(
                f"MultiHeadAttention: {self.heads} heads do not divide {name}={size} evenly"
            )
        return size

    @overload
    def forward(
        self,
        query: Tensor[tuple[*Ds, M, Embed], T, W],
        *,
        mask: Tensor[Any, NoneTape, np.bool_] | None = None,
        bias: Joins[Any, T, W] | None = None,
        causal: bool = False,
    ) -> Tensor[tuple[*Ds, M, Embed], T, W]: ...
    @overload
    def forward(
        self,
        query: Tensor[tuple[*Ds, M, Embed], T, W],
        key: Tensor[tuple[*Ds, N, Embed], T, W],
        value: Tensor[tuple[*Ds, N, Embed], T, W],
        *,
        mask: Tensor[Any, NoneTape, np.bool_] | None = None,
        bias: Joins[Any, T, W] | None = None,
        causal: bool = False,
    ) -> Tensor[tuple[*Ds, M, Embed], T, W]: ...
    @overload
    def forward(
        self,
        query: Tensor[tuple[*Ds, M, Embed], T, W],
        key: Tensor[tuple[*Ds, N, Embed], NoneTape, W],
        value: Tensor[tuple[*Ds, N, Embed], NoneTape, W],
        *,
        mask: Tensor[Any, NoneTape, np.bool_] | None = None,
        bias: Joins[Any, T, W] | None = None,
        causal: bool = False,
    ) -> Tensor[tuple[*Ds, M, Embed], T, W]: ...
    @overload
    def forward(
        self,
        query: Tensor[tuple[*Ds, M, Embed], Any, W],
        key: Tensor[tuple[*Ds, N, Embed], Any, W],
        value: Tensor[tuple[*Ds, N, Embed], Any, W],
        *,
        mask: Tensor[Any, NoneTape, np.bool_] | None = None,
        bias: Tensor[Any, Any, W] | None = None,
        causal: bool = False,
    ) -> Tensor[tuple[*Ds, M, Embed], OwnedTape, W]: ...
    def forward(
        self,
        query: Any,
        key: Any = None,
        value: Any = None,
        *,
        mask: Tensor[Any, NoneTape, np.bool_] | None = None,
        bias: Tensor[Any, Any, W] | None = None,
        causal: bool = False,
    ) -> Tensor[Any, Any, Any]:
        """Return what the heads found, joined.

        Args:
            query: what is looked for; alone, it is where it is looked for as well.
            key: what is found.
            value: what is read there.
            mask: bool, broadcasting to ``(*Ds, heads, M, N)``: True where a query sees a key.
            bias: what is added to the scores, to which it broadcasts, too; what PyTorch calls a
                mask of floats.
            causal: whether query ``i`` sees no key after the ``i``-th.

        Raises:
            ShapeError: if an input has another size than the layer, or the shapes do not fit.
            DTypeError: if an input or the bias has another dtype than the weights, or the mask is
                not bool.
            ArgumentTypeError: if only one of `key` and `value` is given.
        """
        check_input("MultiHeadAttention", query, self.w_q.weight, self.in_features)
        if key is None and value is None:
            check_not_spent("MultiHeadAttention", query)
            key, value = query.with_empty_tape(), query.with_empty_tape()
        elif key is None or value is None:
            raise ArgumentTypeError("MultiHeadAttention: give key and value, or neither of them")
        check_input("MultiHeadAttention", key, self.w_q.weight, self.in_features)
        check_input("MultiHeadAttention", value, self.w_q.weight, self.in_features)
        # Before anything is spent; the heads are one more of the leading axes.
        shape = scores_shape("MultiHeadAttention", query.shape, key.shape, value.shape)
        scores: Any = (*shape[:-2], self.heads, *shape[-2:])
        mask_array("MultiHeadAttention", mask, causal, scores)
        check_bias("MultiHeadAttention", bias, query, scores)
        query, key, value = trained_together(query, key, value)
        attended: Any = scaled_dot_product_attention(
            _parted(self.w_q.forward(query), self.heads),
            _parted(self.w_k.forward(key), self.heads),
            _parted(self.w_v.forward(value), self.heads),
            mask=mask,
            bias=bias,
            causal=causal,
        )
        joined = _swapped(attended).reshape((*shape[:-1], self.value_features))
        return self.w_o.forward(joined)


def _parted(x: Tensor[Any, Any, Any], heads: int) -> Any:
    """Return ``(*Ds, M, heads * n)`` as ``(*Ds, heads, M, n)``."""
    *leading, rows, features = x.shape
    parts = x.reshape((*leading, rows, heads, features // heads))
    return _swapped(parts)


def _swapped(x: Any) -> Any:
    """Return `x` with the third and the second axis from the end swapped."""
    rank = x.ndim
    return x.permute_dims((*range(rank - 3), rank - 2, rank - 3, rank - 1))
