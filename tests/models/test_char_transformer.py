"""The character transformer: it looks back only, goes on from a checkpoint, writes with a cache."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tapetensor as tt
from tapetensor import io

pytest.importorskip("tqdm")
# Imported after the question whether its packages are there.
import char_transformer as example

SMALL = example.Settings(width=8, layers=2, heads=2, context=6, batch=4, steps=10, lr=1e-2, seed=3)


def test_a_position_does_not_see_those_after_it(rng: np.random.Generator) -> None:
    model = example.build_gpt(SMALL, rng)
    ids = rng.integers(96, size=(2, 6))
    changed = ids.copy()
    changed[:, 4:] = (ids[:, 4:] + 1) % 96
    before, after = (model.forward(tt.from_numpy(one, (2, 6))).numpy() for one in (ids, changed))

    np.testing.assert_array_equal(before[:, :4], after[:, :4])
    assert not np.isclose(before[:, 4:], after[:, 4:]).all(axis=-1).any()


def test_what_follows_a_window_is_the_window_moved_by_one() -> None:
    text, held_out = example.load_text(context=6)
    for batch in (text.draw(4, np.random.default_rng(0)), held_out.spread(5)):
        ids, following = batch
        np.testing.assert_array_equal(ids.numpy()[:, 1:], following.numpy()[:, :-1])


def test_training_that_is_interrupted_ends_where_it_would_have_ended(tmp_path: Path) -> None:
    whole, first, second = (example.Training(SMALL._replace(seed=seed)) for seed in (3, 3, 4))
    losses = [whole.step() for _ in range(10)]
    for _ in range(6):
        first.step()
    first.save(tmp_path / "gpt.npz")
    second.resume(tmp_path / "gpt.npz")

    assert [second.step() for _ in range(4)] == losses[6:]
    expected, state = io.state_dict(whole.model), io.state_dict(second.model)
    for name, array in expected.items():
        np.testing.assert_array_equal(state[name], array, err_msg=name)


def test_ctrl_c_says_how_to_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path, step = tmp_path / "gpt.npz", example.Training.step

    def stopping(training: example.Training) -> float:
        if training.optimizer.steps == 5:
            raise KeyboardInterrupt
        return step(training)

    monkeypatch.setattr(example.Training, "step", stopping)
    sizes = ["--width=8", "--layers=1", "--heads=2", "--context=6", "--batch=2", "--steps=20"]
    monkeypatch.setattr("sys.argv", ["char_transformer.py", *sizes, "--checkpoint", str(path)])
    with pytest.raises(SystemExit) as caught:
        example.main()

    assert caught.value.code == 130
    said = capsys.readouterr().err
    assert said.endswith("stopped after 5 steps; --resume goes on from the last save\n")
    training = example.Training(SMALL._replace(layers=1, batch=2, steps=20))
    training.resume(path)
    assert training.optimizer.steps == 5


def test_a_cache_gives_the_scores_of_the_whole_text_however_it_is_read(
    rng: np.random.Generator,
) -> None:
    model = example.build_gpt(SMALL._replace(context=12), rng)
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
