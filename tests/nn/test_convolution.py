"""Convolution layers: values, gradients, first values, refusals, both ways to make one."""

from __future__ import annotations

from typing import Any
from typing import Literal as L

import numpy as np
import pytest

import tapetensor as tt
from tapetensor import nn
from tapetensor.errors import ArgumentValueError, DTypeError, ShapeError
from tests.nn.gradients import check_layer
from tests.ops import windows_reference as reference

# The layer, the input, what it is called with, and the numbers of the reference.
LAYERS: list[tuple[Any, Any, tuple[int, ...], dict[str, Any]]] = [
    (nn.Conv1d, reference.conv1d, (2, 4, 7), {}),
    (nn.Conv1d, reference.conv1d, (4, 7), {"stride": 2, "padding": 1, "dilation": 2}),
    (nn.Conv1d, reference.conv1d, (0, 4, 7), {"groups": 2}),
    (nn.Conv2d, reference.conv2d, (2, 4, 5, 6), {}),
    (nn.Conv2d, reference.conv2d, (4, 5, 6), {"stride": 2, "padding": 1}),
    (nn.Conv2d, reference.conv2d, (2, 1, 4, 5, 5), {"dilation": 2, "groups": 2}),
    (nn.Conv2d, reference.conv2d, (0, 4, 5, 6), {"padding": 1}),
    (
        nn.ConvTranspose1d,
        reference.conv_transpose1d,
        (2, 4, 7),
        {"stride": 2, "padding": 1, "output_padding": 1, "groups": 2},
    ),
    (nn.ConvTranspose2d, reference.conv_transpose2d, (2, 4, 3, 4), {}),
    (
        nn.ConvTranspose2d,
        reference.conv_transpose2d,
        (4, 3, 4),
        {"stride": 2, "padding": 1, "output_padding": 1},
    ),
    (
        nn.ConvTranspose2d,
        reference.conv_transpose2d,
        (2, 4, 3, 4),
        {"dilation": 2, "groups": 2},
    ),
]


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize(("cls", "plain", "shape", "numbers"), LAYERS)
def test_the_value_is_that_of_windows_one_by_one(
    cls: Any, plain: Any, shape: Any, numbers: Any, bias: bool, rng: np.random.Generator
) -> None:
    layer = cls(4, 6, 3, **numbers, dtype=np.float64, bias=bias, rng=rng)
    x = tt.from_numpy(rng.standard_normal(shape))

    y = layer.forward(x)

    added = layer.bias.numpy() if bias else None
    wanted = plain(x.numpy(), layer.weight.numpy(), added, **numbers)
    assert list(layer.parameters()) == ["weight", "bias"][: 1 + bias]
    assert y.shape == wanted.shape
    np.testing.assert_allclose(y.numpy(), wanted, rtol=1e-12, atol=1e-12)
    np.testing.assert_array_equal(layer.forward(x.trace()).detach().numpy(), y.detach().numpy())


@pytest.mark.parametrize(("cls", "plain", "shape", "numbers"), LAYERS)
def test_the_gradients_by_input_weight_and_bias(
    cls: Any, plain: Any, shape: Any, numbers: Any, rng: np.random.Generator
) -> None:
    layer = cls(4, 6, 3, **numbers, dtype=np.float64, rng=rng)

    check_layer(layer, tt.from_numpy(rng.standard_normal(shape)), rng)


@pytest.mark.parametrize(
    ("layer", "bound"),
    [
        (nn.Conv1d(8, 64, 5, rng=np.random.default_rng(0)), 40),
        (nn.Conv2d(8, 64, 5, groups=2, rng=np.random.default_rng(0)), 100),
        (nn.ConvTranspose2d(8, 64, 5, groups=4, rng=np.random.default_rng(0)), 50),
    ],
    ids=["Conv1d", "Conv2d", "ConvTranspose2d"],
)
def test_first_values_are_uniform_within_what_one_output_adds_up(layer: Any, bound: int) -> None:
    for name, least in (("weight", 0.97), ("bias", 0.8)):
        values = getattr(layer, name).numpy() * float(np.sqrt(bound))
        assert values.dtype == np.float32
        assert least < np.abs(values).max() <= 1.0
    np.testing.assert_allclose(layer.weight.numpy().std() * np.sqrt(3 * bound), 1.0, rtol=0.05)


