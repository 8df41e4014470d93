"""Multi-head attention."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeAlias, overload

import numpy as np

from tapetensor.arguments import as_size, check_rng
from tapetensor.arrays.array import as_floating_dtype
from tapetensor.errors import ArgumentTypeError, refusal
from tapetensor.nn.arguments import check_input, trained_together
from tapetensor.nn.linear import Linear, UnbiasedLinear
from tapetensor.nn.module import Module
from tapetensor.nn.typing import Embed, Heads, Keys, Values, W
from tapetensor.rules import layers as rules
from tapetensor.rules.dims import Size, sized
from tapetensor.rules.windows import check_division
from tapetensor.tape import NoneTape, OwnedTape
from tapetensor.tensor import Tensor, scaled_dot_product_attention
from tapetensor.tensor.attention import check_bias, mask_array, scores_shape, truths
from tapetensor.tensor.tensor import Joins
from tapetensor.typing import Ds, M, N, T

# Which query sees which key, of all sequences and heads alike, or of each. One of three axes would
# have one for the batch or for the heads, and is refused where there is a batch.
Seen: TypeAlias = (
    Tensor[tuple[()], NoneTape, np.bool_]
    | Tensor[tuple[Any], NoneTape, np.bool_]
    | Tensor[tuple[Any, Any], NoneTape, np.bool_]
    | Tensor[tuple[Any, Any, Any, Any], NoneTape, np.bool_]
    | Tensor[tuple[Any, Any, Any, Any, Any], NoneTape, np.bool_]
    | Tensor[tuple[Any, Any, Any, Any, Any, Any], NoneTape, np.bool_]
)


class Attention(Module, Generic[Embed, Heads, W, Keys, Values]):
    """The base of attentions of several heads, with or without biases."""

    in_features: Embed
    heads: Heads
    key_features: Keys
    value_features: Values

    def _layers(
        self,
        kind: Callable[..., Any],
        sizes: tuple[Embed, Heads, Keys | None, Values | None],
        dtype: object,
        rng: np.random.Generator,
    ) -> list[Any]:
        """Return ``w_q``, ``w_k``, ``w_v`` and ``w_o``, layers of a kind, having checked sizes."""
        name = type(self).__name__
        self.in_features = as_size(name, "in_features", sizes[0], low=1)
        self.heads = as_size(name, "heads", sizes[1], low=1)
        given: list[Any] = [self.in_features if one is None else one for one in sizes[2:]]
        keys = as_size(name, "key_features", given[0], low=1)
        values = as_size(name, "value_features", given[1], low=1)
        features = {"key_features": Size.of(keys), "value_features": Size.of(values)}
        check_division(name, "heads", Size.of(self.heads), features)
        scalar_type = as_floating_dtype(name, "weights", dtype).type
        check_rng(name, rng)
        self.key_features, self.value_features = keys, values
        ends = [(self.in_features, width) for width in (keys, keys, values)]
        ends.append((values, self.in_features))
        return [kind(*pair, scalar_type, rng=rng) for pair in ends]

    @overload
    def forward(
        self,
        query: Tensor[tuple[*Ds, M, Embed], T, W],
        *,
        mask: Seen | None = None,
        keys_mask: Tensor[tuple[*Ds, M], NoneTape, np.bool_] | None = None,
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
        mask: Seen | None = None,
        keys_mask: Tensor[tuple[*Ds, N], NoneTape, np.bool_] | None = None,
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
        mask: Seen | None = None,
        keys_mask: Tensor[tuple[*Ds, N], NoneTape, np.bool_] | None = None,
        bias: Joins[Any, T, W] | None = None,
        causal: bool = False,
    ) -> Tensor[tuple[*Ds, M, Embed], T, W]: ...
    # Last of those that begin with `T`, because from `Joins` ty does not know all sizes.
    @overload
    def forward(
        self,
        query: Tensor[tuple[*Ds, M, Embed], T, W],
        key: Joins[tuple[*Ds, N, Embed], T, W],
        value: Joins[tuple[*Ds, N, Embed], T, W],
        *,
        mask: Seen | None = None,
        keys_mask: Tensor[tuple[*Ds, N], NoneTape, np.bool_] | None = None,
        bias: Joins[Any, T, W] | None = None,
        causal: bool = False,
    ) -> Tensor[tuple[*Ds, M, Embed], T, W]: ...
    @overload
    def forward(
        self,
        query: Tensor[tuple[*Ds, M, Embed], NoneTape, W],
        key: Tensor[tuple[*Ds, N, Embed], T, W],
        value: Joins[tuple[*Ds, N, Embed], T, W],
        *,
        mask: Seen | None = None,
        keys_mask: Tensor[tuple[*Ds, N], NoneTape, np.bool_] | None = None,
        bias: Joins[Any, T, W] | None = None,
        causal: bool = False,
    ) -> Tensor[tuple[*Ds, M, Embed], T, W]: ...
    @overload
    def forward(
        self,
        query: Tensor[tuple[*Ds, M, Embed], NoneTape, W],
        key: Tensor[tuple[*Ds, N, Embed], NoneTape, W],
        value: Tensor[tuple[*Ds, N, Embed], T, W],
        *,
        mask: Seen | None = None,
        keys_mask: Tensor[tuple[*Ds, N], NoneTape, np.bool_] | None = None,
        bias: Joins[Any, T, W] | None = None,
        causal: bool = False,
    ) -> Tensor[tuple[*Ds, M, Embed], T, W]: ...
    # Of one sequence a mask of three axes has one for the heads.
    @overload
    def forward(
        self,
        query: Tensor[tuple[M, Embed], T, W],
        key: Joins[tuple[N, Embed], T, W] | None = None,
        value: Joins[tuple[N, Embed], T, W] | None = None,
        *,
        mask: Tensor[tuple[Any, Any, Any], NoneTape, np.bool_],
        keys_mask: Tensor[tuple[N], NoneTape, np.bool_] | None = None,
        bias: Joins[Any, T, W] | None = None,
        causal: bool = False,
    ) -> Tensor[tuple[M, Embed], T, W]: ...
    @overload
    def forward(
        self,
        query: Tensor[tuple[*Ds, M, Embed], Any, W],
        key: Tensor[tuple[*Ds, N, Embed], Any, W],
        value: Tensor[tuple[*Ds, N, Embed], Any, W],
        *,
        mask: Seen | None = None,
        keys_mask: Tensor[tuple[*Ds, N], NoneTape, np.bool_] | None = None,
        bias: Tensor[Any, Any, W] | None = None,
        causal: bool = False,
    ) -> Tensor[tuple[*Ds, M, Embed], OwnedTape, W]: ...
    def forward(
        self,
        query: Any,
        key: Any = None,
        value: Any = None,
        *,
        mask: Any = None,
        keys_mask: Tensor[Any, NoneTape, np.bool_] | None = None,
        bias: Tensor[Any, Any, W] | None = None,
        causal: bool = False,
    ) -> Tensor[Any, Any, Any]:
        """Return the joined results of the heads.

        Args:
            query: the queries; alone, they are the keys and the values, too.
            key: the keys, with which queries are compared.
            value: the values, whose mean is returned.
            mask: bool, broadcasting to ``(*Ds, heads, M, N)``: True where a query sees a key. Give
                it the axes of queries and keys alone, or all these axes: an axis of the batch would
                meet that of the heads.
            keys_mask: bool, ``(*Ds, N)``: False for padding.
            bias: a term of the scores, to which it broadcasts, too. PyTorch calls it a mask of
                floats.
            causal: whether query ``i`` sees no key after the ``i``-th.

        Raises:
            ShapeError: if an input has another size than the layer, or the shapes do not fit.
            DTypeError: if an input or the bias has another dtype than the weights, or a mask is not
                bool.
            ArgumentTypeError: if only one of `key` and `value` is given.
        """
        op, own = type(self).__name__, ("w_q", "w_k", "w_v", "w_o")
        w_q, w_k, w_v, w_o = [getattr(self, name) for name in own]
        check_input(op, query, w_q.weight, self.in_features)
        if key is None and value is None:
            key, value = query, query
        elif key is None or value is None:
            raise ArgumentTypeError(f"{op}: give key and value, or neither of them")
        check_input(op, key, w_q.weight, self.in_features)
        check_input(op, value, w_q.weight, self.in_features)
        # The heads are one more of the leading axes.
        shape = scores_shape(op, query.shape, key.shape, value.shape)
        scores: Any = (*shape[:-2], self.heads, *shape[-2:])
        mask_array(op, mask, causal, scores, rules.OR_KEYS)
        mask = _with_keys(op, mask, keys_mask, key)
        check_bias(op, bias, query, scores)
        query, key, value = trained_together(query, key, value)
        attended: Any = scaled_dot_product_attention(
            _parted(w_q.forward(query), self.heads),
            _parted(w_k.forward(key), self.heads),
            _parted(w_v.forward(value), self.heads),
            mask=mask,
            bias=bias,
            causal=causal,
        )
        joined = _swapped(attended).reshape((*shape[:-1], self.value_features))
        found: Tensor[Any, Any, Any] = w_o.forward(joined)
        return found


class MultiHeadAttention(Attention[Embed, Heads, W, Keys, Values]):
    """Attention of several heads, each of which looks at a part of the features.

        w_o(concat over heads of softmax(q @ k.T / sqrt(keys per head)) @ v)

    where ``q``, ``k`` and ``v`` are the outputs of ``w_q``, ``w_k`` and ``w_v`` for query, key and
    value.

    Shape: ``(*Ds, M, in_features)`` for the query and ``(*Ds, N, in_features)`` for key and value
        give ``(*Ds, M, in_features)``.

    If one input has a tape, all weights are trained, also those that meet an input without one.

    Initialization: that of `Linear`.

    Args:
        in_features: the size of the last axis of all inputs, > 0.
        heads: how many heads; it divides `key_features` and `value_features`.
        key_features: the features of queries and keys, all heads together; `in_features` unless
            given.
        value_features: the features of values, all heads together; `in_features` unless given.
        dtype: float32 or float64.
        rng: draws the initial values.

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
        sizes = in_features, heads, key_features, value_features
        self.w_q, self.w_k, self.w_v, self.w_o = self._layers(Linear, sizes, dtype, rng)


