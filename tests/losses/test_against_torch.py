"""Losses and their gradients against PyTorch's, where it is installed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tapetensor as tt
from tapetensor import losses

torch: Any = pytest.importorskip("torch")
functional: Any = torch.nn.functional


def kl_div(logits: Any, probabilities: Any) -> Any:
    """PyTorch takes log-probabilities, and its "batchmean" divides by the first axis only."""
    rows = logits.numel() // logits.shape[-1]
    logarithms = functional.log_softmax(logits, dim=-1)
    return functional.kl_div(logarithms, probabilities, reduction="sum") / rows


def cross_entropy(logits: Any, probabilities: Any) -> Any:
    """PyTorch's classes are on axis 1, so all others go to axis 0."""
    size = logits.shape[-1]
    return functional.cross_entropy(logits.reshape(-1, size), probabilities.reshape(-1, size))


PAIRED: list[tuple[Any, Callable[[Any, Any], Any]]] = [
    (losses.mse, functional.mse_loss),
    (losses.rmse, lambda x, y: functional.mse_loss(x, y).sqrt()),
    (losses.mae, functional.l1_loss),
    (losses.smooth_l1, functional.smooth_l1_loss),
    (losses.huber, functional.huber_loss),
    (losses.binary_cross_entropy_with_logits, functional.binary_cross_entropy_with_logits),
    (losses.cross_entropy_with_probabilities, cross_entropy),
    (losses.kl_div, kl_div),
]


def same_as_torch(ours: Any, theirs: Any, *arrays: Any, rtol: float = 1e-12) -> None:
    """Compare a loss and its gradient by the first array, in float32 and in float64."""
    for dtype in (np.float32, np.float64):
        x, *others = [one.astype(dtype) if one.dtype.kind == "f" else one for one in arrays]
        tensor = tt.from_numpy(x)
        torch_tensor = torch.tensor(x, requires_grad=True)
        loss = ours(tensor.trace(), *[tt.from_numpy(one) for one in others])
        torch_loss = theirs(torch_tensor, *[torch.tensor(one) for one in others])
        torch_loss.backward()

        relative = rtol if dtype is np.float64 else 1e-5
        wanted = torch_tensor.grad.numpy()
        assert loss.item() == pytest.approx(torch_loss.item(), rel=relative)
        np.testing.assert_allclose(
            loss.backward()[tensor].numpy(),
            wanted,
            rtol=relative,
            atol=(1e-15 if dtype is np.float64 else 5e-7) * np.abs(wanted).max(initial=1.0),
        )


@pytest.mark.parametrize("scale", [1.0, 1000.0])
@pytest.mark.parametrize("shape", [(4, 3), (2, 3, 4)])
@pytest.mark.parametrize(("ours", "theirs"), PAIRED)
def test_a_loss_agrees_with_torch(
    ours: Any, theirs: Any, shape: tuple[int, ...], scale: float, rng: np.random.Generator
) -> None:
    x = scale * rng.standard_normal(shape)
    target = rng.random(shape)
    target /= target.sum(axis=-1, keepdims=True)

    same_as_torch(ours, theirs, x, target)


@pytest.mark.parametrize("scale", [1.0, 1000.0])
@pytest.mark.parametrize("shape", [(4, 3), (2, 3, 4)])
def test_cross_entropy_by_labels_agrees_with_torch(
    shape: tuple[int, ...], scale: float, rng: np.random.Generator
) -> None:
    x = scale * rng.standard_normal(shape)
    labels = rng.integers(0, shape[-1], shape[:-1])

    def theirs(logits: Any, classes: Any) -> Any:
        return functional.cross_entropy(logits.reshape(-1, shape[-1]), classes.reshape(-1))

    same_as_torch(losses.cross_entropy, theirs, x, labels)


REDUCED: list[tuple[Any, Callable[..., Any]]] = [
    (losses.mse, functional.mse_loss),
    (losses.mae, functional.l1_loss),
    (losses.smooth_l1, functional.smooth_l1_loss),
    (losses.huber, functional.huber_loss),
    (losses.binary_cross_entropy, functional.binary_cross_entropy),
    (losses.binary_cross_entropy_with_logits, functional.binary_cross_entropy_with_logits),
    (losses.cross_entropy_with_probabilities, functional.cross_entropy),
]


def weighed(loss: Any) -> Any:
    """Return a scalar of the errors one by one, in which each counts otherwise."""
    if isinstance(loss, torch.Tensor):
        return (
            loss * torch.arange(1, 1 + loss.numel(), dtype=loss.dtype).reshape(loss.shape)
        ).sum()
    numbers = np.arange(1, 1 + loss.size).reshape(loss.shape).astype(loss.dtype)
    return (loss * tt.from_numpy(numbers)).sum()


