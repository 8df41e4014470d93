"""Fixtures for all tests, and what doctest collection must not import."""

from __future__ import annotations

import os

# Tests run side by side, and so do the programs that they start: threads of a BLAS that wait for
# each other on the same cores take many times as long. Before numpy loads it.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
import pytest

collect_ignore_glob = ["typing/pass/*", "typing/fail/*", "typing/reveal/*"]


@pytest.fixture
def rng() -> np.random.Generator:
    """A seeded generator, fresh for every test."""
    return np.random.default_rng(20240229)
