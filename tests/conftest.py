"""Fixtures for all tests, their order, and what doctest collection must not import."""

from __future__ import annotations

import gc
import os
import signal
import sys
from collections.abc import Generator
from pathlib import Path
from typing import Any

# Tests run side by side, and so do the programs that they start: threads of a BLAS that wait for
# each other on the same cores take many times as long. Before numpy loads it.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
import pytest
from _pytest.doctest import DoctestModule
from _pytest.runner import runtestprotocol

if sys.dont_write_bytecode:
    # Not beside the sources, then, but where pytest keeps what it remembers: the many programs that
    # tests start import the library, and each would compile it again.
    sys.pycache_prefix = str(Path(__file__).parents[1] / ".pytest_cache" / "bytecode")
    sys.dont_write_bytecode = False
    os.environ["PYTHONPYCACHEPREFIX"] = sys.pycache_prefix
    del os.environ["PYTHONDONTWRITEBYTECODE"]

# A shell lets what it runs in the background ignore Ctrl-C, which some tests send.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

collect_ignore_glob = ["typing/pass/*", "typing/fail/*", "typing/reveal/*"]

# Where the tests are that take seconds, the longest first: what starts other programs, such as
# mypy and pyright over all that is checked, and random programs.
SLOW = (
    *["tests/plugin/", "tests/parity/", "tests/typing/", "tests/test_", "tests/distributed/"],
    *[
        "tests/command/",
        "tests/machine/",
        "tests/properties/test_programs",
        "tests/compiler/test_programs",
    ],
)


HERE = Path(__file__).parent


@pytest.hookimpl(wrapper=True)
def pytest_collect_file(file_path: Path) -> Generator[None, list[Any], list[Any]]:
    """Look for doctests in the library only: the tests have none."""
    collectors = yield
    if HERE in file_path.parents:
        return [one for one in collectors if not isinstance(one, DoctestModule)]
    return collectors


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """Let every other worker collect from the end: what one has compiled, another finds."""
    report = yield
    worker = getattr(collector.config, "workerinput", {}).get("workerid", "gw0")
    if isinstance(collector, pytest.Directory) and int(worker[2:]) % 2:
        report.result.reverse()
    return report


def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
    """Let a worker send of a test only what is read: not that it began and was set up well."""
    if not hasattr(item.config, "workerinput") or item.config.getoption("durations") is not None:
        return None
    for report in runtestprotocol(item, log=False, nextitem=nextitem):
        if report.when == "call" or not report.passed:
            item.ihook.pytest_runtest_logreport(report=report)
    return True


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the slow tests first: at the end, one would keep all workers but its own waiting.

    The others are sorted by file, in whatever order a worker collected those.
    """

    def place(item: pytest.Item) -> tuple[int, str]:
        places = (place for place, start in enumerate(SLOW) if item.nodeid.startswith(start))
        return next(places, len(SLOW)), str(item.path)

    items.sort(key=place)


def pytest_collection_finish() -> None:
    """Spare the garbage collector thousands of tests, which live as long as the process."""
    gc.collect()
    gc.freeze()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Let a worker without tests take over some of another's, unless a way is asked for."""
    from xdist.scheduler import WorkStealingScheduling  # type: ignore[import-untyped]  # of xdist

    return WorkStealingScheduling(config, log) if config.getoption("dist") == "load" else None


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Leave out of a report what nobody reads of it: a worker sends three for every test."""
    report = yield
    report.keywords = {}
    return report


@pytest.fixture
def rng() -> np.random.Generator:
    """A seeded generator, fresh for every test."""
    return np.random.default_rng(20240229)
