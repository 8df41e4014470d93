"""Training on many ranks gives what training on one gives."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tapetensor import distributed
from tests.distributed.jobs import finished, needs_mpi
from tests.distributed.training import RUNS, trained


@needs_mpi
@pytest.mark.parametrize(("ranks", "steps"), [(2, 200), (4, 60)])
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
