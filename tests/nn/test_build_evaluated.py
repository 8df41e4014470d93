"""`build` where annotations are objects: a file without the future import."""

from typing import Generic
from typing import Literal as L

import numpy as np

import tapetensor as tt
from tapetensor import NoneTape, Tensor1D, nn
from tapetensor.typing import N


class Block(nn.Module, Generic[N]):
    linear: nn.Linear[N, L[4]]
    scale: Tensor1D[N, NoneTape, np.float64] = nn.parameter(nn.init.ones)


class Model(nn.Module):
    block: Block[L[3]]
    blocks: list[Block[L[2]]] = nn.repeat(2)
    later: "Later"
    laters: "list[Later]" = nn.repeat(1)
    inner: list["Later"] = nn.repeat(1)


class Later(nn.Module):
    act: nn.ReLU


def test_objects_strings_and_strings_within_objects(rng: np.random.Generator) -> None:
    model = tt.build(Model, rng=rng)

    assert model.block.linear.weight.shape == (4, 3)
    assert model.block.scale.dtype == np.float64
    assert [block.scale.shape for block in model.blocks] == [(2,), (2,)]
    assert isinstance(model.later.act, nn.ReLU)
    assert isinstance(model.laters[0], Later)
    assert isinstance(model.inner[0], Later)


def test_a_constructor_of_the_user(rng: np.random.Generator) -> None:
    class Head(nn.Module, Generic[N]):
        linear: nn.Linear[N, L[2]]

        def __init__(self, size: N, *, rng: np.random.Generator) -> None:
            self.linear = nn.Linear(size, 2, rng=rng)

    assert tt.build(Head[L[4]], rng=rng).linear.weight.shape == (2, 4)
