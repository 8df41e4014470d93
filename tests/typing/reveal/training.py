"""Training loops: batches, loss and metrics agree on what a batch is."""

from __future__ import annotations

import copy
from typing import Any, TypeAlias
from typing import Literal as L

import numpy as np

from tapetensor import (
    NoneTape,
    OwnedTape,
    Tensor0D,
    Tensor1D,
    Tensor2D,
    Tensor3D,
    losses,
    nn,
    ones,
    zeros,
)
from tapetensor.data import Batches, batched, batches, batches_exact
from tapetensor.distributed import alone
from tapetensor.optim import Sgd, SparseAdam, schedules
from tapetensor.training import EarlyStopping, History, evaluate, fit, predict
from tapetensor.typing import B, T
from tests.typing.check import assert_type, check
from tests.typing.operands import m


class Net(nn.Module):
    out: nn.Linear[L[3], L[2]]

    def forward(self, x: Tensor2D[B, L[3], T]) -> Tensor2D[B, L[2], T]:
        return self.out.forward(x)


rng = np.random.default_rng(0)
model = Net(out=nn.Linear(3, 2, rng=rng))
optimizer = Sgd(model, lr=0.1)
x: Tensor2D[L[4], L[3]] = ones((4, 3))
target: Tensor2D[L[4], L[2]] = ones((4, 2))
BATCH: L[2] = 2
Exact: TypeAlias = tuple[Tensor2D[L[2], L[3]], Tensor2D[L[2], L[2]]]


# Of the size of a batch nothing is known, ...
def loss_of(
    model: Net, batch: tuple[Tensor2D[Any, L[3]], Tensor2D[Any, L[2]]]
) -> Tensor0D[OwnedTape]:
    x, target = batch
    return losses.mse(model.forward(x.trace()), target)


# ... or known.
def exact_loss_of(model: Net, batch: Exact) -> Tensor0D[OwnedTape]:
    x, target = batch
    return losses.mse(model.forward(x.trace()), target)


def error(model: Net, batch: tuple[Tensor2D[Any, L[3]], Tensor2D[Any, L[2]]]) -> Tensor0D:
    x, target = batch
    return losses.mse(model.forward(x), target)


def size(model: Net, batch: Tensor2D[Any, L[3]]) -> float:
    return float(len(batch))


assert_type(fit(model, optimizer, loss_of, batches(x, target, size=2), epochs=1), History)
assert_type(fit(model, optimizer, loss_of, batches_exact(x, target, size=2), epochs=1), History)
assert_type(fit(model, optimizer, loss_of, [(x, target)], epochs=1), History)
assert_type(fit(model, optimizer, loss_of, [(x, target)], epochs=1, ranks=alone()), History)
assert_type(evaluate(model, {}, [(x, target)], ranks=alone()), dict[str, float])
assert_type(fit(model, optimizer, loss_of, lambda: [(x, target)], epochs=1), History)
exact: Batches[Exact] = batches_exact(x, target, size=BATCH)
assert_type(fit(model, optimizer, exact_loss_of, exact, epochs=1), History)

# Held-out batches may be of another kind.
assert_type(
    fit(
        model,
        optimizer,
        loss_of,
        batches(x, target, size=2),
        epochs=1,
        metrics={"size": size},
        validation=[m],
        schedule=schedules.constant(0.1),
        stop=EarlyStopping("size", patience=2, mode="max"),
        rng=rng,
    ),
    History,
)
average = copy.deepcopy(model)
history = fit(model, optimizer, loss_of, [(x, target)], epochs=1, average=(average, 0.9))
assert_type(predict(model.forward, [x]), Tensor2D[int, L[2]])
assert_type(predict(model.forward, batches(x, size=2)), Tensor2D[int, L[2]])
assert_type(history["loss"], list[float])
assert_type(evaluate(model, {"error": error}, [(x, target)]), dict[str, float])
assert_type(evaluate(model, {"error": error}, batches(x, target, size=3)), dict[str, float])
assert_type(evaluate(model, {"error": error}, lambda: [(x, target)]), dict[str, float])


# Items that are no tensors.
def loss_of_rows(model: Net, batch: list[tuple[Tensor1D[L[3]], int]]) -> Tensor0D[OwnedTape]:
    return model.forward(x.trace()).mean()


rows: list[tuple[Tensor1D[L[3]], int]] = [(ones((3,)), 1), (ones((3,)), 0)]
assert_type(fit(model, optimizer, loss_of_rows, lambda: batched(rows, 2), epochs=1), History)

