"""What ranks do together comes out right on each of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.distributed.jobs import finished, needs_mpi


@needs_mpi
@pytest.mark.parametrize("ranks", [1, 3])
def test_every_rank_finds_what_it_should(ranks: int, tmp_path: Path) -> None:
    assert finished(ranks, "-m", "tests.distributed.together", tmp_path).count("done") == ranks
