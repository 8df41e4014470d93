# Layers that are given what they cannot take.

from typing import Any
from typing import Literal as L

import numpy as np

import tapetensor as tt
from tapetensor import NoneTape, Tensor2D, Tensor3D, nn
from tapetensor.nn.composed_activations import ActivationName
from tests.typing.operands import m, md, mi, v, z

rng: np.random.Generator
rows: Tensor2D[L[3], L[8]]
tokens: Tensor3D[L[3], L[5], L[8]]
state: Tensor2D[L[3], L[6]]
padding: Tensor3D[L[3], L[1], L[5], NoneTape, np.bool_]
there: Tensor2D[L[3], L[6], NoneTape, np.bool_]
unbiased: nn.UnbiasedLinear[L[8], L[2]]
bias: nn.Bias1d[L[8]]
attention: nn.MultiHeadAttention[L[8], L[2]]
encoder: nn.EncoderBlock[L[8], L[2], L[16]]
decoder: nn.DecoderBlock[L[8], L[2], L[16]]
gru: nn.GRU[L[8], L[6]]
lstm: nn.LSTM[L[8], L[6]]
cell: nn.GRUCell[L[8], L[6]]
deep: nn.StackedGRU[L[8], L[6], L[2]]

def takes_name(activation: ActivationName) -> None: ...
def wants_plain(x: Tensor2D[L[3], L[2]]) -> None: ...
def wants_rows(x: Tensor2D[L[3], L[2], Any]) -> None: ...

unbiased.forward(m)  # type: ignore[arg-type]  # 3 features, not 8
unbiased.bias  # type: ignore[attr-defined]  # there is none
wants_plain(unbiased.forward(rows.trace()))  # type: ignore[arg-type]  # the output owns a tape
bias.forward(z)  # type: ignore[arg-type]  # 3 features, not 8
bias.forward(md)  # type: ignore[arg-type]  # another dtype
nn.Bias1d(8, np.int64)  # type: ignore[type-var]  # integers are not trained
nn.PReLU("0.1")  # type: ignore[call-overload]  # no dtype
nn.LeakyReLU("0.1")  # type: ignore[arg-type]  # no number
nn.DropoutOneIn(5)  # type: ignore[call-arg]  # masks need an rng
nn.SELU().forward(mi)  # type: ignore[type-var]  # integers
nn.Threshold(0.1)  # type: ignore[call-arg]  # the value is missing
nn.InstanceNorm2d().forward(m)  # type: ignore[arg-type]  # no images
nn.CELU("1")  # type: ignore[arg-type]  # no number
nn.ResidualAdd(m)  # type: ignore[type-var]  # a tensor is no module
nn.ResidualAdd(nn.Tanh()).forward(mi)  # type: ignore[type-var]  # integers
wants_rows(nn.ResidualAdd(unbiased).forward(rows))  # type: ignore[arg-type]  # a residual keeps the shape
nn.Repeated(nn.Tanh())  # type: ignore[arg-type, call-arg]  # the layers go by name, in a list
nn.Flatten().forward(1.0)  # type: ignore[arg-type]  # no tensor
nn.AddInto(nn.Tanh(), nn.Tanh()).forward(m)  # type: ignore[call-overload]  # a tuple of inputs
nn.MultiHeadAttention(8, 2)  # type: ignore[call-overload]  # first values need an rng
attention.forward(z)  # type: ignore[arg-type]  # 3 features, not 8
attention.forward(tokens, tokens)  # type: ignore[call-overload]  # the values are missing
attention.forward(tokens, mask=m)  # type: ignore[arg-type]  # a mask is bool
attention.forward(tokens, mask=padding)  # type: ignore[arg-type]  # a batch would meet the heads
attention.forward(tokens, keys_mask=there)  # type: ignore[misc]  # six keys, not five
attention.forward(tokens, keys_mask=rows)  # type: ignore[arg-type]  # a mask is bool
encoder.forward(tokens, keys_mask=there)  # type: ignore[misc]  # six keys, not five
attention.forward(v)  # type: ignore[arg-type]  # a vector is no sequence
encoder.forward(z)  # type: ignore[arg-type]  # 3 features, not 8
encoder.forward(tokens.astype(np.float64))  # type: ignore[arg-type]  # another dtype
takes_name("swoosh")  # type: ignore[arg-type]  # no such activation
decoder.forward(tokens)  # type: ignore[call-overload]  # a memory is missing
decoder.forward(tokens, z)  # type: ignore[arg-type, misc]  # a memory of 3 features
gru.forward(rows)  # type: ignore[arg-type]  # no sequences
gru.forward(z)  # type: ignore[arg-type]  # 3 features, not 8
gru.forward(tokens, rows)  # type: ignore[arg-type]  # a state has 6 features
deep.forward(tokens, rows)  # type: ignore[arg-type]  # a state has an axis of runs
gru.forward(tokens).sum()  # type: ignore[attr-defined]  # a pair of outputs
lstm.forward(tokens, state)  # type: ignore[call-overload]  # a state is a pair
cell.forward(rows)  # type: ignore[call-overload]  # the state is missing
cell.forward(tokens, state)  # type: ignore[arg-type]  # one step, no sequence
tt.build(nn.MultiHeadAttention[L[8]], rng=rng)  # type: ignore[misc]  # how many heads?
