"""tapetensor, eager: the library's own modules, losses and optimizer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias
from typing import Literal as L

import numpy as np

import tapetensor as tt
from benchmarks import problems
from benchmarks.contenders import Step, Steps
from benchmarks.problems import BETAS, EPS, LEARNING_RATE, NORM_EPS, Affine, Array
from tapetensor import (
    NoneTape,
    OwnedTape,
    Tensor0D,
    Tensor1D,
    Tensor2D,
    Tensor3D,
    Tensor4D,
    losses,
    nn,
    optim,
)
from tapetensor.typing import B, M, T

# Computes the results of a workload as tensors.
Results: TypeAlias = tuple[tt.Tensor[Any, NoneTape, Any], ...]
Compute: TypeAlias = Callable[[], Results]
Rows: TypeAlias = Tensor2D[B, int, T]
Sequences: TypeAlias = Tensor3D[B, M, int, T]
Convolution: TypeAlias = nn.Conv2d[int, int, L[3], L[1], L[1]]


class ReluMlp(nn.Module):
    """Affine layers with relu between them."""

    hidden: list[nn.Linear[int, int]]
    out: nn.Linear[int, int]

    def forward(self, x: Rows[B, T]) -> Rows[B, T]:
        """Return the logits."""
        for layer in self.hidden:
            x = layer.forward(x).relu()
        return self.out.forward(x)


class GeluMlp(nn.Module):
    """Affine layers with gelu (tanh) between them."""

    hidden: list[nn.Linear[int, int]]
    out: nn.Linear[int, int]

    def forward(self, x: Rows[B, T]) -> Rows[B, T]:
        """Return the prediction."""
        for layer in self.hidden:
            x = layer.forward(x).gelu(approximate="tanh")
        return self.out.forward(x)


class Cnn(nn.Module):
    """Two convolutions with relu and pooling, and an affine layer."""

    first: Convolution
    second: Convolution
    out: nn.Linear[int, int]

    def forward(self, x: Tensor4D[B, int, Any, Any, T]) -> Rows[B, T]:
        """Return the logits."""
        for layer in (self.first, self.second):
            x = tt.max_pool2d(layer.forward(x).relu(), 2)
        flat: Rows[B, T] = x.reshape((x.shape[0], -1))
        return self.out.forward(flat)


class Block(nn.Module):
    """A pre-norm layer of the transformer."""

    attention_norm: nn.LayerNorm[int]
    query_key_value: nn.Linear[int, int]
    projection: nn.Linear[int, int]
    mlp_norm: nn.LayerNorm[int]
    hidden: nn.Linear[int, int]
    out: nn.Linear[int, int]
    heads: int

    def forward(self, x: Sequences[B, M, T]) -> Sequences[B, M, T]:
        """Return `x` with what attention and the MLP add."""
        y = self._attend(self.attention_norm.forward(x))
        x = self.projection.forward(y) + x
        y = self.hidden.forward(self.mlp_norm.forward(x))
        return self.out.forward(y.gelu(approximate="tanh")) + x

    def _attend(self, x: Sequences[B, M, T]) -> Sequences[B, M, T]:
        b, m, width = x.shape
        parts = self.query_key_value.forward(x).reshape((b, m, 3 * self.heads, -1))
        query, key, value = parts.permute_dims((0, 2, 1, 3)).split(3, axis=1)
        heads = tt.scaled_dot_product_attention(query, key, value, causal=True)
        return heads.permute_dims((0, 2, 1, 3)).reshape((b, m, width))


class Transformer(nn.Module):
    """The logits of the next character at every position."""

    tokens: nn.Embedding[int, int]
    positions: Tensor2D[Any, int]
    blocks: list[Block]
    norm: nn.LayerNorm[int]
    head: nn.Linear[int, int]

    def forward(self, ids: Tensor2D[B, M, T, np.int64]) -> Sequences[B, M, T]:
        """Return one score per character."""
        x: Any = self.tokens.forward(ids) + self.positions
        for block in self.blocks:
            x = block.forward(x)
        logits: Sequences[B, M, T] = self.head.forward(self.norm.forward(x))
        return logits


def relu_mlp(problem: problems.Mlp) -> Compute:
    """Return a training step on labels."""
    x, labels = _matrix(problem.x), _labels(problem.target)
    *hidden, out = [_linear(layer) for layer in problem.layers]
    model = ReluMlp(hidden=hidden, out=out)
    return _training_step(model, lambda: losses.cross_entropy(model.forward(x.trace()), labels))


def gelu_mlp(problem: problems.Mlp) -> Compute:
    """Return a training step on values."""
    x, target = _matrix(problem.x), _matrix(problem.target)
    *hidden, out = [_linear(layer) for layer in problem.layers]
    model = GeluMlp(hidden=hidden, out=out)
    return _training_step(model, lambda: losses.mse(model.forward(x.trace()), target))


def cnn(problem: problems.Cnn) -> Compute:
    """Return a training step of the convolutional network."""
    x: Tensor4D[int, int, Any, Any] = tt.from_numpy(problem.x)
    labels = _labels(problem.labels)
    model = Cnn(
        first=_convolution(problem.first),
        second=_convolution(problem.second),
        out=_linear(problem.out),
    )
    return _training_step(model, lambda: losses.cross_entropy(model.forward(x.trace()), labels))


def transformer(problem: problems.Transformer) -> Compute:
    """Return a training step of the transformer."""
    ids: Tensor2D[int, int, NoneTape, np.int64] = tt.from_numpy(problem.ids)
    following: Tensor2D[int, int, NoneTape, np.int64] = tt.from_numpy(problem.following)
    model = Transformer(
        tokens=_embedding(problem.tokens),
        positions=_matrix(problem.positions),
        blocks=[_block(block, problem.heads) for block in problem.blocks],
        norm=_layer_norm(problem.norm),
        head=_linear(problem.head),
    )
    return _training_step(
        model, lambda: losses.cross_entropy(model.forward(ids.trace()), following)
    )


def elementwise(problem: problems.Elementwise) -> Compute:
    """Return the loss and its gradient."""
    x: Tensor1D[int] = tt.from_numpy(problem.x, problem.x.shape)

    def compute() -> Results:
        bump = (-x.trace().square()).exp()
        loss = (x.trace().tanh() * x.trace().sigmoid() + bump).mean()
        return loss.detach(), loss.backward(wrt=x)[x]

    return compute


def chain(problem: problems.Chain) -> Compute:
    """Return the end of the chain and the gradient of its start."""
    x, factor, term = [
        tt.from_numpy(one, one.shape) for one in (problem.x, problem.factor, problem.term)
    ]
    cotangent = tt.ones((problem.x.size,))

    def compute() -> Results:
        y: Any = x.trace()
        for _ in range(problem.pairs):
            y = y * factor + term
        return y.detach(), y.backward(cotangent, wrt=x)[x]

    return compute


def scan(problem: problems.Scan) -> Compute:
    """Return the states and the three gradients."""
    a, b, x, cotangent = [tt.from_numpy(one) for one in problem]

    def compute() -> Results:
        h = tt.ssm_scan(x.trace(), a, b)
        states = h.detach()
        gradients = h.backward(cotangent)
        return states, *[gradients[one] for one in (a, b, x)]

    return compute


def inference(problem: problems.Mlp) -> Compute:
    """Return the logits."""
    x = _matrix(problem.x)
    *hidden, out = [_linear(layer) for layer in problem.layers]
    model = ReluMlp(hidden=hidden, out=out)

    return lambda: (model.forward(x),)


def _training_step(model: nn.Module, loss_of: Callable[[], Tensor0D[OwnedTape]]) -> Compute:
    optimizer = optim.Adam(model, lr=LEARNING_RATE, betas=BETAS, eps=EPS)

    def compute() -> Results:
        loss = loss_of()
        value = loss.detach()
        optimizer.step(loss.backward(wrt=model))
        return (value,)

    return compute


def _linear(layer: Affine) -> nn.Linear[int, int]:
    out_features, in_features = layer.weight.shape
    module = nn.Linear(in_features, out_features, rng=np.random.default_rng(0))
    module.weight = _matrix(layer.weight)
    module.bias = tt.from_numpy(layer.bias, layer.bias.shape)
    return module


def _convolution(layer: Affine) -> Convolution:
    channels_out, channels_in, *_ = layer.weight.shape
    rng = np.random.default_rng(0)
    module: Convolution = nn.Conv2d(channels_in, channels_out, 3, padding=1, rng=rng)
    module.weight = tt.from_numpy(layer.weight)
    module.bias = tt.from_numpy(layer.bias)
    return module


def _layer_norm(layer: Affine) -> nn.LayerNorm[int]:
    # Its first values are those of the problem: ones and zeros.
    return nn.LayerNorm(len(layer.weight), eps=NORM_EPS)


def _embedding(table: Array) -> nn.Embedding[int, int]:
    module = nn.Embedding(*table.shape, rng=np.random.default_rng(0))
    module.weight = _matrix(table)
    return module


def _block(block: problems.Block, heads: int) -> Block:
    return Block(
        attention_norm=_layer_norm(block.attention_norm),
        query_key_value=_linear(block.query_key_value),
        projection=_linear(block.projection),
        mlp_norm=_layer_norm(block.mlp_norm),
        hidden=_linear(block.hidden),
        out=_linear(block.out),
        heads=heads,
    )


def _matrix(array: Array) -> Tensor2D[int, int]:
    return tt.from_numpy(array, array.shape)


def _labels(array: Array) -> Tensor1D[int, NoneTape, np.int64]:
    return tt.from_numpy(array, array.shape)


def reading(build: Callable[[Any], Compute]) -> Callable[[Any], Step]:
    """Return what builds a step whose results are numbers and arrays."""

    def built(problem: Any) -> Step:
        compute = build(problem)

        def step() -> tuple[Any, ...]:
            return tuple([one.numpy() if one.ndim else one.item() for one in compute()])

        return step

    return built


COMPUTES: dict[str, Callable[[Any], Compute]] = {
    "W1": relu_mlp,
    "W2": relu_mlp,
    "W3": gelu_mlp,
    "W4": cnn,
    "W5": transformer,
    "W6": elementwise,
    "W7": chain,
    "W8": scan,
    "W9a": inference,
    "W9b": inference,
}

STEPS: Steps = {workload: reading(build) for workload, build in COMPUTES.items()}
