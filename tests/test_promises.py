"""What docs/promises.md says and no other test shows: the same program gives the same bits."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tapetensor as tt
from tapetensor import losses, nn, optim
from tapetensor.data import batches

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "promises.md").read_text()


def trained(seed: int, *, is_compiled: bool) -> list[bytes]:
    rng = np.random.default_rng(seed)
    model: Any = nn.Sequential(
        nn.Linear(20, 64, rng=rng), nn.BatchNorm1d(64), nn.GELU(), nn.Dropout(0.2, rng=rng),
        nn.Linear(64, 5, rng=rng),
    )  # fmt: skip
    optimizer = optim.AdamW(model)
    x, labels = tt.normal((90, 20), rng=rng), tt.from_numpy(rng.integers(0, 5, 90), (90,))

    def step(x: Any, labels: Any) -> Any:
        loss = losses.cross_entropy(model.forward(x.trace()), labels)
        optimizer.step(loss.backward(wrt=model))

    run = tt.compile(step) if is_compiled else step
    for _ in range(3):
        for batch in batches(x, labels, size=30, rng=rng):
            run(*batch)
    return [one.numpy().tobytes() for one in (model.parameters() | model.buffers()).values()]


@pytest.mark.parametrize("is_compiled", [False, True])
def test_the_same_program_gives_the_same_bits(is_compiled: bool) -> None:
    assert trained(0, is_compiled=is_compiled) == trained(0, is_compiled=False)
    assert trained(1, is_compiled=is_compiled) != trained(0, is_compiled=False)


def test_every_test_that_the_page_names_is_there() -> None:
    named = re.findall(r"`(tests/[a-z_/.]+)`", PAGE)

    assert len(named) > 15
    assert [one for one in named if not (ROOT / one).exists()] == []