@pytest.mark.parametrize("reduction", ["sum", "none"])
@pytest.mark.parametrize(("ours", "theirs"), REDUCED)
def test_sums_and_single_errors_agree_with_torch(
    ours: Any, theirs: Any, reduction: str, rng: np.random.Generator
) -> None:
    x, target = rng.random((2, 4, 3))

    same_as_torch(
        lambda a, b: weighed(ours(a, b, reduction=reduction)),
        lambda a, b: weighed(theirs(a, b, reduction=reduction)),
        x,
        target / target.sum(axis=-1, keepdims=True),
        # PyTorch bounds some slopes by float32 numbers.
        rtol=1e-8,
    )


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize(
    ("smoothing", "is_weighted", "ignored"),
    [(0.0, False, None), (0.2, False, None), (0.0, True, None), (0.0, False, 1), (0.2, True, -100)],
)
def test_the_options_of_cross_entropy_agree_with_torch(
    reduction: str, smoothing: float, is_weighted: bool, ignored: Any, rng: np.random.Generator
) -> None:
    x, labels, weights = rng.standard_normal((6, 3)), rng.integers(0, 3, 6), rng.random(3)
    labels[2] = labels[2] if ignored is None else ignored

    def ours(logits: Any, classes: Any) -> Any:
        of_class = tt.from_numpy(weights, dtype=logits.dtype) if is_weighted else None
        options: Any = {"class_weights": of_class, "label_smoothing": smoothing}
        options |= {"ignore_index": ignored, "reduction": reduction}
        return weighed(losses.cross_entropy(logits, classes, **options))

    def theirs(logits: Any, classes: Any) -> Any:
        return weighed(
            functional.cross_entropy(
                logits,
                classes,
                weight=torch.tensor(weights, dtype=logits.dtype) if is_weighted else None,
                label_smoothing=smoothing,
                ignore_index=-7 if ignored is None else ignored,
                reduction=reduction,
            )
        )

    same_as_torch(ours, theirs, x, labels)


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("shape", [(), (3,)])
def test_weights_of_a_yes_agree_with_torch(
    shape: tuple[int, ...], reduction: str, rng: np.random.Generator
) -> None:
    x, target, weights = 50 * rng.standard_normal((4, 3)), rng.random((4, 3)), rng.random(shape)

    def ours(logits: Any, yes: Any) -> Any:
        of_yes = tt.from_numpy(np.asarray(weights), dtype=logits.dtype)
        options: Any = {"pos_weight": of_yes, "reduction": reduction}
        return weighed(losses.binary_cross_entropy_with_logits(logits, yes, **options))

    def theirs(logits: Any, yes: Any) -> Any:
        of_yes = torch.tensor(weights, dtype=logits.dtype)
        return weighed(
            functional.binary_cross_entropy_with_logits(
                logits, yes, pos_weight=of_yes, reduction=reduction
            )
        )

    same_as_torch(ours, theirs, x, target)


@pytest.mark.parametrize("beta", [0.2, 3.0])
def test_smooth_l1_agrees_with_torch_at_any_beta(beta: float, rng: np.random.Generator) -> None:
    x, target = rng.standard_normal((2, 4, 3))

    same_as_torch(
        lambda a, b: losses.smooth_l1(a, b, beta),
        lambda a, b: functional.smooth_l1_loss(a, b, beta=beta),
        x,
        target,
    )


@pytest.mark.parametrize("shape", [(4, 3), (2, 3, 4)])
def test_nll_agrees_with_torch(shape: tuple[int, ...], rng: np.random.Generator) -> None:
    x = rng.standard_normal(shape)
    labels = rng.integers(0, shape[-1], shape[:-1])

    def theirs(scores: Any, classes: Any) -> Any:
        return functional.nll_loss(scores.reshape(-1, shape[-1]), classes.reshape(-1))

    same_as_torch(losses.nll, theirs, x, labels)


def test_binary_cross_entropy_agrees_with_torch(rng: np.random.Generator) -> None:
    x, target = rng.random((2, 4, 3))
    # Certainties, right and wrong: torch bounds value and slope in these places.
    x[0], target[0] = (0.0, 1.0, 0.0), (0.0, 1.0, 1.0)

    same_as_torch(
        losses.binary_cross_entropy,
        functional.binary_cross_entropy,
        x,
        target,
        # The bound of the slope is a float32 number there, also for doubles.
        rtol=1e-8,
    )


def test_probabilities_of_exactly_zero_agree_with_torch(rng: np.random.Generator) -> None:
    x = rng.standard_normal((3, 3))
    target = np.eye(3)

    same_as_torch(losses.kl_div, kl_div, x, target)


