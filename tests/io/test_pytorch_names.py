"""The names of PyTorch's attentions, written and read without PyTorch."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from typing import Literal as L

import numpy as np
import pytest

import tapetensor as tt
from tapetensor import io, nn, optim
from tapetensor.errors import ArgumentTypeError, ArgumentValueError, StateMismatchError
from tests.io.models import FORMATS, assert_same


class Net(nn.Module):
    blocks: list[nn.DecoderBlock[L[4], L[2], L[6]]] = nn.repeat(1)
    # Not that of a decoder: its name stays.
    cross_attn: nn.MultiHeadAttention[L[4], L[1]]


def net(seed: int) -> Net:
    return tt.build(Net, rng=np.random.default_rng(seed))


@pytest.mark.parametrize("suffix", FORMATS)
def test_a_model_saved_for_pytorch_has_its_names_and_loads_here(
    tmp_path: Path, suffix: str
) -> None:
    path, model, other = tmp_path / f"net{suffix}", net(1), net(2)
    io.save(path, model, for_pytorch=True)
    io.load(path, other)

    assert_same(io.state_dict(other), io.state_dict(model))
    state = io.state_dict(model, for_pytorch=True)
    # So a checkpoint of PyTorch's looks that was turned into safetensors.
    io.write(path, {f"model.{name}": array for name, array in state.items()})
    third = net(3)
    io.load_checkpoint(path, model=third)
    assert_same(io.state_dict(third), io.state_dict(model))
    attentions = ("blocks.0.self_attn", "blocks.0.multihead_attn", "cross_attn")
    assert {name: array.shape for name, array in state.items() if "attn" in name} == {
        f"{attention}.{name}": shape
        for attention in attentions
        for name, shape in {
            "in_proj_weight": (12, 4),
            "in_proj_bias": (12,),
            "out_proj.weight": (4, 4),
            "out_proj.bias": (4,),
        }.items()
    }
    np.testing.assert_array_equal(
        state["blocks.0.multihead_attn.in_proj_weight"][4:8],
        model.blocks[0].cross_attn.w_k.weight.numpy(),
    )


def test_what_does_not_fit_is_said_in_our_names_and_changes_nothing() -> None:
    model = net(1)
    before, state = io.state_dict(model), io.state_dict(net(2), for_pytorch=True)
    bias = state.pop("cross_attn.in_proj_bias")
    state |= {
        "cross_attn.in_proj_weight": np.zeros((12, 5)),
        "blocks.0.self_attn.in_proj_weight": np.zeros((4, 4), np.float32),
        "blocks.0.multihead_attn.in_proj_bias": np.zeros((), np.float32),
        "blocks.0.self_attn.w_q.bias": bias[:4],
    }

    with pytest.raises(StateMismatchError) as caught:
        io.load_state_dict(model, state)

    said = caught.value.differences
    assert "cross_attn.w_q.bias: missing" in said
    assert "cross_attn.w_v.weight: shape (4, 5), expected is (4, 4)" in said
    assert "cross_attn.w_v.weight: dtype float64, expected is float32" in said
    # What is no three layers, or has both names, stays under theirs.
    assert "blocks.0.self_attn.in_proj_weight: not in the model" in said
    assert "blocks.0.self_attn.in_proj_bias: not in the model" in said
    assert "blocks.0.multihead_attn.in_proj_bias: not in the model" in said
    assert_same(io.state_dict(model), before)


def test_what_pytorch_has_no_names_for_is_refused(tmp_path: Path) -> None:
    path, model = tmp_path / "net.npz", net(1)
    wide: Any = nn.MultiHeadAttention(
        4, 2, key_features=2, value_features=4, rng=np.random.default_rng(0)
    )

    with pytest.raises(ArgumentValueError, match="save: the attention 0 has key_features"):
        io.save(path, nn.Sequential(wide), for_pytorch=True)
    with pytest.raises(ArgumentValueError, match="state_dict: the attention itself"):
        io.state_dict(wide, for_pytorch=True)
    with pytest.raises(ArgumentTypeError, match="save: PyTorch has names for a Module, not"):
        io.save(path, optim.Adam(model), for_pytorch=True)
    assert not path.exists()
