"""The workloads on tapetensor and its peers: ``python -m benchmarks [W1 W2 ...]``."""

from __future__ import annotations

import argparse
import os
import platform
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from benchmarks import contenders, import_time, profiling, report
from benchmarks.measuring import DisagreementError, Measurement, measure
from benchmarks.problems import WORKLOADS


def main(arguments: list[str] | None = None) -> None:
    """Measure what the command line asks for."""
    parser = _parser()
    asked = parser.parse_args(arguments)
    if asked.rounds < 1:
        parser.error("argument --rounds: there must be one at least")
    for name in asked.workloads:
        if not _named(name):
            raise SystemExit(f"no such workload: {name}; there are {', '.join(WORKLOADS)}")
    workloads = [one for name in asked.workloads for one in _named(name)] or list(WORKLOADS)
    if asked.profile:
        for workload in workloads:
            print(profiling.profile(workload, asked.seconds), end="\n\n", flush=True)
        return
    names = asked.contenders.split(",") if asked.contenders else contenders.names()
    strangers = set(names) - set(contenders.names())
    if strangers:
        raise SystemExit(f"no such contender: {', '.join(sorted(strangers))}")
    # Now, and not after minutes of measuring.
    for file in (asked.json, asked.picture):
        if file is not None and not file.parent.is_dir():
            raise SystemExit(f"no such folder: {file.parent}")
    if asked.picture is not None and find_spec("matplotlib") is None:
        raise SystemExit("--picture needs matplotlib: pip install '.[benchmarks]'")
    print(
        f"{platform.processor() or platform.machine()}, {os.cpu_count()} cores, "
        f"Python {platform.python_version()}, numpy {np.__version__}\n"
    )
    told: set[str] = set()

    def tell_once(line: str) -> None:
        if line not in told:
            told.add(line)
            print(line, flush=True)

    results: dict[str, dict[str, Measurement]] = {}
    try:
        for workload in workloads:
            results[workload] = measure(
                workload,
                names,
                rounds=asked.rounds,
                seconds=asked.seconds,
                tiny=asked.tiny,
                note=tell_once,
            )
            print(report.table(workload, results[workload]), end="\n\n", flush=True)
    except DisagreementError as error:
        raise SystemExit(str(error)) from None
    finally:
        if asked.json is not None:
            asked.json.write_text(report.as_json(results))
    if asked.picture is not None:
        report.draw(results, asked.picture)
    if not asked.workloads:
        print(import_time.table(import_time.measure()))


def _named(name: str) -> list[str]:
    """Return the workloads of that name: W9 is both W9a and W9b."""
    return [one for one in WORKLOADS if name in (one, one.rstrip("ab"))]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("workloads", nargs="*", help="W1 to W9; all without")
    parser.add_argument("--contenders", help=f"of {','.join(contenders.names())}; all without")
    parser.add_argument("--json", type=Path, help="where to write the results as JSON")
    parser.add_argument("--picture", type=Path, help="where to draw the ratios (needs matplotlib)")
    parser.add_argument(
        "--profile", action="store_true", help="say where the time of tapetensor's steps goes"
    )
    parser.add_argument("--rounds", type=int, default=5, help="turns of each contender")
    parser.add_argument("--seconds", type=float, default=0.5, help="the length of a turn")
    parser.add_argument("--tiny", action="store_true", help="the small sizes of the tests")
    return parser


if __name__ == "__main__":
    main()
