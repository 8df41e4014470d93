"""Fixtures for all tests, and what doctest collection must not import."""

from __future__ import annotations

import numpy as np
import pytest

collect_ignore_glob = ["typing/pass/*", "typing/fail/*", "typing/reveal/*"]


@pytest.fixture
def rng() -> np.random.Generator:
    """A seeded generator, fresh for every test."""
    return np.random.default_rng(20240229)
