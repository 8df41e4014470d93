from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from tapetensor.kernels.numerics import threads
from tapetensor.native import cache, loading


@pytest.fixture(scope="session", autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Leave the user's cache alone."""
    before = os.environ.get(cache.FOLDER_VARIABLE)
    os.environ[cache.FOLDER_VARIABLE] = str(tmp_path_factory.mktemp("native", numbered=True))
    cache.folder.cache_clear()
    yield
    cache.folder.cache_clear()
    if before is None:
        del os.environ[cache.FOLDER_VARIABLE]
    else:
        os.environ[cache.FOLDER_VARIABLE] = before


@pytest.fixture(params=[1, 3])
def workers(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    """Share all loops among so many threads."""
    monkeypatch.setattr(loading, "SMALLEST_FOR_THREADS", 1)
    monkeypatch.setattr(threads, "count", lambda: request.param)
    count: int = request.param
    return count
