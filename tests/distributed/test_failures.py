"""A rank that fails ends the job with its error, and what does not fit is refused at the start."""

from __future__ import annotations

import re

import pytest

from tests.distributed.jobs import mpiexec, needs_mpi

pytestmark = needs_mpi


def failed(way: str, ranks: int = 2) -> str:
    """Return what a job says that fails, all of it, and in time."""
    job = mpiexec(ranks, "-m", "tests.distributed.failing", way)
    assert job.returncode != 0
    assert "trained to the end" not in job.stdout
    return job.stderr


def test_an_error_of_one_of_four_ranks_ends_the_job_and_is_shown() -> None:
    said = failed("raises", ranks=4)

    assert "rank 3 of 4 ends the job:\nTraceback" in said
    assert "ZeroDivisionError: the bug" in said


def test_an_error_before_mpi_has_started_ends_the_ranks_that_wait_for_the_start() -> None:
    said = failed("raises before MPI")

    assert "rank 1 ends the job:\nTraceback" in said
    assert "ZeroDivisionError: the bug" in said


# Rank 1 does something else before tapetensor is imported there.
EARLY = """
import os
if os.environ["PMI_RANK"] == "1":
    {}
from tapetensor import distributed
distributed.world()
"""


def test_a_rank_that_ends_before_it_imports_tapetensor_ends_those_that_wait_for_the_start() -> None:
    job = mpiexec(2, "-c", EARLY.format("os._exit(0)"))

    assert job.returncode != 0
    assert "rank 0 ends the job: of the 2 ranks of this machine (from 0) number 1 has" in job.stderr


def test_ranks_wait_for_the_start_as_long_as_they_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TAPETENSOR_START_SECONDS", "1")
    late = mpiexec(2, "-c", EARLY.format("__import__('time').sleep(60)"))
    monkeypatch.setenv("TAPETENSOR_START_SECONDS", "soon")
    wrong = mpiexec(2, "-c", EARLY.format("pass"))

    assert late.returncode != 0
    assert "rank 0 ends the job: it has waited 1.0 seconds for all ranks to start" in late.stderr
    assert wrong.returncode != 0
    assert "TAPETENSOR_START_SECONDS must be seconds, a number above 0, got 'soon'" in wrong.stderr


def test_ranks_without_mpi4py_say_so_once_each() -> None:
    missing = "import sys; sys.modules['mpi4py.MPI'] = None\n"
    job = mpiexec(2, "-c", f"{missing}from tapetensor import distributed; distributed.world()")

    assert job.returncode != 0
    assert job.stderr.count("Error: many ranks need the package mpi4py: pip install") == 2
    assert "sys.excepthook" not in job.stderr


def test_who_waits_for_a_rank_that_has_left_is_told() -> None:
    assert "all_reduce: rank 1 has ended and rank 0 waits for it" in failed("exits")
    assert "barrier: rank 1 has ended and rank 0 waits for it" in failed("exits before MPI")


def test_a_rank_that_hangs_is_named_and_waited_for_as_long_as_is_wanted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TAPETENSOR_WAIT_SECONDS", "2.5")
    said = failed("hangs")

    waited = r"all_reduce: rank 0 has waited \d seconds for rank 1, which has not called it"
    assert re.search(f"^{waited} yet; is it at work, or hangs", said, re.MULTILINE)
    assert re.search(f"DistributedError: {waited}; TAPETENSOR_WAIT_SECONDS sets how", said)


def test_a_rank_that_is_killed_ends_the_job() -> None:
    # By mpiexec, which shows it in its own words.
    failed("is killed")


@pytest.mark.parametrize(
    ("way", "said"),
    [
        ("another model", "rank 1 alone, not rank 0: parameter weight: shape (3, 4), float64"),
        ("other names", "rank 1 alone, not rank 0: parameter 1.bias: shape (4,), float32, the sam"),
        ("another optimizer", "weight.velocity: not in the optimizer"),
        ("too few ranks", "world: 3 ranks are wanted, 2 started; run mpiexec -n 3 python"),
    ],
)
def test_what_does_not_fit_is_refused_before_the_first_step(way: str, said: str) -> None:
    assert said in failed(way)


@pytest.mark.parametrize(
    ("way", "root", "other"),
    [
        ("only root", "mean or sum of 1 float64", "gather of 2 int64"),
        ("only root saves", "broadcast of 1 int64", "barrier"),
    ],
)
def test_what_rank_0_alone_asks_of_all_is_refused(way: str, root: str, other: str) -> None:
    said = failed(way)

    # Each compares itself with the rank before it, and the first to know ends both.
    assert (
        f"DistributedError: rank 1 calls {other} where rank 0 calls {root}; every rank" in said
        or f"DistributedError: rank 0 calls {root} where rank 1 calls {other}; every rank" in said
    )


def test_every_rank_learns_that_rank_0_could_not_save() -> None:
    job = mpiexec(2, "-m", "tests.distributed.failing", "no folder")

    assert job.returncode == 0
    assert "rank 0: FileNotFoundError" in job.stdout
    assert "rank 1: DistributedError: save_checkpoint: rank 0 failed: FileNotFound" in job.stdout
