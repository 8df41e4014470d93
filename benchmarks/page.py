"""The figures of docs/comparisons.md: ``python -m benchmarks.page KERNEL=results.json ...``.

Each file is that of ``python -m benchmarks --json results.json``, with OpenBLAS's kernel of that
name. They are kept, with what they were measured on, as `docs/comparisons.json`, and the tables of
the page are written from that.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
from collections.abc import Iterator
from datetime import date
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TypedDict

from benchmarks.problems import WORKLOADS

DOCS = Path(__file__).parents[1] / "docs"
PAGE, FIGURES = DOCS / "comparisons.md", DOCS / "comparisons.json"
BETWEEN = re.compile(r"(?<=<!-- figures -->\n).*?(?=<!-- end of figures -->)", re.DOTALL)
PACKAGES = ("numpy", "torch", "jax", "autograd", "numba")
SUBJECTS = ("tapetensor", "tapetensor-compiled", "tapetensor-native-compiled")

# By workload and contender, by what was measured: "median_ms" and more.
Results = dict[str, dict[str, dict[str, float]]]


class Run(TypedDict):
    """One run of all workloads; docs/comparisons.json is a list of them."""

    kernel: str
    about: str
    results: Results


def about(file: Path) -> str:
    """Return when a file of results was written, and this machine and its packages."""
    versions = []
    for package in PACKAGES:
        try:
            versions.append(f"{package} {version(package)}")
        except PackageNotFoundError:
            continue
    machine = f"{_processor()}, {os.cpu_count()} cores, Python {platform.python_version()}"
    day = date.fromtimestamp(file.stat().st_mtime).isoformat()
    return ", ".join([f"Measured on {day}: {machine}", *versions])


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    names = [line.partition(": ")[2] for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


def tables(runs: list[Run]) -> str:
    """Return the figures as Markdown."""
    if not runs:
        return "\nNo figures have been taken yet.\n\n"
    return "\n" + "\n".join(["".join(_tables_of(run)) for run in runs]) + "\n"


def _tables_of(run: Run) -> Iterator[str]:
    results = run["results"]
    names = list(dict.fromkeys(name for row in results.values() for name in row))
    yield f"### With the OpenBLAS kernel {run['kernel']}\n\n{run['about']}.\n"
    yield "\nMedian time of a step in milliseconds:\n\n"
    yield from _table(names, results, _cells(results, "median_ms"))
    for subject in [one for one in SUBJECTS if one in names]:
        others = [name for name in names if name != subject]
        yield f"\nTime of `{subject}` over that of the other; below 1, `{subject}` is faster:\n\n"
        yield from _table(others, results, {w: _ratios(subject, results[w]) for w in results})
    yield "\nMilliseconds from the data to the first result, once all is imported:\n\n"
    yield from _table(names, results, _cells(results, "first_ms"))
    yield "\nThe most memory that the process held, in megabytes:\n\n"
    yield from _table(names, results, _cells(results, "peak_mb"))


def _cells(results: Results, measured: str) -> dict[str, dict[str, str]]:
    return {
        workload: {name: _digits(one[measured]) for name, one in row.items() if measured in one}
        for workload, row in results.items()
    }


def _ratios(subject: str, row: dict[str, dict[str, float]]) -> dict[str, str]:
    if subject not in row:
        return {}
    own = row[subject]["median_ms"]
    return {other: f"{own / one['median_ms']:.2f}" for other, one in row.items()}


def _digits(figure: float) -> str:
    return f"{figure:.3g}" if figure < 100 else f"{figure:.0f}"


def _table(names: list[str], results: Results, cells: dict[str, dict[str, str]]) -> Iterator[str]:
    yield f"| | {' | '.join(f'`{name}`' for name in names)} |\n"
    yield f"|---|{'---:|' * len(names)}\n"
    for workload in results:
        row = [cells[workload].get(name, "") for name in names]
        yield f"| {workload} {WORKLOADS[workload].title} | {' | '.join(row)} |\n"


def written(page: str, runs: list[Run]) -> str:
    """Return the page with the figures in their place."""
    found, count = BETWEEN.subn(lambda _: tables(runs), page)
    assert count == 1, "the page has one place for figures"
    return found


def _run(argument: str) -> Run:
    kernel, separator, name = argument.partition("=")
    if not separator:
        raise argparse.ArgumentTypeError(f"{argument!r} is not KERNEL=FILE")
    file = Path(name)
    return Run(kernel=kernel, about=about(file), results=json.loads(file.read_text()))


def main(arguments: list[str] | None = None) -> None:
    """Keep the results, and write the page."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.page", description=__doc__)
    parser.add_argument(
        "runs",
        nargs="+",
        type=_run,
        metavar="KERNEL=FILE",
        help="a file that python -m benchmarks --json wrote, after OpenBLAS's kernel",
    )
    parser.add_argument(
        "--add", action="store_true", help="keep the figures of before, of another processor, say"
    )
    options = parser.parse_args(arguments)
    kept: list[Run] = json.loads(FIGURES.read_text()) if options.add else []
    runs: list[Run] = kept + options.runs
    page = written(PAGE.read_text(), runs)
    FIGURES.write_text(json.dumps(runs, indent=1) + "\n")
    PAGE.write_text(page)


if __name__ == "__main__":
    main()
