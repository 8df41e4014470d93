"""numpy's BLAS leaves its threads to those who multiply on their own, and has them back."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tapetensor.machine import openblas


class Blas:
    """A BLAS that knows how many threads it has."""

    def __init__(self, threads: int) -> None:
        self.threads = threads

    def counts(self) -> tuple[Callable[[], int], Callable[[int], None]]:
        return (lambda: self.threads), (lambda count: setattr(self, "threads", count))


@pytest.fixture
def blas(monkeypatch: pytest.MonkeyPatch) -> Blas:
    made = Blas(4)
    monkeypatch.setattr(openblas, "_counts", made.counts)
    return made


def test_it_runs_on_one_thread_as_long_as_it_is_held(blas: Blas) -> None:
    with openblas.held_to_one_thread():
        assert (blas.threads, openblas.threads()) == (1, 4)
    assert (blas.threads, openblas.threads()) == (4, 4)


def test_the_last_of_overlapping_blocks_gives_the_threads_back(blas: Blas) -> None:
    first, second = openblas.held_to_one_thread(), openblas.held_to_one_thread()
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert blas.threads == 1
    second.__exit__(None, None, None)
    assert blas.threads == 4


def test_an_error_gives_the_threads_back(blas: Blas) -> None:
    with pytest.raises(ValueError, match="inside"), openblas.held_to_one_thread():
        raise ValueError("inside")
    assert blas.threads == 4


def test_a_child_process_has_all_threads_whoever_held_them(
    blas: Blas, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(openblas, "_held", openblas._Held())
    held = openblas.held_to_one_thread()
    held.__enter__()
    openblas._held.lock.acquire()

    openblas._in_child()

    assert (blas.threads, openblas.threads()) == (4, 4)
    held.__exit__(None, None, None)
    assert (blas.threads, openblas.threads()) == (4, 4)


def test_a_blas_that_says_nothing_counts_as_one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(openblas, "_counts", lambda: None)
    assert openblas.threads() == 1
    with openblas.held_to_one_thread():
        assert openblas.threads() == 1
