"""Ranks that train one model by `fit` and by hand do what one process does."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import tapetensor as tt
from tapetensor import distributed
from tapetensor.training.epoch import share_of
from tests.distributed.jobs import ROOT, finished, needs_mpi
from tests.distributed.test_one_process import rank_of
from tests.distributed.training import RUNS, trained
from tests.training.models import Run


@needs_mpi
@pytest.mark.parametrize(("ranks", "steps"), [(2, 60), (4, 20)])
def test_parameters_after_many_steps_are_those_of_one_process_with_the_whole_batch(
    ranks: int, steps: int, tmp_path: Path
) -> None:
    finished(ranks, "-m", "tests.distributed.training", tmp_path, str(steps))

    for name in RUNS:
        expected = trained(name, distributed.alone(), steps)
        bits = []
        for rank in range(ranks):
            with np.load(tmp_path / f"{name} {rank}.npz") as found:
                assert found.keys() == expected.keys()
                for key in expected:
                    np.testing.assert_allclose(found[key], expected[key], rtol=1e-9, atol=1e-11)
                bits.append([found[key].tobytes() for key in expected])
        # To rounding those of one process, and to the bit those of each other.
        assert bits == [bits[0]] * ranks


@needs_mpi
def test_every_rank_finds_what_it_should(tmp_path: Path) -> None:
    assert finished(3, "-m", "tests.distributed.together", tmp_path).count("done") == 3


class Pair(NamedTuple):
    x: Any
    names: Any


@needs_mpi
def test_two_ranks_fit_one_model(tmp_path: Path) -> None:
    assert finished(2, "-m", "tests.distributed.fitting", tmp_path).count("done") == 2


def test_a_share_is_cut_from_every_part_of_a_batch() -> None:
    batch: Any = Pair(tt.arange(5), (list("abcde"), tt.ones(())))

    shares = [share_of(batch, rank_of(rank, 3)) for rank in range(3)]

    assert [share.x.numpy().tolist() for share, _ in shares] == [[0], [1, 2], [3, 4]]
    assert [share.names[0] for share, _ in shares] == [["a"], ["b", "c"], ["d", "e"]]
    assert [count for _, count in shares] == [1, 2, 2]
    assert isinstance(shares[0][0], Pair)


@pytest.mark.parametrize(
    ("batch", "error", "said"),
    [
        ({"x": 1}, tt.ArgumentTypeError, "a tuple that begins with one of these, got dict"),
        ((), tt.ArgumentTypeError, "got tuple"),
        ((tt.ones((4,)), [1, 2]), tt.ShapeError, "as many rows each .* got 4 and 2"),
    ],
)
def test_a_batch_that_cannot_be_divided_is_refused(
    batch: Any, error: type[Exception], said: str
) -> None:
    with pytest.raises(error, match=said):
        share_of(batch, rank_of(0, 2))


def test_ranks_of_another_kind_are_refused() -> None:
    with pytest.raises(tt.ArgumentTypeError, match="fit: ranks must be what distributed"):
        Run().fit(ranks=2)


LINE = "        self.gradients_of = tt.distributed.data_parallel(self.gradients_of)\n"


@needs_mpi
def test_the_character_transformer_trains_on_two_ranks_by_one_line_more(tmp_path: Path) -> None:
    pytest.importorskip("tqdm")
    program = ROOT / "examples" / "char_transformer.py"
    before, line, after = program.read_text().partition("        self.settings = settings\n")
    assert LINE.strip() in before
    of_ranks = tmp_path / "of_ranks.py"
    of_ranks.write_text(before + LINE + line + after)
    checkpoint = tmp_path / "gpt.npz"
    sizes = ["--width=16", "--layers=1", "--heads=2", "--context=16", "--batch=8"]
    arguments = ["--steps=20", "--sample=10", *sizes, "--compile"]

    said = finished(2, of_ranks, *arguments, "--checkpoint", checkpoint)

    expected = _held_out_losses(finished(1, program, *arguments))
    assert len(expected) == 1
    # Both ranks print, and both have learned the same.
    assert _held_out_losses(said) == pytest.approx(expected * 2, abs=2e-4)
    with np.load(checkpoint) as saved:
        assert saved["optimizer.steps"] == 20


def _held_out_losses(said: str) -> list[float]:
    return [float(part.split()[0]) for part in said.split("held-out loss ")[1:]]
