"""`training.fit` trains on many ranks as it does on one."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import pytest

import tapetensor as tt
from tapetensor.training.ranks import share_of
from tests.distributed.jobs import finished, needs_mpi
from tests.distributed.test_one_process import rank_of
from tests.training.models import Run


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
