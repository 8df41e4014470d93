"""A plan adds in the order in which eager mode adds: results are equal bit by bit."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tapetensor as tt
from benchmarks.kernels import kernels_of_this_machine
from tapetensor import losses, nn
from tapetensor.compiler import plans
from tapetensor.kernels.numerics.sums import row_sums
from tapetensor.machine.blas import KERNEL_VARIABLE

ROOT = Path(__file__).parents[2]
Module = Callable[[], Any]


def _random(*shape: int) -> Any:
    return tt.from_numpy(np.random.default_rng(1).standard_normal(shape).astype(np.float32))


def _rng() -> np.random.Generator:
    return np.random.default_rng(0)


def _arrays_of(results: Any) -> list[Any]:
    return [one.numpy() if isinstance(one, tt.Tensor) else np.array(one) for one in results]


def _assert_same_bits(run: Any, *args: Any) -> None:
    expected = _arrays_of(run(*args))
    compiled = tt.compile(run)
    for _ in range(2):
        for found, wanted in zip(_arrays_of(compiled(*args)), expected, strict=True):
            np.testing.assert_array_equal(found, wanted, strict=True)


def _gradients(module: Any, x: Any, target: Any) -> list[Any]:
    """Return the output, and the gradients of the input and of every parameter."""
    y = module.forward(x.trace())
    output = y.detach()
    gradients = (y * target).sum().backward()
    return [output, gradients[x], *[gradients[one] for one in module.parameters().values()]]


class ConvThenNorm(nn.Module):
    """What lies with its batch innermost, and is normalized by channels."""

    conv: nn.Conv2d[Any, Any, Any, Any, Any]
    norm: Any

    def forward(self, x: Any) -> Any:
        return self.norm.forward(self.conv.forward(x)).relu()


def _behind_convolution(norm: Any) -> ConvThenNorm:
    return ConvThenNorm(conv=nn.Conv2d(3, 16, 3, padding=1, rng=_rng()), norm=norm)


class BetweenPoints(nn.Module):
    """A convolution whose images lie in another order than those of the points beside it."""

    into: nn.Conv2d[Any, Any, Any, Any, Any]
    conv: nn.Conv2d[Any, Any, Any, Any, Any]
    out: nn.Conv2d[Any, Any, Any, Any, Any]

    def forward(self, x: Any) -> Any:
        wide = again = self.into.forward(x)
        return self.out.forward(self.conv.forward(wide.relu()).relu()).square() + again


class WideLayers(nn.Module):
    """Layers whose results lie in Fortran order, with what reads their rows and columns."""

    into: nn.Linear[Any, Any]
    norm: nn.LayerNorm[Any]
    hidden: nn.Linear[Any, Any]
    batch_norm: nn.BatchNorm1d[Any]
    out: nn.Linear[Any, Any]

    def forward(self, x: Any) -> Any:
        h = self.norm.forward(self.into.forward(x)).relu()
        h = again = h
        h = self.batch_norm.forward(self.hidden.forward(h)).tanh() + again
        return self.out.forward(h).softmax()


MODULES: dict[str, tuple[Module, tuple[int, ...]]] = {
    "linear": (lambda: nn.Linear(64, 10, rng=_rng()), (32, 64)),
    "wide linear": (lambda: nn.Linear(96, 128, rng=_rng()), (32, 96)),
    "wide layers": (
        lambda: WideLayers(
            into=nn.Linear(96, 128, rng=_rng()),
            norm=nn.LayerNorm(128),
            hidden=nn.Linear(128, 128, rng=_rng()),
            batch_norm=nn.BatchNorm1d(128),
            out=nn.Linear(128, 100, rng=_rng()),
        ),
        (32, 96),
    ),
    "conv2d": (lambda: nn.Conv2d(3, 8, 3, padding=1, rng=_rng()), (32, 3, 8, 8)),
    "small conv2d": (lambda: nn.Conv2d(3, 8, 3, rng=_rng()), (4, 3, 5, 5)),
    "points of large images": (lambda: nn.Conv2d(3, 8, 1, rng=_rng()), (32, 3, 9, 8)),
    "points of small images": (lambda: nn.Conv2d(3, 8, 1, rng=_rng()), (32, 3, 5, 5)),
    "points of sequences": (lambda: nn.Conv1d(3, 8, 1, rng=_rng()), (32, 3, 70)),
    "between points": (
        lambda: BetweenPoints(
            into=nn.Conv2d(3, 16, 1, rng=_rng()),
            conv=nn.Conv2d(16, 16, 3, padding=1, rng=_rng()),
            out=nn.Conv2d(16, 16, 1, rng=_rng()),
        ),
        (16, 3, 9, 8),
    ),
    "conv transpose": (lambda: nn.ConvTranspose2d(3, 8, 3, rng=_rng()), (32, 3, 6, 6)),
    "batch norm of columns": (lambda: nn.BatchNorm1d(40), (32, 40)),
    "batch norm of images": (lambda: nn.BatchNorm2d(16), (32, 16, 8, 8)),
    "batch norm of one channel": (lambda: nn.BatchNorm2d(1), (32, 1, 8, 8)),
    "layer norm": (lambda: nn.LayerNorm(64), (9, 16, 64)),
    "narrow layer norm": (lambda: nn.LayerNorm(10), (9, 16, 10)),
    "convolution, then batch norm": (
        lambda: _behind_convolution(nn.BatchNorm2d(16)),
        (32, 3, 8, 8),
    ),
    "many images, then batch norm": (
        lambda: _behind_convolution(nn.BatchNorm2d(16)),
        (128, 3, 16, 16),
    ),
    "convolution, then group norm": (
        lambda: _behind_convolution(nn.GroupNorm(2, 16)),
        (32, 3, 8, 8),
    ),
    "convolution, then instance norm": (
        lambda: _behind_convolution(nn.InstanceNorm2d()),
        (32, 3, 8, 8),
    ),
    "batch norm of many images": (lambda: nn.BatchNorm2d(16), (32, 16, 28, 28)),
}


@pytest.mark.parametrize("name", MODULES)
def test_a_plan_computes_a_layer_and_its_gradients_bit_by_bit(name: str) -> None:
    make, shape = MODULES[name]
    target = _random(*make().forward(_random(*shape)).shape)

    _assert_same_bits(lambda x, seed: _gradients(make(), x, seed), _random(*shape), target)


def _of_images(read: Callable[[Any], Any]) -> Callable[[Any], list[Any]]:
    """Return what reads the results of a convolution, and the gradients of its weight and input."""

    def run(x: Any) -> list[Any]:
        conv = nn.Conv2d(3, 8, 3, padding=1, rng=_rng())
        y = read(conv.forward(x.trace()))
        value = y.detach()
        gradients = y.square().sum().backward()
        return [value, gradients[x], gradients[conv.weight]]

    return run


def _of_rows(read: Callable[[Any], Any]) -> Callable[[Any], list[Any]]:
    """Return the gradients of an affine layer behind what is read of its results."""

    def run(x: Any) -> list[Any]:
        layer = nn.Linear(x.shape[-1], 32, rng=_rng())
        gradients = read(layer.forward(x.trace())).square().sum().backward()
        return [gradients[x], gradients[layer.weight], gradients[layer.bias]]

    return run


def _gated(y: Any) -> Any:
    values, gates = y.split(2, axis=1)
    return nn.GroupNorm(2, 4).forward(values * gates.sigmoid())


def _centred(y: Any) -> Any:
    values = others = y
    return (values - others.mean()).mean(axis=0)


def _of_sequences(x: Any) -> list[Any]:
    x, weight = x.astype(np.float64), _random(5, 3, 3).astype(np.float64)
    highest = nn.AdaptiveMaxPool1d(2).forward(tt.conv1d(x, weight.trace(), padding=1))
    return [highest.square().sum().backward()[weight]]


READINGS: dict[str, tuple[Callable[[Any], list[Any]], tuple[int, ...]]] = {
    "means of some channels": (_of_images(lambda y: y[:, :4].mean(axis=(2, 3))), (32, 3, 16, 16)),
    "means inside": (_of_images(lambda y: y[:, :, 1:-1, 1:-1].mean(axis=(2, 3))), (8, 3, 16, 16)),
    "norms of some channels": (
        _of_images(lambda y: nn.InstanceNorm2d().forward(y[:, :4])), (32, 3, 16, 16)
    ),
    "norms of what is gated": (_of_images(_gated), (32, 3, 16, 16)),
    "a mean along rows": (_of_rows(lambda y: y.mean(axis=1)), (128, 16)),
    "a sum along rows": (_of_rows(lambda y: y.sum(axis=1)), (500, 7)),
    "the mean taken away": (_of_rows(_centred), (600, 16)),
    "the highest parts of sequences": (_of_sequences, (4, 3, 17)),
}  # fmt: skip


@pytest.mark.parametrize("name", READINGS)
def test_what_is_read_of_a_layer_has_the_bits_of_eager_mode(name: str) -> None:
    run, shape = READINGS[name]
    _assert_same_bits(run, _random(*shape))


@pytest.mark.parametrize("shape", [(7,), (32, 10), (32, 40), (40, 9, 6), (3, 2000), (8, 4, 6, 48)])
def test_a_plan_adds_over_axes_bit_by_bit(shape: tuple[int, ...]) -> None:
    def run(x: Any) -> Any:
        y = x * 3.0
        last, first = (len(shape) - 1,), tuple(range(len(shape) - 1))
        return [y.sum(), y.mean(axis=last), y.var(axis=last), y.sum(axis=first), y.var(axis=first)]

    _assert_same_bits(run, _random(*shape))


@pytest.mark.parametrize("order", [(0, 1, 2, 3), (1, 2, 3, 0), (3, 2, 1, 0), (0, 3, 1, 2)])
def test_a_plan_adds_what_lies_in_another_order_bit_by_bit(order: tuple[int, ...]) -> None:
    def run(x: Any) -> Any:
        y = (x * 3.0).permute_dims(order).exp()
        return [y.sum(axis=axis) for axis in ((0,), (1, 3), (0, 2, 3), (2, 3), (0, 1, 2, 3))]

    _assert_same_bits(run, _random(9, 4, 6, 48))


def test_a_plan_adds_with_numpys_functions_as_numpy_does() -> None:
    def run(x: Any, y: Any) -> Any:
        product = x * y
        return [
            np.sum(product, axis=-1), (x * y).sum(), np.sum(np.square(x), axis=-1),
            np.add.reduce(product, axis=0), np.vecdot(x, y), np.mean(x * 2.0),
        ]  # fmt: skip

    _assert_same_bits(run, _random(9, 64).numpy(), _random(9, 64).numpy() + 1.0)


@pytest.mark.parametrize(
    "repeated",
    [
        lambda x: np.broadcast_to(x[:, None], (40, 9)), lambda x: np.broadcast_to(x, (9, 40)),
        lambda x: np.broadcast_to(x.reshape(5, 1, 8), (5, 9, 8)).transpose(1, 2, 0),
    ],
)  # fmt: skip
def test_a_plan_adds_elements_that_are_repeated_bit_by_bit(repeated: Any) -> None:
    def run(x: Any) -> Any:
        y = repeated(x)
        return [one.sum(axis) for one in (y, y.T, y.T * 2) for axis in (0, 1, -1, None)]

    _assert_same_bits(run, _random(40).numpy())


def test_a_plan_adds_numbers_of_few_digits_as_numpy_does() -> None:
    def run(x: Any) -> Any:
        return [(x.astype(np.float16) * 2).sum()]

    _assert_same_bits(run, _random(600_000).numpy())


@pytest.mark.parametrize(
    "loss",
    [
        losses.mse, losses.rmse, losses.mae, lambda x, y: losses.huber(x, y, delta=0.5),
        lambda x, _: losses.cross_entropy(x, tt.from_numpy(np.arange(32) % 10)),
        lambda x, y: losses.cross_entropy_with_probabilities(x, y.softmax()),
    ],
)  # fmt: skip
def test_a_plan_computes_a_loss_bit_by_bit(loss: Any) -> None:
    def run(x: Any, y: Any) -> Any:
        error = loss(x.trace(), y)
        return [error.detach(), error.backward()[x]]

    _assert_same_bits(run, _random(32, 10), _random(32, 10) * 0.5)


def test_a_plan_computes_bit_by_bit_under_every_kernel() -> None:
    # A kernel has to be asked for before numpy is imported. Each thread of OpenBLAS sums a share of
    # the rows of its own, which blocks of a plan must not end in.
    for kernel in kernels_of_this_machine() or [""]:
        subprocess.run(
            [sys.executable, "-m", "tests.compiler.test_same_bits"],
            cwd=ROOT,
            env={**os.environ, KERNEL_VARIABLE: kernel, "OPENBLAS_NUM_THREADS": "2"},
            check=True,
        )


def _normalized(x: Any) -> list[Any]:
    """Sum many rows, which a plan does in blocks of them where it can."""
    y = np.exp(x * 0.5)
    return [y / row_sums(y)]


@pytest.mark.parametrize("name", ["gelu", "tanh", "silu", "softplus", "square", "relu"])
def test_gradients_of_what_lies_turned_lie_as_in_eager_mode(name: str) -> None:
    def run(x: Any) -> Any:
        y = getattr(x.trace().permute_dims((1, 2, 0)).softmax(), name)()
        return (y.reshape((48, 5)) * 2.0).mean().backward()[x].numpy()

    x = _random(5, 6, 8)
    _assert_same_bits(run, x)
    assert tt.compile(run)(x).strides == run(x).strides


@pytest.mark.parametrize("name", ["gelu", "tanh", "silu", "softplus", "square", "relu"])
def test_what_is_computed_of_repeated_elements_lies_as_in_eager_mode(name: str) -> None:
    def run(x: Any) -> list[Any]:
        y = getattr(x.trace().broadcast_to((7, 37, 53)), name)()
        return [y.detach(), y.detach().sum((0, 1)), y.square().sum().backward()[x]]

    x = _random(1, 37, 53)
    _assert_same_bits(run, x)
    assert tt.compile(run)(x)[0].numpy().strides == run(x)[0].numpy().strides


@pytest.mark.parametrize("name", ["elu", "leaky_relu"])
def test_sums_of_choices_between_what_lies_turned_are_those_of_eager_mode(name: str) -> None:
    layer = nn.Linear(100, 256, rng=np.random.default_rng(0))

    def run(x: Any, y: Any) -> Any:
        loss = losses.mse(getattr(layer.forward(x.trace()), name)(), y)
        gradients = loss.backward(wrt=layer)
        return [gradients[layer.weight], gradients[layer.bias]]

    _assert_same_bits(run, _random(17, 100), _random(17, 256))


def _totals_of_what_is_repeated(x: Any) -> list[Any]:
    y = x[:, :1] * 2.0
    repeated = np.broadcast_to(y, x.shape)
    of_three = np.broadcast_to(y[..., None], (40, 20, 15))
    return [
        repeated.sum(), np.add.reduce(repeated.T, axis=(0, 1), keepdims=True), of_three.mean(),
        np.add.reduce(of_three, axis=(1, 2)), of_three.sum(axis=(0, 2)), repeated.var(),
    ]  # fmt: skip


def test_totals_of_repeated_elements_are_those_of_eager_mode() -> None:
    def with_gradient(x: Any) -> Any:
        y = x.trace()
        z = y * y + y.max(None, keepdims=True)
        return [z.mean((-1,)).square().mean().backward()[x]]

    for scale in (0.3, 0.7, 1.1):
        x = _random(40, 300) * scale
        _assert_same_bits(_totals_of_what_is_repeated, x.numpy())
        _assert_same_bits(with_gradient, x)


@pytest.mark.parametrize("axis", [0, -1, (0, 1)])
@pytest.mark.parametrize("function", [np.nanmean, np.nanstd, np.median, np.mean, np.sum])
def test_functions_of_copies_of_repeated_elements_are_those_of_numpy(
    function: Any, axis: Any
) -> None:
    def run(x: Any) -> Any:
        copy = np.broadcast_to(x[:1], x.shape).copy()
        return [function(np.exp(copy), axis=axis), function(copy, axis=axis)]

    x = _random(40, 8, 30).numpy()
    _assert_same_bits(run, x)
    for found, expected in zip(tt.compile(run)(x), run(x), strict=True):
        assert found.strides == expected.strides


# The rows of the first two are summed block by block, unless the number of cores is an odd one.
LARGE = [
    (4096, 128), (16, 64, 800), (1990, 250), (33, 3, 17, 512), (500, 1024), (31, 300, 127),
    (65536, 7),
]  # fmt: skip


@pytest.mark.parametrize("shape", LARGE)
def test_sums_of_the_rows_of_large_arrays_are_those_of_eager_mode(shape: tuple[int, ...]) -> None:
    def with_gradient(x: Any) -> Any:
        y = x.trace().softmax()
        return [y.detach(), (y * y).mean().backward()[x]]

    x = _random(*shape)
    _assert_same_bits(_normalized, x.numpy())
    _assert_same_bits(with_gradient, x)
    compiled = tt.compile(_normalized)
    compiled(x.numpy())
    groups = [step.title for step in plans(compiled)[0].steps if step.title.startswith("group of")]
    is_whole = not any("add.reduce" in title for title in groups)
    assert is_whole or shape in LARGE[:2]


def _squared(x: Any) -> Any:
    """Multiply an array by itself, transposed, as a layer does its input by its weight."""
    layer: Any = nn.UnbiasedLinear(*x.shape[::-1], rng=_rng())
    layer.weight = x
    return layer.forward(x) + x @ x.transpose()


def _under_this_kernel() -> None:
    """Run what OpenBLAS's kernels compute differently for another layout: products."""
    for shape in LARGE:
        _assert_same_bits(_normalized, _random(*shape).numpy())
    for rows, width, columns in [(2, 64, 5), (8, 10, 16), (32, 256, 64), (33, 100, 300)]:
        x, weight = _random(rows, width), _random(columns, width)
        _assert_same_bits(lambda x, w: [(x @ w.transpose()).relu() @ w], x, weight)
        _assert_same_bits(lambda x, w: [(x @ w.transpose()).transpose().reshape((-1,))], x, weight)
    for part in (np.s_[::2], np.s_[:, 100:300], np.s_[:]):
        # OpenBLAS multiplies an array by its own transpose in another way than two arrays.
        _assert_same_bits(lambda x, part=part: [x[part] @ x[part].T], _random(512, 512).numpy())
        _assert_same_bits(lambda x, part=part: [_squared(x[part])], _random(512, 512))
    for make, shape in MODULES.values():
        target = _random(*make().forward(_random(*shape)).shape)
        _assert_same_bits(lambda x, y, m=make: _gradients(m(), x, y), _random(*shape), target)


