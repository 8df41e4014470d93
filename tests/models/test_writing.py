"""Writing with a cache, whose scores are those of a pass over the whole text; choices are drawn."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tapetensor as tt

pytest.importorskip("tqdm")
# Imported after the question whether its packages are there.
import char_transformer as example

SIZES = example.Settings(width=8, layers=2, heads=2, context=12, batch=4, steps=10, lr=1e-2, seed=3)


def test_a_cache_gives_the_scores_of_the_whole_text_however_it_is_read(
    rng: np.random.Generator,
) -> None:
    model = example.build_gpt(SIZES, rng)
    ids = rng.integers(96, size=(1, 10))
    expected = model.forward(tt.from_numpy(ids, (1, 10))).numpy()[0]
    cache: Any = []
    for start, end in ((0, 4), (4, 5), (5, 6), (6, 9), (9, 10)):
        part: Any = tt.from_numpy(ids[:, start:end])
        scores, cache = example.read(model, part, cache)
        np.testing.assert_allclose(scores, expected[end - 1], rtol=1e-4, atol=1e-5)
        assert cache[0].keys.shape == (1, 2, end, 4)


def test_a_choice_is_of_the_likeliest_that_may_be_drawn(rng: np.random.Generator) -> None:
    scores = np.log(np.array([0.1, 0.4, 0.2, 0.3], np.float32))

    def drawn(**options: Any) -> set[int]:
        return {example.choose(scores, rng, **options) for _ in range(300)}

    assert drawn(temperature=0.0) == {1}
    assert drawn(temperature=1.0) == {0, 1, 2, 3}
    assert drawn(temperature=1.0, top_k=2) == {1, 3}
    assert drawn(temperature=1.0, top_p=0.65) == {1, 3}
    assert drawn(temperature=1.0, top_p=0.0) == {1}
    assert drawn(temperature=0.05) <= {1, 3}
