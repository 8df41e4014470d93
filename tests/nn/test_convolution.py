"""Layers on images and sequences: convolutions, pooling, stretching."""

from __future__ import annotations

from typing import Any
from typing import Literal as L

import numpy as np
import pytest

import tapetensor as tt
from tapetensor import nn
from tapetensor.errors import ShapeError
from tests.nn.gradients import check_layer
from tests.ops import windows_reference as reference

PLAIN: dict[Any, Any] = {
    nn.Conv1d: reference.conv1d,
    nn.Conv2d: reference.conv2d,
    nn.ConvTranspose1d: reference.conv_transpose1d,
    nn.ConvTranspose2d: reference.conv_transpose2d,
}
_LONGER = {"stride": 2, "padding": 1, "output_padding": 1}
# The layer, the shape of the input, and the numbers.
LAYERS: list[tuple[Any, tuple[int, ...], dict[str, Any]]] = [
    (nn.Conv1d, (2, 4, 7), {}),
    (nn.Conv1d, (4, 7), {"stride": 2, "padding": 1, "dilation": 2}),
    (nn.Conv1d, (0, 4, 7), {"groups": 2}),
    (nn.Conv2d, (4, 5, 6), {"stride": 2, "padding": 1}),
    (nn.Conv2d, (2, 1, 4, 5, 5), {"dilation": 2, "groups": 2}),
    (nn.Conv2d, (0, 4, 5, 6), {"padding": 1}),
    (nn.ConvTranspose1d, (2, 4, 7), _LONGER | {"groups": 2}),
    (nn.ConvTranspose2d, (4, 3, 4), _LONGER),
    (nn.ConvTranspose2d, (2, 4, 3, 4), {"dilation": 2, "groups": 2}),
]


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize(("cls", "shape", "numbers"), LAYERS)
def test_the_value_is_that_of_windows_one_by_one(
    cls: Any, shape: Any, numbers: Any, bias: bool, rng: np.random.Generator
) -> None:
    layer = cls(4, 6, 3, **numbers, dtype=np.float64, bias=bias, rng=rng)
    x = tt.from_numpy(rng.standard_normal(shape))

    y = layer.forward(x)

    added = layer.bias.numpy() if bias else None
    wanted = PLAIN[cls](x.numpy(), layer.weight.numpy(), added, **numbers)
    assert list(layer.parameters()) == ["weight", "bias"][: 1 + bias]
    assert y.shape == wanted.shape
    np.testing.assert_allclose(y.numpy(), wanted, rtol=1e-12, atol=1e-12)
    np.testing.assert_array_equal(layer.forward(x.trace()).detach().numpy(), y.detach().numpy())


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


