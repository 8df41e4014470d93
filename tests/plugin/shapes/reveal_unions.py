"""Layers of several sizes in one tuple, one by one: each has open sizes, and is no object."""

from __future__ import annotations

from typing import Any
from typing import Literal as L

import numpy as np

import tapetensor as tt
from tapetensor import Tensor, Tensor0D, Tensor1D, Tensor2D, nn
from tapetensor.typing import B, T
from tests.typing.check import assert_type, check

rng = np.random.default_rng(0)
Layers = tuple[nn.Linear[L[4], L[5]], nn.Linear[L[5], L[3]]]


def enumerated(layers: Layers, x: Tensor2D[B, L[4], T]) -> Tensor2D[B, Any, T]:
    h: Tensor2D[B, Any, T] = x
    for index, layer in enumerate(layers):
        assert_type(layer, nn.Linear[Any, Any])
        h = layer.forward(h)
        if index < len(layers) - 1:
            h = h.relu()
    return h


def zipped(layers: Layers, x: Tensor2D[B, L[4], T]) -> Tensor2D[B, Any, T]:
    h: Tensor2D[B, Any, T] = x
    norms = nn.LayerNorm(5), nn.LayerNorm(3)
    for layer, norm, is_last in zip(layers, norms, (False, True), strict=True):
        assert_type(norm, nn.LayerNorm[Any])
        h = norm.forward(layer.forward(h))
        h = h if assert_type(is_last, bool) else h.relu()
    return h


def sizes(layers: Layers) -> list[int]:
    return [index * layer.out_features for index, layer in enumerate(reversed(layers), 1)]


def cleared(layers: Layers) -> None:
    """What is one layer or another has a parameter of one shape or another."""
    for layer in layers:
        layer.weight = (layer.weight * 0.5).detach()
        layer.bias = tt.zeros(layer.bias.shape)
        check(layer.bias, (layer.out_features,))


layers = (nn.Linear(4, 5, rng=rng), nn.Linear(5, 3, rng=rng))
check(enumerated(layers, tt.ones((2, 4))), (2, 3))
check(zipped(layers, tt.ones((2, 4))), (2, 3))
assert sizes(layers) == [3, 10]
cleared(layers)
# One type for all there is needs no union.
pair = tt.ones((4,)), tt.ones((4,))
for _, one in enumerate(pair):
    check(assert_type(one, Tensor1D[L[4]]), (4,))


class Mlp(nn.Module):
    hidden: nn.Linear[L[4], L[5]]
    out: nn.Linear[L[5], L[3]]
    same: nn.Linear[L[5], L[3]]

    def forward(self, x: Tensor2D[B, L[4], T]) -> Tensor2D[B, Any, T]:
        h: Tensor2D[B, Any, T] = x
        for layer in [self.hidden, self.out]:
            assert_type(layer, nn.Linear[Any, Any])
            h = layer.forward(h)
        return h

    def in_turn(self, x: Tensor2D[B, L[4], T]) -> Tensor2D[B, Any, T]:
        h: Tensor2D[B, Any, T] = x
        for layer in (self.hidden, self.out):
            h = assert_type(layer, nn.Linear[Any, Any]).forward(h)
        return h


def squares(model: Mlp) -> list[Tensor0D]:
    """A loop over what is listed has a turn; `zip` and the like are given such a list, too."""
    total = tt.zeros(())
    h = tt.ones((2, 4))
    for layer, name in zip([model.hidden, model.out], ["hidden", "out"], strict=True):
        h = layer.forward(h)
        total = total + h.square().sum() * float(len(name))
    check(assert_type(h, Tensor2D[L[2], Any]), (2, 3))
    return [total, *[w.square().sum() for w in (model.hidden.weight, model.out.weight)]]


def listed(model: Mlp) -> None:
    """What is listed of a model has open dims where its tensors, or layers, have several."""
    weights = [model.hidden.weight, model.out.weight]
    assert_type(weights, list[Tensor2D[Any, Any]])
    rest = [model.hidden.weight, model.out.bias]
    check(assert_type(rest[1], Tensor[Any]), (3,))
    named = {"hidden": model.hidden, "out": model.out}
    check(assert_type(named["out"], nn.Linear[Any, Any]).bias, (3,))
    twice = [model.out.weight, model.same.weight]
    assert_type(twice, list[Tensor2D[L[3], L[5]]])
    partly = [model.out, nn.Linear(5, 3, rng=rng)]
    check(partly[1].weight, (3, 5))
    joined = tt.concat([model.out.bias, model.hidden.bias])
    check(assert_type(joined, Tensor1D[L[8]]), (8,))


model = tt.build(Mlp, rng=rng)
check(model.forward(tt.ones((2, 4))), (2, 3))
check(model.in_turn(tt.ones((2, 4))), (2, 3))
listed(model)
assert len(squares(model)) == 3
