"""Convolutions, pooling, stretching and batch norm against PyTorch's, where it is installed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tapetensor as tt
from tapetensor import nn

torch: Any = pytest.importorskip("torch")
functional: Any = torch.nn.functional

CONVOLUTIONS: list[tuple[tuple[int, ...], tuple[int, ...], dict[str, Any]]] = [
    ((2, 4, 9, 8), (6, 4, 3, 3), {}),
    ((2, 4, 9, 8), (6, 4, 3, 3), {"padding": 1}),
    ((2, 4, 9, 8), (6, 4, 3, 3), {"stride": 2, "padding": 1}),
    ((2, 4, 9, 8), (6, 4, 2, 5), {"stride": (1, 2), "padding": (0, 2)}),
    ((2, 4, 9, 8), (6, 4, 3, 2), {"dilation": (2, 3)}),
    ((2, 4, 9, 8), (6, 2, 3, 3), {"groups": 2, "padding": 1}),
    ((2, 4, 9, 8), (8, 1, 3, 3), {"groups": 4, "stride": 2}),
    ((2, 4, 9, 8), (6, 4, 1, 1), {}),
    ((4, 9, 8), (6, 4, 3, 3), {}),
]
TRANSPOSED: list[tuple[tuple[int, ...], tuple[int, ...], dict[str, Any]]] = [
    ((2, 4, 5, 6), (4, 6, 3, 3), {}),
    ((2, 4, 5, 6), (4, 6, 2, 2), {"stride": 2}),
    ((2, 4, 5, 6), (4, 6, 3, 3), {"stride": 2, "padding": 1, "output_padding": 1}),
    ((2, 4, 5, 6), (4, 3, 3, 2), {"groups": 2, "stride": (1, 3), "dilation": (2, 1)}),
    ((4, 5, 6), (4, 6, 3, 3), {"padding": (1, 0)}),
]
SEQUENCES: list[tuple[tuple[int, ...], tuple[int, ...], dict[str, Any]]] = [
    ((2, 4, 9), (6, 4, 3), {"padding": 1}),
    ((2, 4, 9), (6, 2, 2), {"groups": 2, "stride": 3, "dilation": 2}),
    ((4, 9), (6, 4, 3), {}),
]
OPS = [
    *[(tt.conv2d, functional.conv2d, *row) for row in CONVOLUTIONS],
    *[(tt.conv1d, functional.conv1d, *row) for row in SEQUENCES],
    *[(tt.conv_transpose2d, functional.conv_transpose2d, *row) for row in TRANSPOSED],
]


def assert_same(ours: Any, theirs: Any, arrays: list[Any], rng: np.random.Generator) -> None:
    """Compare the results and all gradients of two functions of the same float32 arrays."""
    tensors = [tt.from_numpy(one) for one in arrays]
    others = [torch.tensor(one, requires_grad=True) for one in arrays]

    y, other = ours(*[one.trace() for one in tensors]), theirs(*others)

    cotangent = np.asarray(rng.standard_normal(y.shape), np.float32)
    grads = y.backward(tt.from_numpy(cotangent))
    other.backward(torch.tensor(cotangent))
    pairs = [(y, other), *[(grads[x], one.grad) for x, one in zip(tensors, others, strict=True)]]
    for mine, wanted in pairs:
        expected = wanted.detach().numpy()
        assert mine.shape == expected.shape
        # Rounding of float32 grows with how much is added up.
        scale = np.abs(expected).max(initial=1.0)
        np.testing.assert_allclose(mine.detach().numpy(), expected, rtol=1e-4, atol=2e-6 * scale)


def samples(rng: np.random.Generator, *shapes: tuple[int, ...]) -> list[Any]:
    return [rng.standard_normal(shape).astype(np.float32) for shape in shapes]


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize(("ours", "theirs", "shape", "weight", "numbers"), OPS)
def test_a_convolution_agrees_with_torch(
    ours: Any,
    theirs: Any,
    shape: Any,
    weight: Any,
    numbers: Any,
    bias: bool,
    rng: np.random.Generator,
) -> None:
    transposed = ours is tt.conv_transpose2d
    channels = weight[1] * numbers.get("groups", 1) if transposed else weight[0]
    arrays = samples(rng, shape, weight, *[(channels,)] * bias)

    assert_same(
        lambda *operands: ours(*operands, **numbers),
        lambda *operands: theirs(*operands, **numbers),
        arrays,
        rng,
    )


@pytest.mark.parametrize(
    ("kernel", "numbers"),
    [
        (2, {}),
        (3, {"stride": 2, "padding": 1}),
        ((3, 2), {"stride": (1, 3), "padding": (1, 0)}),
    ],
)
def test_pooling_agrees_with_torch(kernel: Any, numbers: Any, rng: np.random.Generator) -> None:
    (x,) = samples(rng, (2, 3, 9, 8))
    pools = [
        (tt.avg_pool2d, functional.avg_pool2d),
        (tt.max_pool2d, functional.max_pool2d),
        (tt.min_pool2d, lambda x, *given, **more: -functional.max_pool2d(-x, *given, **more)),
    ]

    for ours, theirs in pools:
        assert_same(
            lambda x, ours=ours: ours(x, kernel, **numbers),
            lambda x, theirs=theirs: theirs(x, kernel, **numbers),
            [x],
            rng,
        )


@pytest.mark.parametrize("size", [(9, 8), (18, 16), (11, 29)])
def test_stretching_agrees_with_torch(size: tuple[int, int], rng: np.random.Generator) -> None:
    arrays = samples(rng, (2, 3, 9, 8))

    assert_same(
        lambda x: tt.upscale2d(x, size),
        lambda x: functional.interpolate(x, size, mode="nearest"),
        arrays,
        rng,
    )
    assert_same(
        lambda x: tt.upscale2d(x, size, "bilinear"),
        lambda x: functional.interpolate(x, size, mode="bilinear", align_corners=True),
        arrays,
        rng,
    )


def test_batch_norm_agrees_with_torch_in_training_and_in_inference(
    rng: np.random.Generator,
) -> None:
    ours, theirs = nn.BatchNorm2d(3), torch.nn.BatchNorm2d(3)
    for _ in range(3):
        assert_same(ours.forward, theirs, samples(rng, (4, 3, 5, 6)), rng)

    for name in ("running_mean", "running_var"):
        statistics = getattr(theirs, name).numpy()
        np.testing.assert_allclose(getattr(ours, name).numpy(), statistics, rtol=1e-5)
    (x,) = samples(rng, (4, 3, 5, 6))
    inferred = ours.forward(tt.from_numpy(x, (4, 3, 5, 6)))
    wanted = theirs.eval()(torch.tensor(x)).detach().numpy()
    np.testing.assert_allclose(inferred.numpy(), wanted, rtol=1e-4, atol=1e-5)
