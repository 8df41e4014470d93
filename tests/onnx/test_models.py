"""Models as files: the same outputs at batch sizes that were not seen when they were written."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any
from typing import Literal as L

import numpy as np
import pytest

import tapetensor as tt
from tapetensor import losses, nn
from tests.onnx.running import assert_same, example, exported

RNG = np.random.default_rng(0)
Make = Callable[[int], tuple[Any, ...]]


def build(cls: Any) -> Any:
    return tt.build(cls, rng=RNG)


def floats(*shape: int) -> Make:
    return lambda size: (tt.normal((size, *shape), rng=RNG),)


def ids(classes: int, *shape: int) -> Make:
    return lambda size: (tt.from_numpy(RNG.integers(classes, size=(size, *shape))),)


def last_of(layer: Any, out: int) -> Callable[..., Any]:
    """Return a classifier of sequences, by the last state of a recurrent layer."""
    head: Any = nn.Linear(8, out, rng=RNG)

    def classify(x: Any) -> Any:
        found: Any = layer.forward(x)
        states = found[0] if isinstance(found, tuple) else found
        return head.forward(states[:, -1]).softmax()

    return classify


def autoencoder() -> Any:
    return nn.Sequential(
        nn.Conv2d(1, 4, 3, 2, 1, rng=RNG),
        nn.GELU(),
        nn.ConvTranspose2d(4, 1, 2, stride=2, rng=RNG),
        nn.Sigmoid(),
    )


def vision_transformer() -> Callable[..., Any]:
    patches: Any = nn.Conv2d(3, 8, 4, 4, rng=RNG)
    encoder: Any = build(nn.EncoderBlock[L[8], L[2], L[16]])
    token: Any = tt.normal((1, 8), rng=RNG)
    head: Any = nn.Linear(8, 5, rng=RNG)

    def classify(images: Any) -> Any:
        found: Any = patches.forward(images)
        rows = found.reshape((found.shape[0], 8, -1)).transpose()
        first = token.broadcast_to((images.shape[0], 1, 8))
        return head.forward(encoder.forward(tt.concat((first, rows), axis=1))[:, 0])

    return classify


def bert_inputs(size: int) -> tuple[Any, ...]:
    (tokens,), (segments,) = ids(40, 12)(size), ids(2, 12)(size)
    visible = tt.from_numpy(np.arange(12) < RNG.integers(1, 13, size=(size, 1)))
    return tokens, segments, visible


def char_model() -> Any:
    settings = example("char_transformer").Settings(16, 2, 4, 10, batch=1, steps=1, lr=0.1, seed=0)
    return example("char_transformer").build_gpt(settings, RNG)


MODELS: dict[str, tuple[Callable[[], Any], Make]] = {
    "a perceptron": (
        lambda: nn.Sequential(nn.Linear(6, 8, rng=RNG), nn.ReLU(), nn.Linear(8, 3, rng=RNG)),
        floats(6),
    ),
    "a CNN with batch norm": (
        lambda: nn.Sequential(
            nn.Conv2d(3, 4, 3, padding=1, rng=RNG),
            nn.BatchNorm2d(4),
            nn.ReLU(),
            nn.MaxPool2d(3, 2, 1),
            nn.Conv2d(4, 8, 3, 2, 1, groups=2, rng=RNG),
            nn.AvgPool2d(2, 2),
        ),
        floats(3, 16, 16),
    ),
    "an LSTM classifier": (lambda: last_of(nn.LSTM(5, 8, rng=RNG), 3), floats(7, 5)),
    "a GRU classifier": (lambda: last_of(nn.GRU(5, 8, rng=RNG), 3), floats(7, 5)),
    "a transformer's encoder": (
        lambda: build(nn.EncoderBlock[L[8], L[2], L[16]]),
        floats(6, 8),
    ),
    "a vision transformer": (vision_transformer, floats(3, 8, 8)),
    "an autoencoder": (autoencoder, floats(1, 8, 8)),
    "the digits": (lambda: build(example("digits").DigitClassifier), floats(64)),
    "the digits as images": (lambda: build(example("cnn_digits").ConvNet), floats(1, 8, 8)),
    "the state space": (lambda: build(example("ssm").StateSpace), floats(12, 9)),
    "the transformer of characters": (char_model, ids(96, 10)),
    "BERT": (lambda: build(example("models.bert").Classifier), bert_inputs),
    "Llama": (lambda: build(example("models.llama").Llama), ids(50, 10)),
    "nanoGPT": (lambda: example("models.nano_gpt").build_nano_gpt(RNG), ids(65, 16)),
    "the residual network": (lambda: build(example("models.resnet").ResNet), floats(3, 16, 16)),
    "the U-Net": (lambda: build(example("models.unet").UNet), floats(1, 16, 16)),
}


@pytest.mark.parametrize("name", MODELS)
def test_a_model_computes_the_same_at_any_batch_size(name: str, tmp_path: Path) -> None:
    made, inputs = MODELS[name]
    model = made()
    function = tt.compile(getattr(model, "forward", model))
    session = exported(tmp_path / "model.onnx", function, *inputs(2))

    assert all(shape[0] == "batch" for shape in session.outputs.values())
    for size in (1, 4, 9):
        given = inputs(size)
        assert_same(session.run(*given), function(*given))


def pairs(size: int) -> tuple[Any, ...]:
    return *floats(5)(size), *ids(5)(size)


# Layers, and functions that look along the batch.
FUNCTIONS: dict[str, tuple[Callable[..., Any], Make]] = {
    "group norm": (nn.GroupNorm(2, 4).forward, floats(4, 3, 3)),
    "RMS norm": (nn.RMSNorm(5).forward, floats(4, 5)),
    "a dilated convolution": (
        nn.Conv1d(3, 4, 3, dilation=2, padding=2, rng=RNG).forward,
        floats(3, 9),
    ),
    "windows that are not square": (
        nn.Sequential(
            nn.Conv2d(1, 4, (5, 1), (2, 1), (2, 0), rng=RNG),
            nn.Conv2d(4, 4, (4, 3), padding="same", dilation=(2, 1), rng=RNG),
            nn.MaxPool2d((2, 1)),
            nn.AvgPool2d((1, 2), padding=(0, 1)),
            nn.ConvTranspose2d(4, 2, (3, 2), (2, 1), (1, 0), (1, 0), rng=RNG),
        ).forward,
        floats(1, 16, 6),
    ),
    "pooled lows": (nn.MinPool2d(3, 2, 1).forward, floats(3, 7, 7)),
    "padded means": (nn.AvgPool2d(3, 2, 1).forward, floats(3, 6, 6)),
    "a larger image": (lambda x: tt.upscale2d(x, (9, 12), "bilinear"), floats(2, 4, 4)),
    "dropout without a tape": (nn.Dropout(0.5, rng=RNG).forward, floats(4)),
    "an encoder and a decoder": (
        build(nn.Transformer[L[8], L[2], L[16], L[1], L[1]]).forward,
        lambda size: (*floats(6, 8)(size), *floats(4, 8)(size)),
    ),
    "the loss of each": (lambda x, y: -x.log_softmax()[tt.arange(len(y)), y], pairs),
    "the mean loss": (losses.cross_entropy, pairs),
    "all pairs": (lambda x: x @ x.transpose(), floats(4)),
    "places": (lambda x: (x.argmax(axis=0), x.argsort(axis=-1), x - x.mean(axis=0)), floats(5)),
    "elements in order": (
        lambda x: (x.sort(axis=-1), x.topk(2, axis=-1)[1], x.median(axis=-1)),
        floats(5),
    ),
    "images taken apart": (
        lambda x: (tt.unfold(x, 2), tt.pixel_shuffle(x, 2), tt.interpolate(x, (3, 9), "bicubic")),
        floats(4, 4, 4),
    ),
    "a gradient": (lambda x: saliency(x.trace()), floats(4)),
}


def saliency(x: Any) -> Any:
    return x.tanh().sum().backward()[x]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_computes_the_same_at_any_batch_size(name: str, tmp_path: Path) -> None:
    function, inputs = FUNCTIONS[name]
    session = exported(tmp_path / "model.onnx", function, *inputs(2))

    for size in (1, 4, 9):
        given = inputs(size)
        assert_same(session.run(*given), function(*given))


def test_layers_are_the_ops_that_are_made_for_them(tmp_path: Path) -> None:
    onnx = pytest.importorskip("onnx")

    def ops(function: Callable[..., Any], *shape: int) -> list[str]:
        path = tmp_path / "model.onnx"
        exported(path, function, *floats(*shape)(2))
        return [one.op_type for one in onnx.load(path).graph.node]

    recurrent = nn.Sequential(nn.LSTM(3, 4, rng=RNG)), nn.Sequential(nn.GRU(3, 4, rng=RNG))
    for layer, op in zip(recurrent, ("LSTM", "GRU"), strict=True):
        short, long = [
            ops(lambda x, layer=layer: layer.forward(x)[0], steps, 3) for steps in (3, 60)
        ]
        assert short == long
        assert short.count(op) == 1
        assert "MatMul" not in short
    images = nn.Sequential(
        nn.Conv2d(3, 4, 3, rng=RNG), nn.BatchNorm2d(4), nn.MaxPool2d(2), nn.AvgPool2d(2)
    )
    assert ops(images.forward, 3, 12, 12) == [
        "Conv", "BatchNormalization", "MaxPool", "AveragePool", "Identity",
    ]  # fmt: skip