if __name__ == "__main__":
    _under_this_kernel()


LABELS, SHARES = tt.from_numpy(np.array([0, 1, 2, 1])), _random(4, 3).sigmoid()
SIGNS = tt.from_numpy(np.where(np.arange(12).reshape(4, 3) % 3, 1, -1))
TWICE: dict[str, Callable[[Any], Any]] = {
    "cross entropy": lambda x: losses.cross_entropy(x, LABELS),
    "cross entropy with probabilities": (
        lambda x: losses.cross_entropy_with_probabilities(x, SHARES.softmax())
    ),
    "negative log-likelihood": lambda x: losses.nll(x.log_softmax(), LABELS),
    "binary cross entropy": lambda x: losses.binary_cross_entropy(x.sigmoid(), SHARES),
    "with logits": lambda x: losses.binary_cross_entropy_with_logits(x, SHARES),
    "absolute errors": lambda x: losses.mae(x, SHARES),
    "the root of squares": lambda x: losses.rmse(x, SHARES),
    "divergence": lambda x: losses.kl_div(x.log_softmax(), SHARES.softmax()),
    "margins of classes": lambda x: losses.multi_margin(x, LABELS),
    "margins of triplets": lambda x: losses.triplet_margin(x, SHARES, -SHARES),
    "margins of ranks": lambda x: losses.margin_ranking(x, SHARES, SIGNS),
    "margins of hinges": lambda x: losses.hinge_embedding(x, SIGNS),
    "soft margins": lambda x: losses.soft_margin(x, SIGNS),
    "normal": lambda x: losses.gaussian_nll(x, SHARES, SHARES),
    "counts": lambda x: losses.poisson_nll(x, SHARES),
    "angles": lambda x: losses.cosine_embedding(x, SHARES, SIGNS[:, 0]),
    "squares": lambda x: losses.mse(x, SHARES),
    "squares near 0": lambda x: losses.huber(x, SHARES),
    "quantiles": lambda x: losses.quantile(x, SHARES, 0.9),
    "squares nearer to 0": lambda x: losses.smooth_l1(x, SHARES),
}


