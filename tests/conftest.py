"""Fixtures for all tests, their order, and what doctest collection must not import."""

from __future__ import annotations

import gc
import os
import re
import signal
import sys
from collections import defaultdict
from collections.abc import Generator
from importlib.util import find_spec
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
# Rooms in which nothing can be tried without an extra. Without it they are not even read.
ROOMS_OF_EXTRAS = {"native": "numba", "onnx": "onnxruntime"}


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    """Leave out the rooms whose extra is not installed."""
    rooms = [one for one, extra in ROOMS_OF_EXTRAS.items() if find_spec(extra) is None]
    # Files, too: a room that is asked for by name is not asked about here.
    return any(collection_path.is_relative_to(HERE / room) for room in rooms) or None


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """Say once for each extra, and for each other reason, what was not run for want of it."""
    files: dict[str, set[str]] = defaultdict(set)
    counts: dict[str, int] = defaultdict(int)
    for report in terminalreporter.stats.get("skipped", []):
        reason = str(report.longrepr[2]).removeprefix("Skipped: ")
        missing = re.match(r"could not import '(\w+)|needs (\w+)", reason)
        if missing:
            reason = f"{missing[1] or missing[2]} is not installed"
        files[reason].add(report.nodeid.partition("::")[0])
        counts[reason] += 1
    for room, extra in ROOMS_OF_EXTRAS.items():
        asked = [config.invocation_params.dir / one.partition("::")[0] for one in config.args]
        if find_spec(extra) is None and any((HERE / room).is_relative_to(one) for one in asked):
            files[f"{extra} is not installed"].add(f"tests/{room}")
    if files:
        terminalreporter.section("not run")
    for reason, where in sorted(files.items()):
        count = f"{counts[reason]} of " if reason in counts else "all of "
        terminalreporter.line(f"{reason}: {count}{', '.join(sorted(where))}")


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
def without_garbage_collection() -> Generator[None]:
    """Let reference counts alone free everything, and faster."""
    gc.disable()
    yield
    gc.enable()


@pytest.fixture
def rng() -> np.random.Generator:
    """A seeded generator, fresh for every test."""
    return np.random.default_rng(20240229)
