"""Results as a table, as JSON and as a picture of the ratios."""

from __future__ import annotations

import json
import platform
from collections.abc import Mapping
from pathlib import Path
from typing import TypeAlias

from benchmarks.contenders import SUBJECT
from benchmarks.measuring import Measurement
from benchmarks.problems import WORKLOADS

Results: TypeAlias = Mapping[str, Mapping[str, Measurement]]


def as_json(results: Results) -> str:
    """Return ``{"W1": {"torch": {"median_ms": ..., ...}, ...}, ...}``."""
    return json.dumps(
        {
            workload: {
                contender: {
                    "median_ms": one.median_ms,
                    "min_ms": one.min_ms,
                    "peak_mb": one.peak_mb,
                    "first_ms": one.first_ms,
                }
                for contender, one in by_contender.items()
            }
            for workload, by_contender in results.items()
        },
        indent=1,
    )


def table(workload: str, measured: Mapping[str, Measurement]) -> str:
    """Return the results of one workload."""
    title, _, operations = WORKLOADS[workload]
    per_op = f"{'us per op':>11}" if operations > 1 else ""
    lines = [
        f"{workload}  {title}",
        f"  {'':<20}{'median ms':>11}{'spread':>8}{'min ms':>11}{per_op}"
        f"{'peak MB':>10}{'first ms':>10}{SUBJECT + ' / it':>18}",
    ]
    subject = measured.get(SUBJECT)
    for contender, one in measured.items():
        per_op = f"{one.median_ms * 1e3 / operations:>11.3f}" if operations > 1 else ""
        ratio = f"{subject.median_ms / one.median_ms:>18.2f}" if subject is not None else ""
        lines.append(
            f"  {contender:<20}{one.median_ms:>11.4f}{one.spread:>8.0%}{one.min_ms:>11.4f}{per_op}"
            f"{one.peak_mb:>10.0f}{one.first_ms:>10.0f}{ratio}"
        )
    return "\n".join(lines)


def draw(results: Results, file: Path) -> None:
    """Draw, for every workload, the subject's time over each other contender's."""
    # Not at the top: a run without a picture does not need matplotlib.
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot

    names = [w for w in results if SUBJECT in results[w]]
    others = list(dict.fromkeys(c for w in names for c in results[w] if c != SUBJECT))
    figure, axes = pyplot.subplots(figsize=(1.5 + 1.2 * len(names), 4.5), layout="constrained")
    width = 0.8 / max(len(others), 1)
    for position, other in enumerate(others):
        places, ratios = [], []
        for place, workload in enumerate(names):
            if other in results[workload]:
                places.append(place + (position - (len(others) - 1) / 2) * width)
                ratios.append(
                    results[workload][SUBJECT].median_ms / results[workload][other].median_ms
                )
        # From 1 up or down, so that the side says who is faster.
        axes.bar(places, [r - 1 for r in ratios], width, bottom=1, label=other)
    axes.axhline(1, color="black", linewidth=1)
    axes.set_yscale("log")
    axes.set_xticks(range(len(names)), names)
    axes.set_ylabel(f"time of {SUBJECT} / time of the other")
    axes.set_title(f"Below 1: {SUBJECT} is faster ({platform.machine()}, one run)")
    axes.legend()
    figure.savefig(file)
    pyplot.close(figure)
