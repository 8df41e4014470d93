"""The share of mistakes that mypy finds before the program runs: ``python -m benchmarks.static``.

Every valid program is mutated; the mutants that raise an error of the library at run time are the
defects; mypy is run over all of them, once without the plugin and once with it. Then the survivors
are listed, and what mypy says of the programs without a mistake: false alarms, which must be none.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from benchmarks.static.checking import ROOT, Report, both_reports
from benchmarks.static.mutants import MOST_OF_A_KIND, PROGRAMS, Mutant, defects
from benchmarks.static.operators import OPERATORS

EXAMPLES = [path for path in sorted((ROOT / "examples").rglob("*.py")) if path not in PROGRAMS]


class Outcome(NamedTuple):
    """What became of one defect.

    Attributes:
        mutant: the defect.
        plain: whether mypy rejects it without the plugin.
        plugin: whether it does with the plugin.
    """

    mutant: Mutant
    plain: bool
    plugin: bool


class Figures(NamedTuple):
    """The outcome of a whole run.

    Attributes:
        outcomes: one per defect.
        false_alarms: errors in valid programs and examples, without and with the plugin.
        seconds: of mypy, without and with the plugin.
    """

    outcomes: Sequence[Outcome]
    false_alarms: Mapping[str, list[str]]
    seconds: Mapping[str, float]


def measure(most: int = MOST_OF_A_KIND) -> Figures:
    """Make the defects and run mypy over them.

    Args:
        most: how many defects to take of one program and operator.
    """
    mutants = list(defects(most=most))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name).resolve()
        files = [
            folder / f"mutant_{index:04}_{one.program}.py" for index, one in enumerate(mutants)
        ]
        for file, mutant in zip(files, mutants, strict=True):
            file.write_text(mutant.text)
        plain, plugin = both_reports([*PROGRAMS, *EXAMPLES, *files], folder)
    return Figures(
        [
            Outcome(mutant, file in plain.errors, file in plugin.errors)
            for file, mutant in zip(files, mutants, strict=True)
        ],
        {"plain": _false_alarms(plain), "plugin": _false_alarms(plugin)},
        {"plain": plain.seconds, "plugin": plugin.seconds},
    )


def _false_alarms(report: Report) -> list[str]:
    return [
        f"{path.relative_to(ROOT)}:{line}: {message}"
        for path in [*PROGRAMS, *EXAMPLES]
        for line, message in report.errors.get(path.resolve(), [])
    ]


def share(outcomes: Sequence[Outcome], way: str) -> float:
    """Return the share of defects that mypy rejects in one way, "plain" or "plugin"."""
    return sum(getattr(one, way) for one in outcomes) / len(outcomes) if outcomes else 1.0


def table(figures: Figures) -> str:
    """Return the shares by operator."""
    lines = [f"{'mistake':<26}{'defects':>8}{'plain':>9}{'plugin':>9}"]
    for operator in OPERATORS:
        some = [one for one in figures.outcomes if one.mutant.operator == operator]
        lines.append(_row(operator, some))
    return "\n".join([*lines, _row("all", figures.outcomes)])


def _row(title: str, outcomes: Sequence[Outcome]) -> str:
    plain, plugin = share(outcomes, "plain"), share(outcomes, "plugin")
    return f"{title:<26}{len(outcomes):>8}{plain:>9.1%}{plugin:>9.1%}"


def survivors(figures: Figures) -> list[str]:
    """Return the defects that mypy accepts with the plugin, by file and line."""
    return [
        f"{mutant.program}.py:{mutant.edit.line}: {mutant.operator}: {mutant.edit.description}\n"
        f"    {mutant.error[:150]}"
        for mutant, _, plugin in figures.outcomes
        if not plugin
    ]


def as_json(figures: Figures) -> str:
    """Return everything, for other programs to read."""
    rows = [
        {
            "program": mutant.program,
            "line": mutant.edit.line,
            "operator": mutant.operator,
            "mistake": mutant.edit.description,
            "error": mutant.error,
            "plain": plain,
            "plugin": plugin,
        }
        for mutant, plain, plugin in figures.outcomes
    ]
    summary = {way: share(figures.outcomes, way) for way in ("plain", "plugin")}
    return json.dumps(
        {
            "rejected": summary,
            "false_alarms": figures.false_alarms,
            "seconds": figures.seconds,
            "defects": rows,
        },
        indent=1,
    )


def main() -> None:
    """Measure, print the table, the survivors and the false alarms."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--most", type=int, default=MOST_OF_A_KIND, help="per program and operator")
    parser.add_argument("--json", type=Path, help="where to write everything as JSON")
    parser.add_argument("--quiet", action="store_true", help="do not list the survivors")
    arguments = parser.parse_args()
    start = time.perf_counter()
    figures = measure(arguments.most)
    print("The share of defects that mypy --strict rejects, without the plugin and with it")
    print(f"({len(PROGRAMS)} programs)\n")
    print(table(figures))
    left = survivors(figures)
    if not arguments.quiet:
        print(f"\n{len(left)} survive with the plugin:")
        print("\n".join(left))
    for way, alarms in figures.false_alarms.items():
        print(f"\nfalse alarms, {way}: {len(alarms)}", *alarms, sep="\n    ")
    print(
        f"\nmypy: plain {figures.seconds['plain']:.1f} s, plugin {figures.seconds['plugin']:.1f} s"
    )
    print(f"in all {time.perf_counter() - start:.1f} s")
    if arguments.json is not None:
        arguments.json.write_text(as_json(figures))
    sys.exit(bool(figures.false_alarms["plugin"]))


if __name__ == "__main__":
    main()
