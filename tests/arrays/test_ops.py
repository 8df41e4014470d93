"""Every op, loss and layer over arrays that are not numpy's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tapetensor as tt
from tapetensor import losses, nn
from tests.arrays import foreign
from tests.arrays.foreign import ForeignArray
from tests.arrays.placing import abroad, home
from tests.higher_order.test_every_op import FIRST_CASES, LOSSES, gradient_sum
from tests.io.models import tied
from tests.nn.layer_rows import ROWS, Row
from tests.ops.calling import gradients_of, on_every, reference_of, result_of, tensors_of
from tests.ops.rows import Case
from tests.ops.samples import CASES

# How a moved tensor is moved: whatever it is over, it is asked to go to numpy.
_MOVES = {"to"}
_CASES = [case for case in CASES if case.op.name not in _MOVES]
_DIFFERENTIABLE = [case for case in _CASES if case.op.is_differentiable]


def _is_of_integers(operand: Any) -> bool:
    return isinstance(operand, tt.Tensor | np.ndarray) and operand.dtype.kind in "iu"


# The values of indices are looked at, and whether a matrix is singular.
_OF_FLOATS = [
    case
    for case in _DIFFERENTIABLE
    if case.op.name not in ("getitem", "det")
    and not any(map(_is_of_integers, case.sample.operands))
]


def _arrays(result: Any) -> list[np.ndarray[Any, Any]]:
    parts = result if isinstance(result, tuple | list) else [result]
    return [home(part) for part in parts]


@on_every(_CASES)
def test_an_op_gives_what_it_gives_over_numpy(case: Case) -> None:
    expected = result_of(case, tensors_of(case.sample))

    result = result_of(case, tensors_of(case.sample, make=abroad))

    if not isinstance(expected, tt.Tensor | tuple | list):
        assert result == expected
        return
    ours = expected if isinstance(expected, tuple | list) else [expected]
    for array, one in zip(_arrays(result), ours, strict=True):
        assert array.dtype == one.dtype
        np.testing.assert_allclose(array, one.numpy(), rtol=1e-12, atol=1e-14)


@on_every(_DIFFERENTIABLE)
def test_the_gradients_are_those_over_numpy(case: Case, rng: np.random.Generator) -> None:
    cotangent = np.asarray(rng.standard_normal(np.shape(reference_of(case))))
    expected = gradients_of(case, tensors_of(case.sample), tt.from_numpy(cotangent))

    gradients = gradients_of(case, tensors_of(case.sample, make=abroad), abroad(cotangent))

    for gradient, value in zip(gradients, expected, strict=True):
        assert isinstance(gradient, ForeignArray) == (value is not None)
        if value is not None:
            assert gradient.dtype == value.dtype
            np.testing.assert_allclose(gradient.get(), value, rtol=1e-12, atol=1e-14)


@on_every(_OF_FLOATS)
def test_no_op_on_floats_waits_for_the_value_of_an_element(case: Case) -> None:
    operands = tensors_of(case.sample, make=abroad)
    y = result_of(case, operands)
    before = ForeignArray.reads

    gradients_of(case, operands, y)

    assert ForeignArray.reads == before


@on_every([case for case in FIRST_CASES if case.op.name != "to"])
def test_the_second_derivatives_are_those_over_numpy(case: Case) -> None:
    f, inputs = gradient_sum(case, np.random.default_rng(0))
    g, there = gradient_sum(case, np.random.default_rng(0), make=abroad)

    expected: Any = tt.grad(f, *inputs)
    found: Any = tt.grad(g, *there)

    pairs = [(found, expected)] if len(inputs) == 1 else list(zip(found, expected, strict=True))
    for one, other in pairs:
        np.testing.assert_allclose(home(one), other.numpy(), rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("size", [1 << 13, (1 << 20) + 3])
@pytest.mark.parametrize(
    "op", ["relu", "sigmoid", "tanh", "exp", "square", "silu", "gelu", "softplus", "__neg__"]
)
def test_long_arrays_take_no_path_that_is_for_numpy_alone(op: str, size: int) -> None:
    array = np.linspace(-4.0, 4.0, size, dtype=np.float32)
    x, twin = abroad(array), tt.from_numpy(array)

    gradients = getattr(x.trace(), op)().sum().backward()
    expected: Any = getattr(twin.trace(), op)().sum().backward()

    np.testing.assert_allclose(home(gradients[x]), expected[twin].numpy(), rtol=1e-5, atol=1e-6)


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
    model = tied(0).to(foreign)

    assert model.out.weight is model.embed.weight
    home(model.out.weight)


_X = np.random.default_rng(0).standard_normal((4, 3))


def _of_integers_at_home(array: Any) -> Any:
    return tt.from_numpy(array) if array.dtype.kind == "i" else abroad(array)


@pytest.mark.parametrize("make", [abroad, _of_integers_at_home])
@pytest.mark.parametrize("name", LOSSES)
def test_a_loss_has_the_value_and_the_gradient_that_it_has_over_numpy(
    name: str, make: Callable[[Any], Any]
) -> None:
    x, twin = abroad(_X), tt.from_numpy(_X)
    expected = LOSSES[name](twin.trace(), tt.from_numpy)

    value = LOSSES[name](x.trace(), make)

    np.testing.assert_allclose(home(value.detach()), expected.detach().numpy(), rtol=1e-12)
    gradient, wanted = value.backward()[x], expected.backward()[twin]
    np.testing.assert_allclose(home(gradient), wanted.numpy(), rtol=1e-12, atol=1e-15)


def test_labels_that_are_no_classes_are_named_wherever_they_lie() -> None:
    with pytest.raises(tt.AxisError, match="found 7"):
        losses.cross_entropy(abroad(_X), abroad(np.array([0, 7, 1, 1])))
    with pytest.raises(tt.ArgumentValueError, match="1 or -1"):
        losses.cosine_embedding(abroad(_X), abroad(_X), abroad(np.array([0, 1, 1, 1])))
