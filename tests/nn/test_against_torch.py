"""Layers with the weights of PyTorch's: values and all gradients agree, where it is installed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from typing import Literal as L

import numpy as np
import pytest

import tapetensor as tt
from tapetensor import nn

torch: Any = pytest.importorskip("torch")
functional: Any = torch.nn.functional

FEATURES, HEADS, HIDDEN = 8, 2, 12


def theirs(array: Any) -> Any:
    return torch.tensor(array, requires_grad=True)


def ours(parameter: Any) -> Any:
    return tt.from_numpy(parameter.detach().numpy().copy())


def assert_close(found: Any, wanted: Any, name: str = "") -> None:
    np.testing.assert_allclose(
        found.numpy(), wanted.detach().numpy(), rtol=1e-9, atol=1e-11, err_msg=name
    )


def load(layer: Any, values: dict[str, Any]) -> None:
    """Set parameters by dotted name, as a file would."""
    modules = layer.modules() | {"": layer}
    for name, value in values.items():
        path, _, attribute = name.rpartition(".")
        setattr(modules[path], attribute, ours(value))


def attention_values(attention: Any, prefix: str = "") -> dict[str, Any]:
    """Return the parameters of PyTorch's attention by our names: its first matrix holds three."""
    values = {}
    for position, name in enumerate("qkv"):
        rows = slice(position * FEATURES, (position + 1) * FEATURES)
        values[f"{prefix}w_{name}.weight"] = attention.in_proj_weight[rows]
        values[f"{prefix}w_{name}.bias"] = attention.in_proj_bias[rows]
    values[f"{prefix}w_o.weight"] = attention.out_proj.weight
    values[f"{prefix}w_o.bias"] = attention.out_proj.bias
    return values


def gradients_of_attention(attention: Any, prefix: str = "") -> dict[str, Any]:
    values = {}
    for position, name in enumerate("qkv"):
        rows = slice(position * FEATURES, (position + 1) * FEATURES)
        values[f"{prefix}w_{name}.weight"] = attention.in_proj_weight.grad[rows]
        values[f"{prefix}w_{name}.bias"] = attention.in_proj_bias.grad[rows]
    values[f"{prefix}w_o.weight"] = attention.out_proj.weight.grad
    values[f"{prefix}w_o.bias"] = attention.out_proj.bias.grad
    return values


@pytest.mark.parametrize(("masked", "causal"), [(False, False), (True, False), (False, True)])
def test_attention_agrees(masked: bool, causal: bool, rng: np.random.Generator) -> None:
    arrays = [rng.standard_normal((2, 3, 4, 5)) for _ in range(3)]
    mask = np.tri(4, dtype=np.bool_)[::-1].copy() if masked else None
    tensors, torch_tensors = [tt.from_numpy(one) for one in arrays], [theirs(a) for a in arrays]

    y = tt.scaled_dot_product_attention(
        *(one.trace() for one in tensors),
        mask=None if mask is None else tt.from_numpy(mask),
        causal=causal,
    )
    wanted = functional.scaled_dot_product_attention(
        *torch_tensors, attn_mask=None if mask is None else torch.tensor(mask), is_causal=causal
    )

    assert_close(y, wanted)
    cotangent = rng.standard_normal(y.shape)
    wanted.backward(torch.tensor(cotangent))
    grads = y.backward(tt.from_numpy(cotangent))
    for one, other in zip(tensors, torch_tensors, strict=True):
        assert_close(grads[one], other.grad)


ELEMENTWISE: list[tuple[Callable[[Any], Any], Callable[[Any], Any]]] = [
    (lambda x: x.leaky_relu(), functional.leaky_relu),
    (lambda x: x.leaky_relu(0.3), lambda x: functional.leaky_relu(x, 0.3)),
    (lambda x: x.elu(), functional.elu),
    (lambda x: x.elu(0.3), lambda x: functional.elu(x, 0.3)),
    (lambda x: x.normalize(), lambda x: functional.layer_norm(x, x.shape[-1:])),
    (lambda x: x.roll(2, axis=1), lambda x: torch.roll(x, 2, 1)),
    (lambda x: x.tril(-1), lambda x: torch.tril(x, -1)),
    (lambda x: x.triu(1), lambda x: torch.triu(x, 1)),
]


@pytest.mark.parametrize(("op", "torch_op"), ELEMENTWISE)
def test_an_op_agrees(op: Any, torch_op: Any, rng: np.random.Generator) -> None:
    array = rng.standard_normal((4, 5))
    # The kink at 0 is one of the points.
    array[0, 0] = 0.0
    x, torch_x = tt.from_numpy(array), theirs(array)

    y, wanted = op(x.trace()), torch_op(torch_x)

    assert_close(y, wanted)
    cotangent = rng.standard_normal(y.shape)
    wanted.backward(torch.tensor(cotangent))
    assert_close(y.backward(tt.from_numpy(cotangent))[x], torch_x.grad)


def test_gather_agrees(rng: np.random.Generator) -> None:
    array, indices = rng.standard_normal((3, 4)), rng.integers(0, 4, (3, 6))
    x, torch_x = tt.from_numpy(array), theirs(array)

    y = x.trace().take_along_axis(tt.from_numpy(indices))
    wanted = torch.gather(torch_x, 1, torch.tensor(indices))

    assert_close(y, wanted)
    wanted.square().sum().backward()
    assert_close(y.square().sum().backward()[x], torch_x.grad)