class UnbiasedMultiHeadAttention(Attention[Embed, Heads, W, Keys, Values]):
    """`MultiHeadAttention` whose four layers have no bias.

    A class of its own, as `UnbiasedLinear`, so that the type says there is none. Shapes, tapes,
    sizes, errors and source are those of `MultiHeadAttention`.

    >>> from typing import Literal as L
    >>> import tapetensor as tt
    >>> from tapetensor import nn
    >>> layer = nn.UnbiasedMultiHeadAttention[L[8], L[2]]
    >>> list(tt.build(layer, rng=np.random.default_rng(0)).parameters())
    ['w_q.weight', 'w_k.weight', 'w_v.weight', 'w_o.weight']
    """

    w_q: UnbiasedLinear[Embed, Keys, W]
    w_k: UnbiasedLinear[Embed, Keys, W]
    w_v: UnbiasedLinear[Embed, Values, W]
    w_o: UnbiasedLinear[Values, Embed, W]

    @overload
    def __init__(
        self: UnbiasedMultiHeadAttention[Embed, Heads, np.float32, Embed, Embed],
        in_features: Embed,
        heads: Heads,
        *,
        rng: np.random.Generator,
    ) -> None: ...
    @overload
    def __init__(
        self: UnbiasedMultiHeadAttention[Embed, Heads, W, Embed, Embed],
        in_features: Embed,
        heads: Heads,
        dtype: type[W],
        *,
        rng: np.random.Generator,
    ) -> None: ...
    @overload
    def __init__(
        self: UnbiasedMultiHeadAttention[Embed, Heads, np.float32, Keys, Values],
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
        sizes = in_features, heads, key_features, value_features
        self.w_q, self.w_k, self.w_v, self.w_o = self._layers(UnbiasedLinear, sizes, dtype, rng)


def _with_keys(
    op: str,
    mask: Tensor[Any, NoneTape, np.bool_] | None,
    keys_mask: Tensor[Any, NoneTape, np.bool_] | None,
    key: Tensor[Any, Any, Any],
) -> Tensor[Any, NoneTape, np.bool_] | None:
    """Return the mask with keys hidden, of every query and head, that are not there."""
    if keys_mask is None:
        return mask
    shape = truths(op, "keys_mask", "for a key that is there", keys_mask).shape
    if shape != key.shape[:-1]:
        raise refusal(lambda: rules.check_keys_mask(op, sized(shape), sized(key.shape)))
    there: Tensor[Any, NoneTape, np.bool_] = keys_mask.reshape((*shape[:-1], 1, 1, shape[-1]))
    return there if mask is None else mask & there


def _parted(x: Tensor[Any, Any, Any], heads: int) -> Any:
    """Return ``(*Ds, M, heads * n)`` as ``(*Ds, heads, M, n)``."""
    *leading, rows, features = x.shape
    parts = x.reshape((*leading, rows, heads, features // heads))
    return _swapped(parts)


def _swapped(x: Any) -> Any:
    """Return `x` with the third and the second axis from the end swapped."""
    rank = x.ndim
    return x.permute_dims((*range(rank - 3), rank - 2, rank - 3, rank - 1))
