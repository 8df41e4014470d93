"""Attention, the blocks made of it, and transformers."""

from __future__ import annotations

from typing import Any, get_args
from typing import Literal as L

import numpy as np
import pytest

import tapetensor as tt
from tapetensor import nn
from tapetensor.arrays.array import Array
from tapetensor.errors import ArgumentTypeError, ArgumentValueError, DTypeError, ShapeError
from tapetensor.nn.composed_activations import ACTIVATIONS, ActivationName
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


def build(module: Any, rng: np.random.Generator) -> Any:
    return tt.build(module, rng=rng)


def encoder(rng: np.random.Generator) -> Any:
    return build(nn.EncoderBlock[L[4], L[2], L[6], np.float64], rng)


def decoder(rng: np.random.Generator) -> Any:
    return build(nn.DecoderBlock[L[4], L[2], L[6], np.float64], rng)


def normalized(x: Any) -> Any:
    deviation = x - x.mean(axis=-1, keepdims=True)
    return deviation / np.sqrt(deviation.var(axis=-1, keepdims=True) + 1e-5)


def fed_forward(block: Any, x: Any) -> Any:
    first, second = block.linear1, block.linear2
    hidden = np.maximum(x @ first.weight.numpy().T + first.bias.numpy(), 0.0)
    return hidden @ second.weight.numpy().T + second.bias.numpy()


@pytest.mark.parametrize("causal", [{}, {"causal": False}])
def test_a_decoder_attends_to_its_past_and_to_the_memory(
    causal: Any, rng: np.random.Generator
) -> None:
    block, x, memory = decoder(rng), values(rng, 2, 3, 4), values(rng, 2, 5, 4)

    y = normalized(x.numpy() + block.self_attn.forward(x, **{"causal": True} | causal).numpy())
    crossed = block.cross_attn.forward(tt.from_numpy(y), memory, memory)
    z = normalized(y + crossed.numpy())
    wanted = normalized(z + fed_forward(block, z))
    found = block.forward(x, memory, **causal).numpy()
    np.testing.assert_allclose(found, wanted, rtol=1e-10, atol=1e-12)


class Blocks(nn.Module):
    """Blocks with the options that most models of today have."""

    encoder: nn.EncoderBlock[L[4], L[2], L[6], np.float64] = nn.options(
        norm_first=True, activation="gelu"
    )
    decoder: nn.DecoderBlock[L[4], L[2], L[6], np.float64] = nn.options(norm_first=True)


def test_blocks_that_normalize_first_do_so_before_each_branch(rng: np.random.Generator) -> None:
    blocks, x, memory = build(Blocks, rng), values(rng, 2, 3, 4), values(rng, 2, 5, 4)
    block = blocks.encoder
    y = x.numpy() + block.self_attn.forward(tt.from_numpy(normalized(x.numpy()))).numpy()
    hidden: Any = block.linear1.forward(tt.from_numpy(normalized(y)))
    wanted = y + block.linear2.forward(hidden.gelu()).numpy()
    np.testing.assert_allclose(block.forward(x).numpy(), wanted, rtol=1e-10, atol=1e-12)

    block = blocks.decoder
    own = tt.from_numpy(normalized(x.numpy()))
    y = x.numpy() + block.self_attn.forward(own, causal=True).numpy()
    z = y + block.cross_attn.forward(tt.from_numpy(normalized(y)), memory, memory).numpy()
    wanted = z + fed_forward(block, normalized(z))
    np.testing.assert_allclose(block.forward(x, memory).numpy(), wanted, rtol=1e-10, atol=1e-12)

    check_layer(blocks.encoder, x, rng)
    check_layer(blocks.decoder, x, rng, lambda x: blocks.decoder.forward(x, memory))


def test_a_block_drops_in_training_alone_and_by_its_own_rate(rng: np.random.Generator) -> None:
    block, x = encoder(rng), values(rng, 2, 3, 4)
    whole = block.forward(x).numpy()
    np.testing.assert_array_equal(block.forward(x.trace()).detach().numpy(), whole)

    block.drop.p = 1.0
    np.testing.assert_array_equal(block.forward(x).numpy(), whole)
    # Without its branches a block normalizes its input twice.
    wanted = normalized(normalized(x.numpy()))
    np.testing.assert_allclose(
        block.forward(x.trace()).detach().numpy(), wanted, rtol=1e-10, atol=1e-12
    )


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"norm_first": "yes"}, "norm_first must be True or False, .* got 'yes'"),
        ({"activation": "tan"}, "activation must be one of 'relu', .* or a function, .* got 'tan'"),
        ({"activation": 1}, "activation must be one of 'relu', .* or a function, .* got 1"),
        ({"activation": None}, "activation must be .* got None"),
        ({"norm": True}, "norm"),
    ],
)
def test_options_of_a_block_are_checked_when_it_is_built(
    wrong: dict[str, Any], message: str, rng: np.random.Generator
) -> None:
    options: Any = nn.options
    given: Any = options(**wrong)

    class Wrong(nn.Module):
        block: nn.EncoderBlock[L[4], L[2], L[6]] = given

    with pytest.raises(tt.TapeTensorError, match=message):
        build(Wrong, rng)


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_a_block_takes_any_activation_by_its_name(name: Any, rng: np.random.Generator) -> None:
    class Net(nn.Module):
        block: nn.EncoderBlock[L[4], L[2], L[6], np.float64] = nn.options(activation=name)

    block, x = build(Net, rng).block, values(rng, 2, 3, 4)
    layer = {one.__name__.lower(): one for one in vars(nn).values() if isinstance(one, type)}
    module = layer[name.replace("_", "")]()

    y = normalized(x.numpy() + block.self_attn.forward(x).numpy())
    hidden = module.forward(block.linear1.forward(tt.from_numpy(y)))
    wanted = normalized(y + block.linear2.forward(hidden).numpy())
    np.testing.assert_allclose(block.forward(x).numpy(), wanted, rtol=1e-10, atol=1e-12)


