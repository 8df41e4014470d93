"""PyTorch, eager, as its users write it: `torch.nn`, `torch.optim.Adam` with its defaults."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.nn import functional

from benchmarks import problems
from benchmarks.contenders import Step, Steps
from benchmarks.problems import BETAS, EPS, LEARNING_RATE, NORM_EPS, Affine, Array


def relu_mlp(problem: problems.Mlp) -> Step:
    """Return a training step on labels."""
    x, labels = torch.from_numpy(problem.x), torch.from_numpy(problem.target)
    model = _mlp(problem.layers, torch.nn.ReLU)
    return _training_step(
        list(model.parameters()), lambda: functional.cross_entropy(model(x), labels)
    )


def gelu_mlp(problem: problems.Mlp) -> Step:
    """Return a training step on values."""
    x, target = torch.from_numpy(problem.x), torch.from_numpy(problem.target)
    model = _mlp(problem.layers, lambda: torch.nn.GELU(approximate="tanh"))
    return _training_step(list(model.parameters()), lambda: functional.mse_loss(model(x), target))


def cnn(problem: problems.Cnn) -> Step:
    """Return a training step of the convolutional network."""
    x, labels = torch.from_numpy(problem.x), torch.from_numpy(problem.labels)
    model = torch.nn.Sequential(
        _convolution(problem.first),
        torch.nn.ReLU(),
        torch.nn.MaxPool2d(2),
        _convolution(problem.second),
        torch.nn.ReLU(),
        torch.nn.MaxPool2d(2),
        torch.nn.Flatten(),
        _linear(problem.out),
    )
    return _training_step(
        list(model.parameters()), lambda: functional.cross_entropy(model(x), labels)
    )


def transformer(problem: problems.Transformer) -> Step:
    """Return a training step of the transformer."""
    ids, following = torch.from_numpy(problem.ids), torch.from_numpy(problem.following)
    tokens, positions = _parameter(problem.tokens), _parameter(problem.positions)
    blocks = [
        (
            _layer_norm(block.attention_norm),
            _linear(block.query_key_value),
            _linear(block.projection),
            _layer_norm(block.mlp_norm),
            _linear(block.hidden),
            _linear(block.out),
        )
        for block in problem.blocks
    ]
    norm, head = _layer_norm(problem.norm), _linear(problem.head)
    modules = [*[module for block in blocks for module in block], norm, head]
    batch, context = problem.ids.shape
    width = problem.tokens.shape[1]

    def attend(x: Any, query_key_value: Any, projection: Any) -> Any:
        parts = query_key_value(x).view(batch, context, 3, problem.heads, -1)
        query, key, value = parts.permute(2, 0, 3, 1, 4)
        heads = functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        return projection(heads.transpose(1, 2).reshape(batch, context, width))

    def loss() -> Any:
        x = functional.embedding(ids, tokens) + positions
        for attention_norm, query_key_value, projection, mlp_norm, hidden, out in blocks:
            x = x + attend(attention_norm(x), query_key_value, projection)
            x = x + out(functional.gelu(hidden(mlp_norm(x)), approximate="tanh"))
        return functional.cross_entropy(head(norm(x)).flatten(0, 1), following.flatten())

    parameters = [p for module in modules for p in module.parameters()]
    return _training_step([tokens, positions, *parameters], loss)


def elementwise(problem: problems.Elementwise) -> Step:
    """Return the loss and its gradient."""
    x = _parameter(problem.x)

    def step() -> tuple[Any, ...]:
        x.grad = None
        loss = (torch.tanh(x) * torch.sigmoid(x) + torch.exp(-torch.square(x))).mean()
        loss.backward()
        return loss.item(), x.grad

    return step


def chain(problem: problems.Chain) -> Step:
    """Return the end of the chain and the gradient of its start."""
    x, factor, term = _parameter(problem.x), _tensor(problem.factor), _tensor(problem.term)
    cotangent = torch.ones_like(x)

    def step() -> tuple[Any, ...]:
        x.grad = None
        y = x
        for _ in range(problem.pairs):
            y = y * factor + term
        y.backward(cotangent)
        return y.detach(), x.grad

    return step


def scan(problem: problems.Scan) -> Step:
    """Return the states and the three gradients, from a loop: PyTorch has no scan."""
    a, b, x = _parameter(problem.a), _parameter(problem.b), _parameter(problem.x)
    cotangent = torch.from_numpy(problem.cotangent)
    start = torch.zeros(problem.x[:, 0].shape)

    def step() -> tuple[Any, ...]:
        a.grad = b.grad = x.grad = None
        driven = b * x
        state = start
        states = []
        for a_t, driven_t in zip(a.unbind(1), driven.unbind(1), strict=True):
            state = a_t * state + driven_t
            states.append(state)
        h = torch.stack(states, dim=1)
        h.backward(cotangent)
        return h.detach(), a.grad, b.grad, x.grad

    return step


def inference(problem: problems.Mlp) -> Step:
    """Return the logits."""
    x = torch.from_numpy(problem.x)
    model = _mlp(problem.layers, torch.nn.ReLU).eval()

    def step() -> tuple[Any, ...]:
        with torch.inference_mode():
            return (model(x),)

    return step


def _training_step(parameters: Sequence[Any], loss_of: Callable[[], Any]) -> Step:
    optimizer = torch.optim.Adam(parameters, lr=LEARNING_RATE, betas=BETAS, eps=EPS)

    def step() -> tuple[Any, ...]:
        optimizer.zero_grad()
        loss = loss_of()
        value = loss.item()
        loss.backward()
        optimizer.step()
        return (value,)

    return step


def _mlp(layers: Sequence[Affine], activation: Callable[[], Any]) -> Any:
    modules: list[Any] = []
    for layer in layers:
        modules += [_linear(layer), activation()]
    return torch.nn.Sequential(*modules[:-1])


def _linear(layer: Affine) -> Any:
    return _with_values(torch.nn.Linear(*reversed(layer.weight.shape)), layer)


def _convolution(layer: Affine) -> Any:
    channels_out, channels_in, *_ = layer.weight.shape
    return _with_values(torch.nn.Conv2d(channels_in, channels_out, 3, padding=1), layer)


def _layer_norm(layer: Affine) -> Any:
    return _with_values(torch.nn.LayerNorm(layer.weight.shape, eps=NORM_EPS), layer)


def _with_values(module: Any, layer: Affine) -> Any:
    module.weight, module.bias = _parameter(layer.weight), _parameter(layer.bias)
    return module


def _tensor(array: Array) -> Any:
    # A copy: an optimizer writes to its parameters.
    return torch.tensor(array)


def _parameter(array: Array) -> Any:
    return torch.nn.Parameter(_tensor(array))


STEPS: Steps = {
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
