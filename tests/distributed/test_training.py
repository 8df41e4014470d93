"""Training on many ranks gives what training on one gives."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tapetensor import distributed
from tests.distributed.jobs import finished, needs_mpi
from tests.distributed.training import RUNS, build_model, trained


@cache
def of_one_process(name: str) -> dict[str, Any]:
    return trained(name, distributed.alone())


@pytest.fixture(scope="module", params=[2, 4])
def job(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """How many ranks ran everything, and the folder with what each ended with."""
    folder: Path = tmp_path_factory.mktemp("ranks")
    finished(request.param, "-m", "tests.distributed.training", folder)
    return request.param, folder


@needs_mpi
@pytest.mark.parametrize("name", RUNS)
def test_parameters_after_200_steps_are_those_of_one_process_with_the_whole_batch(
    name: str, job: tuple[int, Path]
) -> None:
    ranks, folder = job
    expected = of_one_process(name)

    for rank in range(ranks):
        with np.load(folder / f"{name} {rank}.npz") as found:
            assert found.keys() == expected.keys()
            for key in expected:
                np.testing.assert_allclose(found[key], expected[key], rtol=1e-9, atol=1e-11)


@needs_mpi
@pytest.mark.parametrize("name", RUNS)
def test_all_ranks_end_with_the_same_bits(name: str, job: tuple[int, Path]) -> None:
    ranks, folder = job

    with np.load(folder / f"{name} 0.npz") as first:
        for rank in range(1, ranks):
            with np.load(folder / f"{name} {rank}.npz") as other:
                for key in first:
                    assert first[key].tobytes() == other[key].tobytes()


@pytest.mark.parametrize("name", RUNS)
def test_training_moves_the_parameters(name: str) -> None:
    before = build_model().parameters()

    after = of_one_process(name)

    for key, tensor in before.items():
        assert np.abs(after[key] - tensor.numpy()).max() > 1e-2