@pytest.mark.parametrize("name", TWICE)
def test_a_plan_computes_the_second_derivatives_of_a_loss_bit_by_bit(name: str) -> None:
    def run(x: Any) -> Any:
        slope = tt.grad(TWICE[name], x.trace())
        return [slope.square().sum().backward(wrt=x)[x]]

    _assert_same_bits(run, _random(4, 3))


@pytest.mark.parametrize("name", ["max", "min"])
def test_a_plan_finds_extremes_among_zeros_where_eager_mode_does(name: str) -> None:
    zeros = tt.from_numpy(np.where(np.random.default_rng(0).random((20, 4)) < 0.5, -0.0, 0.0))

    def run(x: Any) -> Any:
        return getattr(x, name)(axis=-1)

    found, expected = tt.compile(run)(zeros).numpy(), run(zeros).numpy()
    assert found.tobytes() == expected.tobytes()


@pytest.mark.parametrize("step", [2, -1, -3])
def test_products_with_parts_of_an_array_around_are_added_in_numpys_order(step: int) -> None:
    rng = np.random.default_rng(0)
    part = rng.random(3000)[::step]
    x = rng.random(part.size)
    compiled: Any = tt.compile(lambda x: (part @ x, np.inner(x, part), np.einsum("i,i", part, x)))
    expected = part @ x, np.inner(x, part), np.einsum("i,i", part, x)
    for _ in range(2):
        assert compiled(x) == expected


@pytest.mark.parametrize("shape", [(33, 17), (700, 300)])
def test_sums_of_gradients_that_lie_in_several_orders_lie_as_in_eager_mode(
    shape: tuple[int, int],
) -> None:
    def run(x: Any) -> Any:
        y = x + x * x.trace() + x
        gradient = (y.permute_dims((1, 0)) * 2.0).sum().backward()[x]
        z = x.trace().permute_dims((1, 0)).softmax(0)
        part = z[2:8]
        other = ((z * 0.5).sum() + part.sum()).backward()[x]
        return gradient, gradient.sum(), other, other.sum(0)

    x = tt.from_numpy(np.random.default_rng(0).standard_normal(shape).astype(np.float32))
    for found, expected in zip(tt.compile(run)(x), run(x), strict=True):
        assert found.array.strides == expected.array.strides
        assert found.numpy().tobytes() == expected.numpy().tobytes()