def test_build_reads_all_numbers_from_the_annotation(rng: np.random.Generator) -> None:
    class Net(nn.Module):
        plain: nn.Conv2d[L[3], L[8], L[3]]
        strided: nn.Conv2d[L[8], L[16], L[3], L[2], L[1], L[1], L[4]] = nn.options(bias=False)
        wide: nn.Conv1d[L[4], L[4], L[3], L[1], L[2], L[2], L[1], np.float64]
        double: nn.ConvTranspose2d[L[16], L[8], L[2], L[2]]
        odd: nn.ConvTranspose2d[L[8], L[4], L[3], L[2], L[1], L[1]]

    net = tt.build(Net, rng=rng)

    assert net.plain.weight.shape == (8, 3, 3, 3)
    assert (net.plain.stride, net.plain.padding, net.plain.groups) == (1, 0, 1)
    assert net.strided.weight.shape == (16, 2, 3, 3)
    assert net.strided.bias is None
    assert (net.strided.stride, net.strided.padding, net.strided.dilation) == (2, 1, 1)
    assert net.wide.weight.dtype == np.float64
    assert net.wide.dilation == 2
    assert net.double.weight.shape == (16, 8, 2, 2)
    assert net.odd.forward(tt.zeros((1, 8, 5, 5))).shape == (1, 4, 10, 10)
    assert repr(net.plain).startswith("Conv2d(in_channels=3, out_channels=8, kernel_size=3, str")


@pytest.mark.parametrize("cls", [nn.Conv1d, nn.Conv2d, nn.ConvTranspose1d, nn.ConvTranspose2d])
def test_numbers_that_no_layer_can_have_are_refused(cls: Any, rng: np.random.Generator) -> None:
    with pytest.raises(ArgumentValueError, match=f"{cls.__name__}: padding must not be negative"):
        cls(4, 4, 3, padding=-1, rng=rng)
    message = f"{cls.__name__}: 3 groups do not divide in_channels 4 and out_channels 6"
    with pytest.raises(ArgumentValueError, match=message):
        cls(4, 6, 3, groups=3, rng=rng)


def test_more_output_padding_than_a_stride_is_refused(rng: np.random.Generator) -> None:
    message = "output_padding must be less than the stride 2 or the dilation 1, got 2"
    with pytest.raises(ArgumentValueError, match=message):
        nn.ConvTranspose2d(4, 4, 3, stride=2, output_padding=2, rng=rng)


def test_an_input_that_does_not_fit_is_refused(rng: np.random.Generator) -> None:
    layer: Any = nn.Conv2d(3, 4, 3, rng=rng)

    for shape, message in (
        ((2, 4, 5, 5), r"conv2d: channels differ: the input of shape \(2, 4, 5, 5\) has 4"),
        ((2, 3, 2, 5), r"conv2d: a kernel of \(3, 3\) is larger than the padded input \(2, 5\)"),
        ((5, 5), r"conv2d: the input must have shape \(..., C, H, W\), got \(5, 5\)"),
    ):
        x = tt.ones(shape).trace()
        with pytest.raises(ShapeError, match=message):
            layer.forward(x)
    with pytest.raises(DTypeError, match="Conv2d: the input has dtype float64, the weights"):
        layer.forward(tt.ones((2, 3, 5, 5), np.float64))


def test_the_gradient_of_an_input_that_nobody_wants_is_not_computed(
    rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    layer = nn.Conv2d(3, 4, 3, rng=rng)
    loss = layer.forward(tt.ones((2, 3, 5, 5)).trace()).sum()

    # What turns the cotangents of windows into one of the input.
    monkeypatch.setattr("tapetensor.kernels.convolution.scatter", None)

    assert set(loss.backward(wrt=layer)) == {one.id for one in layer.parameters().values()}