def test_the_names_of_activations_are_those_of_the_type() -> None:
    assert get_args(ActivationName) == (*ACTIVATIONS,)


def test_an_activation_may_be_a_function_or_a_module_and_set_later(
    rng: np.random.Generator,
) -> None:
    block, x = encoder(rng), values(rng, 2, 3, 4)
    memory, other = values(rng, 2, 5, 4), decoder(rng)
    relu = block.forward(x).numpy()

    block.activation = lambda hidden: hidden.clip(low=0.0)
    np.testing.assert_allclose(block.forward(x).numpy(), relu, rtol=1e-12)
    np.testing.assert_allclose(tt.compile(block.forward)(x).numpy(), relu, rtol=1e-12)
    block.activation, other.activation = tt.Tensor.silu, "silu"
    assert (block.forward(x).numpy() != relu).any()
    check_layer(block, x, rng)
    check_layer(other, x, rng, lambda x: other.forward(x, memory))
    block.activation = nn.PReLU(dtype=np.float64)
    assert "activation.weight" in block.parameters()
    check_layer(block, x, rng)
    for wrong in ("swoosh", 1, None):
        with pytest.raises(
            tt.BuildError, match=r"EncoderBlock: activation must be one of 'relu', "
        ):
            block.activation = wrong


def test_a_transformer_is_its_blocks_one_after_another(rng: np.random.Generator) -> None:
    model = build(nn.Transformer[L[4], L[2], L[6], L[2], L[2], np.float64], rng)
    source, target = values(rng, 2, 4, 4), values(rng, 2, 3, 4)

    memory = model.encoder.layers[1].forward(model.encoder.layers[0].forward(source))
    wanted = model.decoder[1].forward(model.decoder[0].forward(target, memory), memory)
    np.testing.assert_array_equal(model.forward(source, target).numpy(), wanted.numpy())
    assert model.forward(source, target.trace()).owns_tape


def test_what_does_not_fit_is_refused(rng: np.random.Generator) -> None:
    layer, x = attention(rng), values(rng, 2, 3, 6)
    with pytest.raises(ArgumentValueError, match="3 heads do not divide key_features 4"):
        build(nn.EncoderBlock[L[4], L[3], L[6]], rng)
    with pytest.raises(ArgumentValueError, match=r"2 heads .* and value_features 3"):
        attention(rng, 2, key_features=4, value_features=3)
    with pytest.raises(ShapeError, match="MultiHeadAttention: the last axis"):
        layer.forward(x, values(rng, 2, 3, 5), x)
    with pytest.raises(ShapeError, match="numbers of keys and values differ"):
        layer.forward(x, x, values(rng, 2, 4, 6))
    with pytest.raises(ShapeError, match="a mask of shape"):
        layer.forward(x, mask=tt.ones((3, 4), np.bool_))
    with pytest.raises(ArgumentTypeError, match="give key and value, or neither"):
        layer.forward(x, x)
    with pytest.raises(ShapeError, match="must have size 4"):
        encoder(rng).forward(values(rng, 3, 5))
    with pytest.raises(ShapeError, match=r"DecoderBlock: .* must have size 4"):
        decoder(rng).forward(values(rng, 3, 4), values(rng, 3, 5))
    with pytest.raises(DTypeError, match=r"DecoderBlock: .* float32"):
        decoder(rng).forward(values(rng, 3, 4), tt.ones((3, 4)))
    model = build(nn.Transformer[L[4], L[2], L[6], L[1], L[1]], rng)
    with pytest.raises(ArgumentTypeError, match="Transformer: the target must be a tensor"):
        model.forward(tt.ones((3, 4)), None)
    with pytest.raises(ArgumentValueError, match="decoder has no module"):
        build(nn.Transformer[L[4], L[2], L[6], L[1], L[0]], rng)
    model.decoder = []
    with pytest.raises(ArgumentValueError, match="Transformer: the decoder has no block"):
        model.forward(values(rng, 3, 4), values(rng, 3, 4))


@pytest.mark.parametrize("shape", [(4,), (3, 5), (7, 3, 4)])
def test_what_does_not_go_with_the_other_sequence_is_refused_and_moves_nothing(
    shape: tuple[int, ...], rng: np.random.Generator
) -> None:
    block = decoder(rng)
    model = build(nn.Transformer[L[4], L[2], L[6], L[1], L[1], np.float64], rng)
    x, other = values(rng, 2, 3, 4).trace(), values(rng, *shape)

    for forward in (block.forward, model.forward):
        for inputs in ((x, other), (other, x)):
            with pytest.raises(ShapeError, match=r"DecoderBlock: |Transformer: "):
                forward(*inputs)
    assert block.forward(x, values(rng, 2, 3, 4)).owns_tape