@pytest.mark.parametrize(
    ("margin", "reduction"), [(0.0, "mean"), (0.3, "mean"), (0.3, "sum"), (0.3, "none")]
)
def test_cosine_embedding_agrees_with_torch(
    margin: float, reduction: Any, rng: np.random.Generator
) -> None:
    x, y = rng.standard_normal((2, 8, 3))
    signs = rng.choice([-1, 1], 8)

    same_as_torch(
        lambda one, other, target: weighed(
            losses.cosine_embedding(one, other, target, margin, reduction=reduction)
        ),
        lambda one, other, target: weighed(
            functional.cosine_embedding_loss(one, other, target, margin=margin, reduction=reduction)
        ),
        x,
        y,
        signs,
    )


SIGNED: list[tuple[Any, Any]] = [
    (losses.soft_margin, functional.soft_margin_loss),
    (
        lambda x, s: losses.hinge_embedding(x, s, 0.4),
        lambda x, s: functional.hinge_embedding_loss(x, s, 0.4),
    ),
]


@pytest.mark.parametrize(("ours", "theirs"), SIGNED)
def test_losses_of_signs_agree_with_torch(ours: Any, theirs: Any, rng: np.random.Generator) -> None:
    same_as_torch(ours, theirs, rng.standard_normal((5, 3)), rng.choice([-1, 1], (5, 3)))


@pytest.mark.parametrize("power", [1, 2])
def test_multi_margin_agrees_with_torch(power: Any, rng: np.random.Generator) -> None:
    same_as_torch(
        lambda x, labels: losses.multi_margin(x, labels, 0.7, power=power),
        lambda x, labels: functional.multi_margin_loss(x, labels, power, 0.7),
        rng.standard_normal((5, 3)),
        rng.integers(0, 3, 5),
    )


def test_triplets_rankings_and_likelihoods_agree_with_torch(rng: np.random.Generator) -> None:
    x, y, z = rng.standard_normal((3, 5, 3))
    positive = rng.uniform(0.1, 4.0, (5, 3))

    same_as_torch(losses.triplet_margin, functional.triplet_margin_loss, x, y, z)
    same_as_torch(losses.gaussian_nll, functional.gaussian_nll_loss, x, y, positive)
    same_as_torch(losses.poisson_nll, functional.poisson_nll_loss, x, positive)
    of_rates: Any = {"log_input": False, "full": True, "reduction": "sum"}
    same_as_torch(
        lambda rates, counts: losses.poisson_nll(rates, counts, **of_rates),
        lambda rates, counts: functional.poisson_nll_loss(rates, counts, **of_rates),
        np.append(positive[:, 1:], np.zeros((5, 1)), axis=1),
        positive,
    )
    same_as_torch(
        lambda lhs, rhs, signs: losses.margin_ranking(lhs, rhs, signs, 0.2),
        lambda lhs, rhs, signs: functional.margin_ranking_loss(lhs, rhs, signs, 0.2),
        x,
        y,
        rng.choice([-1, 1], (5, 3)),
    )


@pytest.mark.parametrize("shape", [(2, 3), (2, 3, 3), (2, 3, 4, 5)])
def test_classes_on_axis_one_agree_with_torch(
    shape: tuple[int, ...], rng: np.random.Generator
) -> None:
    same_as_torch(
        lambda x, labels: losses.cross_entropy(x, labels, axis=1),
        functional.cross_entropy,
        rng.standard_normal(shape),
        rng.integers(0, 3, (shape[0], *shape[2:])),
    )


def test_margins_that_are_just_kept_agree_with_torch() -> None:
    scores, others = np.array([0.0, 0.0, 0.25, 1.0]), np.array([0.0, 0.0, 0.0, 0.0])
    signs, labels = np.array([1, -1, 1, -1]), np.array([0, 1])
    columns = np.array([[1.0, 0.0], [0.0, 3.0], [2.0, 0.0], [0.0, 1.0]])

    for margin in (0.0, 0.25, 1.0):
        same_as_torch(
            lambda x, y, s, m=margin: losses.margin_ranking(x, y, s, m),
            lambda x, y, s, m=margin: functional.margin_ranking_loss(x, y, s, m),
            scores,
            others,
            signs,
        )
        same_as_torch(
            lambda x, s, m=margin: losses.hinge_embedding(x, s, m),
            lambda x, s, m=margin: functional.hinge_embedding_loss(x, s, m),
            scores,
            signs,
        )
    same_as_torch(
        losses.cosine_embedding, functional.cosine_embedding_loss, columns, columns[::-1], signs
    )
    same_as_torch(losses.multi_margin, functional.multi_margin_loss, columns[:2], labels)
