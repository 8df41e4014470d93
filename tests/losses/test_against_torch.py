"""Losses against PyTorch's where no formula decides: at bounds and certainties."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tapetensor as tt
from tapetensor import losses

torch: Any = pytest.importorskip("torch")
functional: Any = torch.nn.functional

COLUMNS = np.array([[1.0, 0.0], [0.0, 3.0], [2.0, 0.0], [0.0, 1.0]])
LABELS = np.array([0, 1, 1, 0])
# Certainties, right and wrong, whose value and slope PyTorch bounds.
CERTAIN = np.array([0.0, 1.0, 0.0, 1.0])
WEIGHTS = np.array([0.25, 2.0])


def kl_div(logits: Any, probabilities: Any) -> Any:
    """PyTorch takes log-probabilities, and its "batchmean" divides by the first axis only."""
    logarithms = functional.log_softmax(logits, dim=-1)
    return functional.kl_div(logarithms, probabilities, reduction="batchmean")


def our_options(logits: Any, labels: Any) -> Any:
    weights: Any = tt.from_numpy(WEIGHTS)
    return losses.cross_entropy(
        logits, labels, class_weights=weights, label_smoothing=0.2, ignore_index=-100
    )


def their_options(logits: Any, labels: Any) -> Any:
    return functional.cross_entropy(
        logits, labels, weight=torch.tensor(WEIGHTS), label_smoothing=0.2, ignore_index=-100
    )


# A loss of ours, PyTorch's, and their operands, of which the first is differentiated.
ROWS: dict[str, tuple[Any, Any, tuple[Any, ...]]] = {
    "cross entropy with all options": (our_options, their_options, (COLUMNS, [0, -100, 1, 1])),
    "kl_div at zeros": (losses.kl_div, kl_div, (COLUMNS, np.eye(2)[LABELS])),
    "certain probabilities": (
        losses.binary_cross_entropy,
        functional.binary_cross_entropy,
        (CERTAIN, np.array([0.0, 1.0, 1.0, 0.0])),
    ),
}


@pytest.mark.parametrize("name", ROWS)
def test_a_loss_and_its_gradient_are_those_of_torch(name: str) -> None:
    ours, theirs, operands = ROWS[name]
    first, *others = [np.asarray(one) for one in operands]
    tensor, torch_tensor = tt.from_numpy(first), torch.tensor(first, requires_grad=True)

    loss = ours(tensor.trace(), *[tt.from_numpy(one) for one in others])
    torch_loss = theirs(torch_tensor, *[torch.tensor(one) for one in others])
    torch_loss.backward()

    # PyTorch bounds some slopes by float32 numbers.
    assert loss.item() == pytest.approx(torch_loss.item(), rel=1e-8)
    np.testing.assert_allclose(
        loss.backward()[tensor].numpy(), torch_tensor.grad.numpy(), rtol=1e-8, atol=1e-15
    )
