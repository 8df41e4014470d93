"""The scripts of what grows: our sides run, and the table says what was measured."""

from __future__ import annotations

import pkgutil
import runpy

import pytest

from benchmarks import scale
from benchmarks.scale import turns
from benchmarks.scale.turns import Growth, Measured, table

SCRIPTS = sorted({one.name for one in pkgutil.iter_modules(scale.__path__)} - {"turns"})
# A library whose side is slow to import, and measured only.
OTHERS = {"torch", "torch, dense", "torch, sparse", "jax"}


def _growths(monkeypatch: pytest.MonkeyPatch, script: str) -> tuple[Growth, ...]:
    """Return what a script would measure."""
    asked: list[tuple[Growth, ...]] = []
    monkeypatch.setattr(turns, "main", lambda *growths: asked.append(growths))
    runpy.run_module(f"benchmarks.scale.{script}", run_name="__main__")
    (found,) = asked
    return found


@pytest.mark.parametrize("script", SCRIPTS)
def test_our_sides_of_a_script_run(monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    ours = [
        build
        for growth in _growths(monkeypatch, script)
        for side, build in growth.sides.items()
        if side not in OTHERS
    ]
    assert ours
    for build in ours:
        build(min(growth.small for growth in _growths(monkeypatch, script)))()


def test_a_table_has_ratios_and_exponents() -> None:
    rows = [
        {"ours": Measured(2.0, 3.0, 4.0, 10.0), "theirs": Measured(4.0, 4.0, 4.0, 5.0)},
        {"ours": Measured(8.0, 9.0, 9.0, 20.0), "theirs": Measured(8.0, 8.0, 8.0, 10.0)},
    ]
    text = table([1, 2], rows)
    assert "0.50   0.75   1.00   2.00" in text
    assert "ours: time ~ size^2.00, memory ~ size^1.00" in text
    assert "theirs: time ~ size^1.00, memory ~ size^1.00" in text
