"""The encoder, the decoder and both: the transformer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, overload

import numpy as np
from typing_extensions import TypeVar

from tapetensor.errors import ArgumentValueError
from tapetensor.nn.arguments import check_sequences, trained_together
from tapetensor.nn.attention import MultiHeadAttention, Seen
from tapetensor.nn.composed_activations import ACTIVATIONS, ActivationName
from tapetensor.nn.containers import Repeated
from tapetensor.nn.fields import options, repeat
from tapetensor.nn.linear import Dropout, Linear
from tapetensor.nn.module import Module
from tapetensor.nn.normalization import LayerNorm
from tapetensor.nn.typing import Heads, Hidden, In, W
from tapetensor.tape import NoneTape
from tapetensor.tensor import Tensor
from tapetensor.tensor.base import check_tensor
from tapetensor.typing import Ds, M, N, T

Encoders = TypeVar("Encoders", bound=int)
Decoders = TypeVar("Decoders", bound=int)


class TransformerBlock(Module):
    """The base of the blocks of encoders and decoders."""

    drop: Dropout = options(p=0.0)
    activation: ActivationName | Callable[[Tensor[Any, Any, Any]], Tensor[Any, Any, Any]] = "relu"
    norm_first: bool = False

    def _added(self, x: Any, norm: LayerNorm[Any, Any], branch: Callable[[Any], Any]) -> Any:
        """Return `x` and what a branch makes of it, normalized after the sum or before it."""
        if self.norm_first:
            return x + self.drop.forward(branch(norm.forward(x)))
        return norm.forward(x + self.drop.forward(branch(x)))

    def _fed(self, x: Any, first: Linear[Any, Any, Any], second: Linear[Any, Any, Any]) -> Any:
        """Return what the feed-forward layer makes of `x`."""
        bend: Any = self.activation
        hidden = (bend if callable(bend) else ACTIVATIONS[bend])(first.forward(x))
        return second.forward(self.drop.forward(hidden))


class EncoderBlock(TransformerBlock, Generic[In, Heads, Hidden, W]):
    """Attention of a sequence to itself and a feed-forward layer, each added to its input.

        y = norm1(x + drop(self_attn(x)))
        norm2(y + drop(linear2(drop(activation(linear1(y))))))

    or, with ``norm_first=True``, ``y = x + drop(self_attn(norm1(x)))``, and so on.

    Built from its sizes: ``EncoderBlock[features, heads, hidden features]``. As a field of a module
    it takes ``nn.options(norm_first=True, activation="gelu")``: the name of any activation, as of
    PyTorch's functions, or a function or a module that makes a tensor of one. Nothing is dropped
    unless ``block.drop.p`` says so; the weights of the attention never are, other than PyTorch's.

    Shape: ``(*Ds, N, In) -> (*Ds, N, In)``.

    Source: Vaswani et al. (2017), "Attention is all you need", section 3.1.

    >>> from typing import Literal as L
    >>> import tapetensor as tt
    >>> from tapetensor import nn
    >>> block = tt.build(nn.EncoderBlock[L[8], L[2], L[16]], rng=np.random.default_rng(0))
    >>> block.forward(tt.ones((5, 3, 8))).shape
    (5, 3, 8)
    """

    self_attn: MultiHeadAttention[In, Heads, W]
    norm1: LayerNorm[In, W]
    linear1: Linear[In, Hidden, W]
    linear2: Linear[Hidden, In, W]
    norm2: LayerNorm[In, W]

    def forward(
        self,
        x: Tensor[tuple[*Ds, N, In], T, W],
        *,
        mask: Seen | None = None,
        keys_mask: Tensor[tuple[*Ds, N], NoneTape, np.bool_] | None = None,
        causal: bool = False,
    ) -> Tensor[tuple[*Ds, N, In], T, W]:
        """Return the sequence encoded.

        Args:
            x: the sequence.
            mask: bool, broadcasting to ``(*Ds, Heads, N, N)``: True where a place sees another; of
                places alone, or with all these axes.
            keys_mask: bool, ``(*Ds, N)``: True for a place that is there, False for padding.
            causal: whether a place sees none after it.

        Raises:
            ShapeError: if the last axis does not have the size of the block, or a mask does not
                fit.
            DTypeError: if `x` has another dtype than the weights, or a mask is not bool.
        """
        seen: Any = {"mask": mask, "keys_mask": keys_mask, "causal": causal}
        y = self._added(x, self.norm1, lambda x: self.self_attn.forward(x, **seen))
        result: Tensor[tuple[*Ds, N, In], T, W] = self._added(
            y, self.norm2, lambda y: self._fed(y, self.linear1, self.linear2)
        )
        return result


class DecoderBlock(TransformerBlock, Generic[In, Heads, Hidden, W]):
    """Attention of a sequence to its past, attention to a memory, and a feed-forward layer.

        y = norm1(x + drop(self_attn(x)))
        z = norm2(y + drop(cross_attn(y, memory, memory)))
        norm3(z + drop(linear2(drop(activation(linear1(z))))))

    Built from its sizes: ``DecoderBlock[features, heads, hidden features]``. It has the options of
    `EncoderBlock`.

    Shape: ``(*Ds, N, In)`` and a memory ``(*Ds, M, In)`` give ``(*Ds, N, In)``.

    If one input has a tape, all weights are trained.

    Source: Vaswani et al. (2017), "Attention is all you need", section 3.1.

    >>> from typing import Literal as L
    >>> import tapetensor as tt
    >>> from tapetensor import nn
    >>> block = tt.build(nn.DecoderBlock[L[8], L[2], L[16]], rng=np.random.default_rng(0))
    >>> block.forward(tt.ones((5, 3, 8)), tt.ones((5, 7, 8))).shape
    (5, 3, 8)
    """

    self_attn: MultiHeadAttention[In, Heads, W]
    norm1: LayerNorm[In, W]
    cross_attn: MultiHeadAttention[In, Heads, W]
    norm2: LayerNorm[In, W]
    linear1: Linear[In, Hidden, W]
    linear2: Linear[Hidden, In, W]
    norm3: LayerNorm[In, W]

    @overload
    def forward(
        self,
        x: Tensor[tuple[*Ds, N, In], T, W],
        memory: Tensor[tuple[*Ds, M, In], T, W],
        *,
        causal: bool = True,
    ) -> Tensor[tuple[*Ds, N, In], T, W]: ...
    @overload
    def forward(
        self,
        x: Tensor[tuple[*Ds, N, In], T, W],
        memory: Tensor[tuple[*Ds, M, In], NoneTape, W],
        *,
        causal: bool = True,
    ) -> Tensor[tuple[*Ds, N, In], T, W]: ...
    @overload
    def forward(
        self,
        x: Tensor[tuple[*Ds, N, In], NoneTape, W],
        memory: Tensor[tuple[*Ds, M, In], T, W],
        *,
        causal: bool = True,
    ) -> Tensor[tuple[*Ds, N, In], T, W]: ...
    def forward(self, x: Any, memory: Any, *, causal: bool = True) -> Tensor[Any, Any, Any]:
        """Return the sequence decoded.

        Args:
            x: the sequence.
            memory: the output of the encoder.
            causal: whether a place of `x` sees no place of `x` after it.

        Raises:
            ShapeError: if the last axes do not have the size of the block.
            DTypeError: if an input has another dtype than the weights.
        """
        check_sequences("DecoderBlock", ("x", "memory"), (x, memory), self.norm1.weight)
        x, memory = trained_together(x, memory)
        key, value = memory, memory
        y = self._added(x, self.norm1, lambda x: self.self_attn.forward(x, causal=causal))
        z = self._added(y, self.norm2, lambda y: self.cross_attn.forward(y, key, value))
        result: Tensor[Any, Any, Any] = self._added(
            z, self.norm3, lambda z: self._fed(z, self.linear1, self.linear2)
        )
        return result


class Transformer(Module, Generic[In, Heads, Hidden, Encoders, Decoders, W]):
    """A stack of encoder blocks, and a stack of decoder blocks that see its output.

    Built from its sizes: ``Transformer[features, heads, hidden features, encoders, decoders]``.

    Shape: a source ``(*Ds, M, In)`` and a target ``(*Ds, N, In)`` give ``(*Ds, N, In)``.

    If one input has a tape, all weights are trained.

    Source: Vaswani et al. (2017), "Attention is all you need".

    >>> from typing import Literal as L
    >>> import tapetensor as tt
    >>> from tapetensor import nn
    >>> sizes = nn.Transformer[L[8], L[2], L[16], L[1], L[2]]
    >>> model = tt.build(sizes, rng=np.random.default_rng(0))
    >>> model.forward(tt.ones((5, 7, 8)), tt.ones((5, 3, 8))).shape
    (5, 3, 8)
    """

    encoder: Repeated[EncoderBlock[In, Heads, Hidden, W], Encoders]
    decoder: list[DecoderBlock[In, Heads, Hidden, W]] = repeat("Decoders")

    @overload
    def forward(
        self,
        source: Tensor[tuple[*Ds, M, In], T, W],
        target: Tensor[tuple[*Ds, N, In], T, W],
        *,
        causal: bool = True,
    ) -> Tensor[tuple[*Ds, N, In], T, W]: ...
    @overload
    def forward(
        self,
        source: Tensor[tuple[*Ds, M, In], T, W],
        target: Tensor[tuple[*Ds, N, In], NoneTape, W],
        *,
        causal: bool = True,
    ) -> Tensor[tuple[*Ds, N, In], T, W]: ...
    @overload
    def forward(
        self,
        source: Tensor[tuple[*Ds, M, In], NoneTape, W],
        target: Tensor[tuple[*Ds, N, In], T, W],
        *,
        causal: bool = True,
    ) -> Tensor[tuple[*Ds, N, In], T, W]: ...
    def forward(self, source: Any, target: Any, *, causal: bool = True) -> Tensor[Any, Any, Any]:
        """Return the target decoded beside the encoded source.

        Args:
            source: the sequence that is encoded.
            target: the sequence that is decoded.
            causal: whether a place of the target sees no place of the target after it.

        Raises:
            ShapeError: if the last axes do not have the size of the model.
            DTypeError: if an input has another dtype than the weights.
        """
        check_tensor("Transformer", "the source", source)
        check_tensor("Transformer", "the target", target)
        if not self.decoder:
            raise ArgumentValueError("Transformer: the decoder has no block")
        weight = self.decoder[0].norm1.weight
        check_sequences("Transformer", ("source", "target"), (source, target), weight)
        source, x = trained_together(source, target)
        memory: Any = self.encoder.forward(source)
        *others, last = self.decoder
        for block in others:
            x = block.forward(x, memory, causal=causal)
        result: Tensor[Any, Any, Any] = last.forward(x, memory, causal=causal)
        return result
