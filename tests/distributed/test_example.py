"""The character transformer on two ranks, for one line more."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.distributed.jobs import ROOT, finished, needs_mpi

LINE = "        self.gradients_of = tt.distributed.data_parallel(self.gradients_of)\n"


@needs_mpi
@pytest.mark.parametrize("options", [[], ["--compile"]])
def test_the_character_transformer_trains_on_two_ranks_by_one_line_more(
    options: list[str], tmp_path: Path
) -> None:
    pytest.importorskip("tqdm")
    program = ROOT / "examples" / "char_transformer.py"
    before, line, after = program.read_text().partition("        self.settings = settings\n")
    assert LINE.strip() in before
    of_ranks = tmp_path / "of_ranks.py"
    of_ranks.write_text(before + LINE + line + after)
    checkpoint = tmp_path / "gpt.npz"
    sizes = ["--width=16", "--layers=1", "--heads=2", "--context=16", "--batch=8"]
    arguments = ["--steps=20", "--sample=10", *sizes, *options]

    said = finished(2, of_ranks, *arguments, "--checkpoint", checkpoint)

    expected = _held_out_losses(finished(1, program, *arguments))
    assert len(expected) == 1
    # Both ranks print, and both have learned the same.
    assert _held_out_losses(said) == pytest.approx(expected * 2, abs=2e-4)
    with np.load(checkpoint) as saved:
        assert saved["optimizer.steps"] == 20


def _held_out_losses(said: str) -> list[float]:
    return [float(part.split()[0]) for part in said.split("held-out loss ")[1:]]
