"""The figures of docs/comparisons.md: ``python -m benchmarks.page results.json``, where they ran.

The file is that of ``python -m benchmarks --json results.json``. It is kept, with what it was
measured on, as `docs/comparisons.json`, and the tables of the page are written from that.
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

from benchmarks.contenders import SUBJECT
from benchmarks.problems import WORKLOADS

DOCS = Path(__file__).parents[1] / "docs"
PAGE, FIGURES = DOCS / "comparisons.md", DOCS / "comparisons.json"
BETWEEN = re.compile(r"(?<=<!-- figures -->\n).*?(?=<!-- end of figures -->)", re.DOTALL)
PACKAGES = ("numpy", "torch", "jax", "autograd")

# By workload and contender, by what was measured: "median_ms" and more.
Results = dict[str, dict[str, dict[str, float]]]


class Figures(TypedDict):
    """What docs/comparisons.json holds."""

    about: str
    results: Results


def about(file: Path) -> str:
    """Return when a file of results was written, and the machine and the packages of this run."""
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


def tables(figures: Figures) -> str:
    """Return the figures as Markdown."""
    results = figures["results"]
    if not results:
        return "\nNo figures have been taken yet.\n\n"
    names = list(dict.fromkeys(name for row in results.values() for name in row))
    others = [name for name in names if name != SUBJECT]
    parts = [
        f"\n{figures['about']}.\n",
        "\nMedian time of a step in milliseconds:\n\n",
        *_table(
            names, results, {w: {c: _digits(m) for c, m in medians(results[w])} for w in results}
        ),
        f"\nTime of `{SUBJECT}` over the time of the other; below 1, `{SUBJECT}` is faster:\n\n",
        *_table(others, results, {w: _ratios(results[w]) for w in results}),
    ]
    return "".join([*parts, "\n"])


def medians(row: dict[str, dict[str, float]]) -> Iterator[tuple[str, float]]:
    """Return the median of each contender of a workload."""
    for contender, one in row.items():
        yield contender, one["median_ms"]


def _ratios(row: dict[str, dict[str, float]]) -> dict[str, str]:
    if SUBJECT not in row:
        return {}
    own = row[SUBJECT]["median_ms"]
    return {contender: f"{own / other:.2f}" for contender, other in medians(row)}


def _digits(milliseconds: float) -> str:
    return f"{milliseconds:.3g}" if milliseconds < 100 else f"{milliseconds:.0f}"


def _table(names: list[str], results: Results, cells: dict[str, dict[str, str]]) -> Iterator[str]:
    yield f"| | {' | '.join(f'`{name}`' for name in names)} |\n"
    yield f"|---|{'---:|' * len(names)}\n"
    for workload in results:
        row = [cells[workload].get(name, "") for name in names]
        yield f"| {workload} {WORKLOADS[workload].title} | {' | '.join(row)} |\n"


def written(page: str, figures: Figures) -> str:
    """Return the page with the figures in their place."""
    found, count = BETWEEN.subn(lambda _: tables(figures), page)
    assert count == 1, "the page has one place for figures"
    return found


def main(arguments: list[str] | None = None) -> None:
    """Keep the results, and write the page."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.page", description=__doc__)
    parser.add_argument("results", type=Path, help="written by python -m benchmarks --json")
    file: Path = parser.parse_args(arguments).results
    figures = Figures(about=about(file), results=json.loads(file.read_text()))
    page = written(PAGE.read_text(), figures)
    FIGURES.write_text(json.dumps(figures, indent=1) + "\n")
    PAGE.write_text(page)


if __name__ == "__main__":
    main()