@pytest.mark.parametrize("kind", ["RNN", "GRU", "LSTM"])
def test_a_recurrent_layer_agrees(kind: str, rng: np.random.Generator) -> None:
    torch_layer = getattr(torch.nn, kind)(3, 4, batch_first=True).double()
    layer: Any = getattr(nn, kind)(3, 4, np.float64, rng=rng)
    load(layer, dict(torch_layer.named_parameters()))
    array = rng.standard_normal((2, 5, 3))
    x, torch_x = tt.from_numpy(array), theirs(array)

    y, last = layer.forward(x.trace())
    wanted, wanted_last = torch_layer(torch_x)

    assert_close(y, wanted)
    ends = zip(last, wanted_last, strict=True) if kind == "LSTM" else [(last, wanted_last)]
    for end, wanted_end in ends:
        assert_close(end, wanted_end[0])
    wanted.square().sum().backward()
    grads = y.square().sum().backward()
    assert_close(grads[x], torch_x.grad)
    for name, parameter in torch_layer.named_parameters():
        assert_close(grads[layer.parameters()[name]], parameter.grad, name)


@pytest.mark.parametrize("kind", ["RNNCell", "GRUCell", "LSTMCell"])
def test_a_recurrent_cell_agrees(kind: str, rng: np.random.Generator) -> None:
    torch_cell = getattr(torch.nn, kind)(3, 4).double()
    cell: Any = getattr(nn, kind)(3, 4, np.float64, rng=rng)
    load(cell, dict(torch_cell.named_parameters()))
    x, states = rng.standard_normal((2, 3)), [rng.standard_normal((2, 4)) for _ in range(2)]

    given = tuple(tt.from_numpy(one) for one in states)
    torch_given = tuple(torch.tensor(one) for one in states)
    found = cell.forward(tt.from_numpy(x), given if kind == "LSTMCell" else given[0])
    wanted = torch_cell(torch.tensor(x), torch_given if kind == "LSTMCell" else torch_given[0])

    for one, other in zip(found, wanted, strict=True) if kind == "LSTMCell" else [(found, wanted)]:
        assert_close(one, other)


def test_multi_head_attention_agrees(rng: np.random.Generator) -> None:
    torch_layer = torch.nn.MultiheadAttention(FEATURES, HEADS, batch_first=True).double()
    layer = tt.build(nn.MultiHeadAttention[L[8], L[2], np.float64], rng=rng)
    load(layer, attention_values(torch_layer))
    arrays = [rng.standard_normal((2, length, FEATURES)) for length in (3, 5, 5)]
    query, key, value = (tt.from_numpy(one) for one in arrays)

    y = layer.forward(query.trace(), key.trace(), value.trace())
    wanted, _ = torch_layer(*(torch.tensor(one) for one in arrays))

    assert_close(y, wanted)
    wanted.square().sum().backward()
    grads = y.square().sum().backward()
    for name, gradient in gradients_of_attention(torch_layer).items():
        assert_close(grads[layer.parameters()[name]], gradient, name)


def test_an_encoder_block_agrees(rng: np.random.Generator) -> None:
    torch_block = torch.nn.TransformerEncoderLayer(
        FEATURES, HEADS, HIDDEN, dropout=0.0, batch_first=True
    ).double()
    block = tt.build(nn.EncoderBlock[L[8], L[2], L[12], np.float64], rng=rng)
    own = {n: p for n, p in torch_block.named_parameters() if not n.startswith("self_attn")}
    load(block, own | attention_values(torch_block.self_attn, "self_attn."))
    array = rng.standard_normal((2, 5, FEATURES))
    x, torch_x = tt.from_numpy(array), theirs(array)

    y, wanted = block.forward(x.trace()), torch_block(torch_x)

    assert_close(y, wanted)
    wanted.pow(3).sum().backward()
    grads = (y**3).sum().backward()
    assert_close(grads[x], torch_x.grad)
    for name, parameter in own.items():
        assert_close(grads[block.parameters()[name]], parameter.grad, name)


def test_a_decoder_block_agrees(rng: np.random.Generator) -> None:
    torch_block = torch.nn.TransformerDecoderLayer(
        FEATURES, HEADS, HIDDEN, dropout=0.0, batch_first=True
    ).double()
    block = tt.build(nn.DecoderBlock[L[8], L[2], L[12], np.float64], rng=rng)
    own = {n: p for n, p in torch_block.named_parameters() if "attn" not in n}
    load(
        block,
        own
        | attention_values(torch_block.self_attn, "self_attn.")
        | attention_values(torch_block.multihead_attn, "cross_attn."),
    )
    arrays = [rng.standard_normal((2, length, FEATURES)) for length in (3, 5)]
    x, memory = (tt.from_numpy(one) for one in arrays)
    torch_x, torch_memory = (theirs(one) for one in arrays)

    y = block.forward(x.trace(), memory.trace())
    mask = torch.nn.Transformer.generate_square_subsequent_mask(3, dtype=torch.float64)
    wanted = torch_block(torch_x, torch_memory, tgt_mask=mask, tgt_is_causal=True)

    assert_close(y, wanted)
    wanted.pow(3).sum().backward()
    grads = (y**3).sum().backward()
    assert_close(grads[x], torch_x.grad)
    assert_close(grads[memory], torch_memory.grad)
    for name, parameter in own.items():
        assert_close(grads[block.parameters()[name]], parameter.grad, name)
