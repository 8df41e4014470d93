"""`MultiHeadAttention` against a loop over heads, its gradients, masks and refusals."""

from __future__ import annotations

from typing import Any
from typing import Literal as L

import numpy as np
import pytest

import tapetensor as tt
from tapetensor import nn
from tapetensor.arrays.array import Array
from tapetensor.errors import (
    ArgumentTypeError,
    ArgumentValueError,
    DTypeError,
    ShapeError,
)
from tests.nn.gradients import check_layer


def attention(rng: np.random.Generator, heads: int = 2, **sizes: int) -> Any:
    make: Any = nn.MultiHeadAttention
    if sizes:
        return make(6, heads, np.float64, rng=rng, **sizes)
    return make(6, heads, np.float64, rng=rng)


def values(rng: np.random.Generator, *shape: int) -> Any:
    return tt.from_numpy(rng.standard_normal(shape))


def by_hand(layer: Any, query: Array, key: Array, value: Array, sees: Array | None) -> Array:
    """Return the output for one example, head by head."""

    def linear(name: str, x: Array) -> Array:
        part = getattr(layer, name)
        product: Array = x @ part.weight.numpy().T + part.bias.numpy()
        return product

    q, k, v = linear("w_q", query), linear("w_k", key), linear("w_v", value)
    found = []
    for head in range(layer.heads):
        of_keys = slice(head * q.shape[1] // layer.heads, (head + 1) * q.shape[1] // layer.heads)
        of_values = slice(head * v.shape[1] // layer.heads, (head + 1) * v.shape[1] // layer.heads)
        scores = q[:, of_keys] @ k[:, of_keys].T / np.sqrt(q.shape[1] / layer.heads)
        if sees is not None:
            scores = np.where(sees, scores, -np.inf)
        weights = np.exp(scores)
        found.append(weights / weights.sum(axis=1, keepdims=True) @ v[:, of_values])
    return linear("w_o", np.concatenate(found, axis=1))


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("heads", [1, 2, 3, 6])
def test_the_value_for_one_sequence(heads: int, causal: bool, rng: np.random.Generator) -> None:
    layer, x = attention(rng, heads), values(rng, 5, 6)

    sees = np.tri(5, dtype=np.bool_) if causal else None
    wanted = by_hand(layer, x.numpy(), x.numpy(), x.numpy(), sees)
    np.testing.assert_allclose(layer.forward(x, causal=causal).numpy(), wanted, rtol=1e-12)


def test_the_value_for_query_key_and_value_of_a_batch(rng: np.random.Generator) -> None:
    layer = attention(rng, 2, key_features=4, value_features=8)
    query, key, value = values(rng, 3, 4, 6), values(rng, 3, 5, 6), values(rng, 3, 5, 6)
    mask = rng.random((3, 1, 4, 5)) < 0.7
    mask[..., 0] = True

    y = layer.forward(query, key, value, mask=tt.from_numpy(mask))

    for one in range(3):
        q, k, v = (x.numpy()[one] for x in (query, key, value))
        wanted = by_hand(layer, q, k, v, mask[one, 0])
        np.testing.assert_allclose(y.numpy()[one], wanted, rtol=1e-12)


def test_a_mask_of_the_keys_hides_padding_from_every_query_and_head(
    rng: np.random.Generator,
) -> None:
    layer, block = attention(rng, 2), tt.build(nn.EncoderBlock[L[6], L[2], L[8]], rng=rng)
    query, key = values(rng, 2, 3, 6), values(rng, 2, 4, 6)
    narrow: Any = tt.ones((2, 3, 6))
    there = tt.from_numpy(np.array([[True, True, False, True], [True, False, False, False]]))
    past = tt.from_numpy(np.tri(3, 4, dtype=np.bool_))
    whole = there.reshape((2, 1, 1, 4))

    for mask, both in ((None, whole), (past, past & whole)):
        found = layer.forward(query, key, key, mask=mask, keys_mask=there)
        wanted = layer.forward(query, key, key, mask=both)
        np.testing.assert_array_equal(found.numpy(), wanted.numpy())
    own, whole = there[:, :3], there[:, :3].reshape((2, 1, 1, 3))
    np.testing.assert_array_equal(
        block.forward(narrow, keys_mask=own).numpy(), block.forward(narrow, mask=whole).numpy()
    )


def test_a_mask_of_a_batch_is_not_taken_for_one_of_the_heads(rng: np.random.Generator) -> None:
    layer, x = attention(rng, 2), values(rng, 2, 3, 6)
    block, parts = tt.build(nn.EncoderBlock[L[6], L[2], L[8]], rng=rng), values(rng, 2, 2, 3, 6)
    mask: Any = tt.ones((2, 1, 3), np.bool_)

    refused: list[Any] = [
        lambda: layer.forward(x, mask=mask),
        lambda: block.forward(tt.ones((2, 3, 6)), mask=mask),
        lambda: tt.scaled_dot_product_attention(parts, parts, parts, mask=mask),
        lambda: tt.scaled_dot_product_attention(parts[None], parts[None], parts[None], mask=mask),
    ]
    for call in refused:
        with pytest.raises(ShapeError, match=r"a mask of shape \(2, 1, 3\) has more axes than"):
            call()
    for keys in (mask, mask[0], tt.ones((2, 4), np.bool_)):
        with pytest.raises(ShapeError, match=r"a keys_mask says of each key .* \(2, 3\), got"):
            layer.forward(x, keys_mask=keys)
    with pytest.raises(DTypeError, match="the keys_mask must be bool"):
        layer.forward(x, keys_mask=tt.ones((2, 3)))
    # Of one sequence there is an axis for the heads.
    assert layer.forward(x[0], mask=mask).shape == (3, 6)


@pytest.mark.parametrize("shape", [(5, 6), (2, 3, 6), (2, 1, 3, 6), (1, 6), (0, 3, 6), (2, 0, 6)])
def test_the_gradients_of_attention_to_itself(shape: Any, rng: np.random.Generator) -> None:
    layer, x = attention(rng), values(rng, *shape)

    check_layer(layer, x, rng, lambda x: layer.forward(x, causal=True))


@pytest.mark.parametrize("traced", [0, 1, 2])
def test_the_gradients_by_each_input_train_all_weights(
    traced: int, rng: np.random.Generator
) -> None:
    layer = attention(rng, 2, key_features=4, value_features=2)
    inputs = [values(rng, 2, 3, 6), values(rng, 2, 4, 6), values(rng, 2, 4, 6)]

    def forward(x: Any) -> Any:
        return layer.forward(*[x if i == traced else one for i, one in enumerate(inputs)])

    check_layer(layer, inputs[traced], rng, forward)


def test_it_is_built_from_its_sizes(rng: np.random.Generator) -> None:
    layer = tt.build(nn.MultiHeadAttention[L[8], L[2]], rng=rng)
    assert {name: one.shape for name, one in layer.parameters().items()} == {
        **{f"w_{one}.weight": (8, 8) for one in "qkvo"},
        **{f"w_{one}.bias": (8,) for one in "qkvo"},
    }
    wide = tt.build(nn.MultiHeadAttention[L[8], L[2], np.float64, L[4], L[6]], rng=rng)
    assert wide.w_k.weight.shape == (4, 8)
    assert wide.w_o.weight.shape == (8, 6)
    assert wide.w_o.weight.dtype == np.float64
    assert repr(layer).startswith("MultiHeadAttention(\n  in_features=8\n  heads=2")


def test_heads_that_do_not_divide_the_features_are_refused(rng: np.random.Generator) -> None:
    with pytest.raises(ArgumentValueError, match="3 heads do not divide key_features=8 evenly"):
        tt.build(nn.MultiHeadAttention[L[8], L[3]], rng=rng)
    with pytest.raises(ArgumentValueError, match="2 heads do not divide value_features=3"):
        attention(rng, 2, key_features=4, value_features=3)


def test_inputs_that_do_not_fit_are_refused(rng: np.random.Generator) -> None:
    layer = attention(rng)
    x = values(rng, 2, 3, 6)

    with pytest.raises(ShapeError, match="MultiHeadAttention: the last axis"):
        layer.forward(x, values(rng, 2, 3, 5), x)
    with pytest.raises(ShapeError, match="numbers of keys and values differ"):
        layer.forward(x, x, values(rng, 2, 4, 6))
    with pytest.raises(ShapeError, match="a mask of shape"):
        layer.forward(x, mask=tt.ones((3, 4), np.bool_))
    with pytest.raises(ArgumentTypeError, match="give key and value, or neither"):
        layer.forward(x, x)
