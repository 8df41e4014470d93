# Modules declared, built, constructed or called wrongly.
# ruff: noqa: PYI017

from typing import Generic
from typing import Literal as L

import numpy as np

import tapetensor as tt
from tapetensor import Tensor1D, Tensor2D, nn
from tapetensor.typing import B, N, T
from tests.typing.operands import m, mask, md, mi, v, v7, z

class Mlp(nn.Module):
    hidden: nn.Linear[L[784], L[512]]
    out: nn.Linear[L[512], L[10]]
    eps: float = 1e-5
    def forward(self, x: Tensor2D[B, L[784], T]) -> Tensor2D[B, L[10], T]: ...

class Block(nn.Module, Generic[N]):
    narrow: nn.Linear[N, L[4]]
    scale: Tensor1D[N] = ...
    def forward(self, x: Tensor2D[B, N, T]) -> Tensor2D[B, N, T]: ...

rng: np.random.Generator
model: Mlp
hidden: nn.Linear[L[784], L[512]]
block: Block[L[3]]
images: Tensor2D[L[32], L[784]]

def wants_scores(x: Tensor2D[L[32], L[10]]) -> None: ...
def wants_double(x: nn.Linear[L[3], L[2], np.float64]) -> None: ...
def wants_double_gru(x: nn.GRU[L[3], L[2], np.float64]) -> None: ...
def wants_block(x: Block[L[64]]) -> None: ...

# The constructor.
Mlp(hidden=nn.Linear(784, 512, rng=rng), out=nn.Linear(511, 10, rng=rng))  # type: ignore[arg-type]  # 511
Mlp(hidden=hidden, out=hidden)  # type: ignore[arg-type]  # a layer of other sizes
Mlp(hidden=hidden, out=nn.ReLU())  # type: ignore[arg-type]  # another kind of layer
Mlp(hidden=hidden, out=model.out, drop=0.1)  # type: ignore[call-arg]  # no such field
Mlp(hidden=hidden, out=model.out, eps="small")  # type: ignore[arg-type]  # no number
Mlp(hidden, model.out)  # type: ignore[call-arg]  # fields go by keyword
Block(narrow=block.narrow, scale=v7)  # type: ignore[misc]  # N is 3 and 7
Block(narrow=block.narrow, scale=v.trace())  # type: ignore[arg-type]  # a field is plain

# The dtype that is left out is float32, whatever is wanted.
wants_double(nn.Linear(3, 2, rng=rng))  # type: ignore[arg-type]  # a float32 layer
wants_double_gru(nn.GRU(3, 2, rng=rng))  # type: ignore[arg-type]  # a float32 layer

# build.
tt.build(Mlp)  # type: ignore[call-arg]  # first values need an rng
tt.build(Mlp, rng=0)  # type: ignore[arg-type]  # a seed is no generator
tt.build(model, rng=rng)  # type: ignore[arg-type]  # a class is built, no module
tt.build(int, rng=rng)  # type: ignore[type-var]  # not a module
wants_block(tt.build(Block[L[63]], rng=rng))  # type: ignore[arg-type]  # another size
wants_block(block)  # type: ignore[arg-type]  # another size

# forward.
model.forward(m)  # type: ignore[arg-type]  # 3 features, not 784
model.forward(v)  # type: ignore[arg-type]  # a vector is no batch
model.forward(z)  # type: ignore[arg-type]  # nor is a stack of matrices
block.forward(md)  # type: ignore[arg-type]  # float64 into float32 weights
block.forward(mi)  # type: ignore[arg-type]  # integers into float32 weights
wants_scores(model.forward(images.trace()))  # type: ignore[arg-type]  # the output owns a tape
model.forward(images).backward()  # type: ignore[call-arg]  # nothing was traced
model.forward(images.trace()).backward()  # type: ignore[call-arg]  # ten scores per row are no scalar
model.train()  # type: ignore[attr-defined]  # there is no mode: the tape of the input says it
model.eval()  # type: ignore[attr-defined]  # there is no mode
model.hiden  # type: ignore[attr-defined]  # no such field
model.out = hidden  # type: ignore[assignment]  # what replaces a field has its sizes

# Layers.
nn.inference(nn.Tanh)  # type: ignore[type-var]  # a class is no model
nn.is_training(model, 5)  # type: ignore[arg-type]  # asks a tensor
nn.Linear(3, 2)  # type: ignore[call-overload]  # first values need an rng
nn.Linear(3, 2, np.int64, rng=rng)  # type: ignore[type-var]  # integers are not trained
nn.Linear(3.0, 2, rng=rng)  # type: ignore[call-overload]  # a size is an int
nn.Dropout(0.5)  # type: ignore[call-arg]  # masks need an rng
nn.Dropout("0.5", rng=rng)  # type: ignore[arg-type]  # no number
nn.GELU("exact")  # type: ignore[arg-type]  # "none" or "tanh"
nn.LayerNorm(3, 1e-5)  # type: ignore[call-overload]  # eps goes by keyword
nn.GroupNorm(3)  # type: ignore[call-overload]  # groups, and channels
nn.ReLU().forward(mask)  # type: ignore[type-var]  # a mask has no positive part
nn.Tanh().forward(mi)  # type: ignore[type-var]  # integers have no tanh
nn.Dropout(0.5, rng=rng).forward(mi)  # type: ignore[type-var]  # nor can they be scaled
