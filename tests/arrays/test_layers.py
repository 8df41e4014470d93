"""Every layer over arrays that are not numpy's: outputs, gradients and running statistics."""

from __future__ import annotations

from typing import Any
from typing import Literal as L

import numpy as np
import pytest

import tapetensor as tt
from tapetensor import nn
from tests.arrays import foreign
from tests.arrays.placing import abroad, home
from tests.nn.layer_rows import ROWS, Row

_DTYPE = np.float64


def _trained(row: Row, layer: Any, x: Any) -> tuple[Any, tt.Gradients]:
    value, tape = row.run(layer, x.trace()).split_tape()
    return value, value.put_tape(tape).sin().sum().backward()


def _assert_near(found: Any, expected: Any, name: str) -> None:
    np.testing.assert_allclose(home(found), expected.numpy(), rtol=1e-9, atol=1e-11, err_msg=name)


@pytest.mark.parametrize("kind", ROWS)
def test_a_moved_layer_computes_what_the_layer_computes(kind: Any) -> None:
    row = ROWS[kind]
    array = np.random.default_rng(3).standard_normal(row.shape(2, 4))
    twin = row.make(4, np.random.default_rng(5))
    layer = row.make(4, np.random.default_rng(5)).to(foreign)
    host, there = tt.from_numpy(array), abroad(array)

    expected, expected_grads = _trained(row, twin, host)
    y, grads = _trained(row, layer, there)

    _assert_near(y, expected, "output")
    _assert_near(grads[there], expected_grads[host], "gradient of the input")
    theirs = twin.parameters()
    for path, parameter in layer.parameters().items():
        gradient = grads.get(parameter)
        assert (gradient is None) == (expected_grads.get(theirs[path]) is None)
        if gradient is not None:
            _assert_near(gradient, expected_grads[theirs[path]], path)
    for path, buffer in layer.buffers().items():
        _assert_near(buffer, twin.buffers()[path], path)


def test_a_batch_norm_infers_by_the_statistics_that_it_has_moved() -> None:
    layer, twin = nn.BatchNorm1d(6, _DTYPE).to(foreign), nn.BatchNorm1d(6, _DTYPE)
    x = np.random.default_rng(0).standard_normal((4, 6))

    layer.forward(abroad(x).trace())
    twin.forward(tt.from_numpy(x).trace())

    _assert_near(layer.forward(abroad(x)), twin.forward(tt.from_numpy(x)), "inference")


@pytest.mark.parametrize("make", [tt.from_numpy, abroad])
def test_an_embedding_takes_tokens_of_the_host_and_its_own(make: Any) -> None:
    tokens = np.array([[0, 3, 3], [1, 0, 2]])
    twin = nn.Embedding(5, 4, _DTYPE, rng=np.random.default_rng(0))
    layer = nn.Embedding(5, 4, _DTYPE, rng=np.random.default_rng(0)).to(foreign)

    found = layer.forward(make(tokens).trace()).sin().sum().backward()[layer.weight]
    there = tt.from_numpy(tokens).trace()
    _assert_near(found, twin.forward(there).sin().sum().backward()[twin.weight], "weight")


def test_a_module_goes_and_comes_back_with_its_ids() -> None:
    layer = nn.BatchNorm1d(6, _DTYPE)
    ids = {name: tensor.id for name, tensor in layer.parameters().items()}

    assert layer.to(foreign) is layer
    assert "foreign" in repr(layer.weight)
    layer.to(np)

    assert {name: tensor.id for name, tensor in layer.parameters().items()} == ids
    assert "foreign" not in repr(layer.weight)
    np.testing.assert_array_equal(layer.running_var.numpy(), np.ones(6))


def test_tied_weights_stay_tied() -> None:
    embedding: nn.Embedding[L[5], L[4]] = nn.Embedding(5, 4, rng=np.random.default_rng(0))
    out: nn.UnbiasedLinear[L[4], L[5]] = nn.UnbiasedLinear(4, 5, rng=np.random.default_rng(0))
    out.weight = embedding.weight

    class Tied(nn.Module):
        embed: nn.Embedding[L[5], L[4]]
        out: nn.UnbiasedLinear[L[4], L[5]]

    Tied(embed=embedding, out=out).to(foreign)

    assert out.weight is embedding.weight
    home(out.weight)