def test_the_gradient_of_an_input_that_nobody_wants_is_not_computed(
    rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    layer = nn.Conv2d(3, 4, 3, rng=rng)
    loss = layer.forward(tt.ones((2, 3, 5, 5)).trace()).sum()

    # What turns the cotangents of windows into one of the input.
    monkeypatch.setattr("tapetensor.kernels.convolution.scatter", None)

    assert set(loss.backward(wrt=layer)) == {one.id for one in layer.parameters().values()}


def test_windows_need_not_be_square_and_are_built_from_annotations(
    rng: np.random.Generator,
) -> None:
    class Net(nn.Module):
        tall: nn.Conv2d[L[1], L[8], tuple[L[64], L[1]], tuple[L[4], L[1]]]
        same: nn.Conv2d[L[8], L[4], tuple[L[4], L[3]], L[1], L["same"], tuple[L[2], L[1]]]
        pool: nn.MaxPool2d[tuple[L[2], L[1]]]
        means: nn.AvgPool2d[tuple[L[2], L[3]], L[1], tuple[L[0], L[1]]]
        up: nn.ConvTranspose2d[
            L[4], L[2], tuple[L[3], L[2]], tuple[L[2], L[1]], tuple[L[1], L[0]], tuple[L[1], L[0]]
        ]
        along: nn.Conv1d[L[2], L[2], L[4], L[1], L["same"]]

    net = tt.build(Net, rng=rng)
    assert net.tall.weight.shape == (8, 1, 64, 1)
    assert (net.tall.kernel_size, net.tall.stride, net.same.padding) == ((64, 1), (4, 1), "same")
    assert (net.pool.stride, net.up.output_padding) == ((2, 1), (1, 0))
    x: Any = tt.ones((3, 1, 128, 5))
    shapes = []
    for layer in (net.tall, net.same, net.pool, net.means, net.up):
        x = layer.forward(x)
        shapes.append(x.shape)
    assert shapes == [(3, 8, 17, 5), (3, 4, 17, 5), (3, 4, 8, 5), (3, 4, 7, 5), (3, 2, 14, 6)]
    assert net.along.forward(tt.ones((2, 9))).shape == (2, 9)
    assert "kernel_size=(64, 1), stride=(4, 1), padding=0" in repr(net)


@pytest.mark.parametrize("kernel", [(4, 3), (2, 2), 5, (1, 6)])
@pytest.mark.parametrize("dilation", [1, (2, 1), 3])
def test_padding_that_keeps_the_size_is_one_more_at_the_end_where_it_is_odd(
    kernel: Any, dilation: Any, rng: np.random.Generator
) -> None:
    layer: Any = nn.Conv2d(
        2, 4, kernel, padding="same", dilation=dilation, groups=2, dtype=np.float64, rng=rng
    )
    x = tt.from_numpy(rng.standard_normal((3, 2, 9, 8)))
    spans = [
        apart * (size - 1)
        for size, apart in zip(layer.weight.shape[2:], np.broadcast_to(dilation, 2), strict=True)
    ]
    ends = [(int(span) // 2, int(span) - int(span) // 2) for span in spans]

    y = layer.forward(x)
    wanted = tt.conv2d(
        x.pad(((0, 0), (0, 0), *ends)), layer.weight, layer.bias, dilation=dilation, groups=2
    )
    assert y.shape == (3, 4, 9, 8)
    np.testing.assert_allclose(y.numpy(), wanted.numpy(), rtol=1e-12)
    np.testing.assert_array_equal(tt.compile(layer.forward)(x).numpy(), y.numpy())
    check_layer(layer, x, rng)


def test_numbers_that_no_layer_can_have_are_refused(rng: np.random.Generator) -> None:
    names = ("Conv2d", "ConvTranspose2d", "MaxPool2d", "Conv1d", "Upscale2d", "Upscale2dBy")
    conv, up, pool, one_axis, to_size, by = (vars(nn)[name] for name in names)
    refused: list[tuple[Any, str]] = [
        (lambda: conv(2, 2, (3,), rng=rng), r"Conv2d: kernel_size is an int or 2 of them in a"),
        (lambda: conv(2, 2, (3, 0), rng=rng), r"Conv2d: kernel_size must be > 0, got 0"),
        (lambda: conv(2, 2, 3, padding=(0, -1), rng=rng), "padding must not be negative, got -1"),
        (lambda: conv(2, 2, 3, padding="valid", rng=rng), 'Conv2d: padding must be "same", got'),
        (lambda: conv(2, 2, 3, (1, 2), "same", rng=rng), r'padding="same" keeps .* \(1, 2\) does'),
        (lambda: conv(2, 2, 3, stride="same", rng=rng), "stride must be an int, got 'same'"),
        (lambda: up(2, 2, 3, padding="same", rng=rng), "padding must be an int, got 'same'"),
        (lambda: up(2, 2, 3, (2, 1), output_padding=1, rng=rng), "must be less than the stride"),
        (
            lambda: up(2, 2, 3, 2, output_padding=2, rng=rng),
            r"output_padding \(2, 2\) must be less",
        ),
        (lambda: pool((2, 4), padding=(2, 0)), r"more than half of the window \(2, 4\)"),
        (lambda: pool(2, 2, 2), r"MaxPool2d: padding \(2, 2\) is more than half of the window"),
        (lambda: pool(2, 2, -1), "MaxPool2d: padding must not be negative, got -1"),
        (lambda: pool(2, 0), "MaxPool2d: stride must be > 0, got 0"),
        (lambda: pool(2, 1.0), "MaxPool2d: stride must be an int, got 1.0"),
        (lambda: pool(2, dilation=(1, 0)), "MaxPool2d: dilation must be > 0, got 0"),
        (lambda: conv(4, 6, 3, groups=3, rng=rng), "Conv2d: 3 groups do not divide in_channels 4"),
        (lambda: to_size(2, 2, mode="cubic"), "Upscale2d: mode must be .*, got 'cubic'"),
        (lambda: by(2, mode="cubic"), "Upscale2dBy: mode must be .*, got 'cubic'"),
        (lambda: one_axis(2, 2, (3,), rng=rng), r"Conv1d: kernel_size must be an int, got \(3,\)"),
    ]
    for call, message in refused:
        with pytest.raises(tt.TapeTensorError, match=message):
            call()


def test_a_window_that_is_no_pair_of_sizes_is_not_built(rng: np.random.Generator) -> None:
    made: Any = nn.Conv2d
    with pytest.raises(tt.BuildError, match=r"the dim int has no size"):
        tt.build(made[L[1], L[2], tuple[L[3], int]], rng=rng)
    with pytest.raises(tt.BuildError, match=r"the dim tuple\[Literal\[3\], Literal\[1\]\] has no"):
        tt.build(made[tuple[L[3], L[1]], L[2], L[3]], rng=rng)

    class Net(nn.Module):
        tall: nn.Conv2d[L[1], L[2], tuple[L[3], L[1]]]

    make: Any = Net
    with pytest.raises(
        ShapeError, match=r"tall\.kernel_size\.1 is 2, the annotation of tall says 1"
    ):
        make(tall=nn.Conv2d(1, 2, (3, 2), rng=rng))


_MEAN = reference.pool2d(lambda seen: seen.mean(axis=(-2, -1)), 0.0)
_MAX = reference.pool2d(lambda seen: seen.max(axis=(-2, -1)), -np.inf)
_MIN = reference.pool2d(lambda seen: seen.min(axis=(-2, -1)), np.inf)

# A layer, and what it does to an array.
IMAGES: list[tuple[nn.Module, Any]] = [
    (nn.AvgPool2d(2), lambda x: _MEAN(x, 2)),
    (nn.AvgPool2d(3, 2, 1), lambda x: _MEAN(x, 3, stride=2, padding=1)),
    (nn.MaxPool2d(2), lambda x: _MAX(x, 2)),
    (nn.MaxPool2d(3, stride=1, padding=1), lambda x: _MAX(x, 3, stride=1, padding=1)),
    (nn.MinPool2d(2), lambda x: _MIN(x, 2)),
    (nn.GlobalAvgPool2d(), lambda x: x.mean(axis=(-2, -1))),
    (nn.GlobalMaxPool2d(), lambda x: x.max(axis=(-2, -1))),
    (nn.GlobalMinPool2d(), lambda x: x.min(axis=(-2, -1))),
    (nn.Upscale2d(7, 6, "bilinear"), lambda x: reference.upscale2d(x, (7, 6), "bilinear")),
    (nn.Upscale2dBy(2), lambda x: x.repeat(2, axis=-1).repeat(2, axis=-2)),
    (nn.Upscale2dBy(3, mode="bilinear"), lambda x: reference.upscale2d(x, (15, 18), "bilinear")),
    (
        nn.Upscale2d(7, 6, "bicubic", align_corners=False),
        lambda x: reference.upscale2d(x, (7, 6), "bicubic", align_corners=False),
    ),
    (nn.Flatten(), lambda x: x.reshape(x.shape[0], -1)),
]
NAMES = [f"{type(layer).__name__}-{number}" for number, (layer, _) in enumerate(IMAGES)]


@pytest.mark.parametrize("shape", [(2, 3, 5, 6), (3, 5, 6)])
@pytest.mark.parametrize(("layer", "wanted"), IMAGES, ids=NAMES)
def test_value_and_gradient(layer: Any, wanted: Any, shape: Any, rng: np.random.Generator) -> None:
    x = tt.from_numpy(rng.standard_normal(shape))

    y = layer.forward(x)

    np.testing.assert_allclose(y.numpy(), wanted(x.numpy()), rtol=1e-12, atol=1e-14)
    assert y.shape == wanted(x.numpy()).shape
    np.testing.assert_array_equal(layer.forward(x.trace()).detach().numpy(), y.detach().numpy())
    check_layer(layer, x, rng)


@pytest.mark.parametrize("shape", [(2, 3, 5, 6), (3, 5, 6), (0, 3, 2, 2)])
def test_a_bias_shifts_channels_and_is_trained(shape: Any, rng: np.random.Generator) -> None:
    layer: nn.Bias2d[Any, np.float64] = nn.Bias2d(3, np.float64)
    assert layer.bias.numpy().tolist() == [0.0, 0.0, 0.0]
    layer.bias = tt.from_numpy(rng.standard_normal(3))
    x = tt.from_numpy(rng.standard_normal(shape))

    wanted = x.numpy() + layer.bias.numpy()[:, None, None]
    np.testing.assert_array_equal(layer.forward(x).numpy(), wanted)
    check_layer(layer, x, rng)


def test_build_reads_the_numbers_from_the_annotation(rng: np.random.Generator) -> None:
    class Net(nn.Module):
        halve: nn.MaxPool2d[L[2]]
        overlap: nn.AvgPool2d[L[3], L[2], L[1]]
        least: nn.MinPool2d[L[4], L[1]]
        to_size: nn.Upscale2d[L[9], L[7]]
        double: nn.Upscale2dBy[L[2]] = nn.options(mode="bilinear")

    net = tt.build(Net, rng=rng)

    assert (net.halve.kernel_size, net.halve.stride, net.halve.padding) == (2, 2, 0)
    assert (net.overlap.kernel_size, net.overlap.stride, net.overlap.padding) == (3, 2, 1)
    assert (net.least.kernel_size, net.least.stride, net.least.padding) == (4, 1, 0)
    assert (net.to_size.height, net.to_size.width, net.to_size.mode) == (9, 7, "nearest")
    assert (net.double.factor, net.double.mode) == (2, "bilinear")
    assert repr(nn.MaxPool2d((2, 1))) == (
        "MaxPool2d(kernel_size=(2, 1), stride=(2, 1), padding=0, dilation=1)"
    )
    assert repr(net.overlap) == "AvgPool2d(kernel_size=3, stride=2, padding=1, dilation=1)"