# What infers under any tape is a model of the same type.
frozen = nn.inference(model)
assert_type(frozen, Net)
assert_type(frozen.forward(x.trace()), Tensor2D[L[4], L[2], OwnedTape])
assert_type(frozen.forward(x), Tensor2D[L[4], L[2]])
assert_type(nn.is_training(frozen, x.trace()), bool)

# Whether a table keeps gradients of rows is no part of its type, nor of that of its gradient.
ROWS: L[100] = 100
words: nn.Embedding[L[100], L[3]] = nn.Embedding(ROWS, 3, rng=rng, sparse=True)
ids: Tensor1D[L[2], NoneTape, np.int64] = zeros((2,), np.int64)
found = words.forward(ids.trace())
check(assert_type(found, Tensor2D[L[2], L[3], OwnedTape]), (2, 3))
of_words = found.square().mean().backward(wrt=words)
assert_type(SparseAdam(words), SparseAdam)
check(assert_type(of_words[words.weight], Tensor2D[L[100], L[3]]), (100, 3))

# The errors of a loss one by one have the shape of the targets.
scores: Tensor2D[L[2], L[3]] = ones((2, 3))
classes: Tensor1D[L[2], NoneTape, np.int64] = ones((2,), np.int64)
each_row = losses.cross_entropy(scores.trace(), classes, reduction="none")
check(assert_type(each_row, Tensor1D[L[2], OwnedTape]), (2,))
total = losses.cross_entropy(scores, classes, label_smoothing=0.1, ignore_index=0, reduction="sum")
check(assert_type(total, Tensor0D), ())
check(assert_type(losses.mse(scores.trace(), scores), Tensor0D[OwnedTape]), ())
# Classes on axis 1, as of images; and losses of two or three predictions, any of which owns a tape.
images: Tensor3D[L[2], L[3], L[4]] = ones((2, 3, 4))
pixels: Tensor2D[L[2], L[4], NoneTape, np.int64] = ones((2, 4), np.int64)
each_pixel = losses.cross_entropy(images.trace(), pixels, axis=1, reduction="none")
check(assert_type(each_pixel, Tensor2D[L[2], L[4], OwnedTape]), (2, 4))
check(assert_type(losses.nll(images.log_softmax(1), pixels, axis=1), Tensor0D), ())
weights: Tensor1D[L[3]] = ones((3,))
each_pixel = losses.nll(
    images.trace(), pixels, axis=1, class_weights=weights, ignore_index=2, reduction="none"
)
check(assert_type(each_pixel, Tensor2D[L[2], L[4], OwnedTape]), (2, 4))
signs: Tensor2D[L[2], L[3], NoneTape, np.int64] = ones((2, 3), np.int64)
ranked = losses.margin_ranking(scores.trace(), scores.trace(), signs)
check(assert_type(ranked, Tensor0D[OwnedTape]), ())
check(assert_type(losses.triplet_margin(scores.trace(), scores, scores), Tensor0D[OwnedTape]), ())
each_triplet = losses.triplet_margin(scores, scores, scores, reduction="none")
check(assert_type(each_triplet, Tensor1D[L[2]]), (2,))
each_row = losses.multi_margin(scores.trace(), classes, reduction="none")
check(assert_type(each_row, Tensor1D[L[2], OwnedTape]), (2,))
hinges = losses.hinge_embedding(scores.trace(), signs, reduction="none")
check(assert_type(hinges, Tensor2D[L[2], L[3], OwnedTape]), (2, 3))
check(assert_type(losses.soft_margin(scores, signs), Tensor0D), ())
each_pair = losses.cosine_embedding(scores, scores.trace(), classes, reduction="none")
check(assert_type(each_pair, Tensor1D[L[2], OwnedTape]), (2,))
each_pair_alone = losses.cosine_embedding(scores, scores, classes, reduction="none")
check(assert_type(each_pair_alone, Tensor1D[L[2]]), (2,))
summed = losses.cosine_embedding(scores.trace(), scores, classes, reduction="sum")
check(assert_type(summed, Tensor0D[OwnedTape]), ())
check(assert_type(losses.gaussian_nll(scores, scores, scores), Tensor0D), ())
check(
    assert_type(losses.poisson_nll(scores, scores, reduction="none"), Tensor2D[L[2], L[3]]), (2, 3)
)
of_rates = losses.poisson_nll(scores.trace(), scores, log_input=False, full=True)
check(assert_type(of_rates, Tensor0D[OwnedTape]), ())
each_error = losses.mse(scores.trace(), scores, reduction="none")
check(assert_type(each_error, Tensor2D[L[2], L[3], OwnedTape]), (2, 3))
