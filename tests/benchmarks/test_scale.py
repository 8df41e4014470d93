"""The scripts of what grows: every side runs, and the table says what was measured."""

from __future__ import annotations

import importlib
import pkgutil
import runpy
from collections.abc import Iterator
from typing import Any

import pytest

from benchmarks import scale
from benchmarks.scale import turns
from benchmarks.scale.turns import Growth, Measured, table

SCRIPTS = sorted({one.name for one in pkgutil.iter_modules(scale.__path__)} - {"turns"})
LIBRARIES = {"torch": "torch", "torch, dense": "torch", "torch, sparse": "torch", "jax": "jax"}


def _growths(monkeypatch: pytest.MonkeyPatch, script: str) -> tuple[Growth, ...]:
    """Return what a script would measure."""
    asked: list[tuple[Growth, ...]] = []
    monkeypatch.setattr(turns, "main", lambda *growths: asked.append(growths))
    runpy.run_module(f"benchmarks.scale.{script}", run_name="__main__")
    (found,) = asked
    return found


@pytest.mark.parametrize("script", SCRIPTS)
def test_every_side_of_a_script_runs(monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    ran = 0
    for growth in _growths(monkeypatch, script):
        for side, build in _sides(growth):
            if side in LIBRARIES and importlib.util.find_spec(LIBRARIES[side]) is None:
                continue
            build(growth.small)()
            ran += 1
    assert ran


def _sides(growth: Growth) -> Iterator[tuple[str, Any]]:
    yield from growth.sides.items()


def test_a_table_has_ratios_and_exponents() -> None:
    rows = [
        {"ours": Measured(2.0, 3.0, 4.0, 10.0), "theirs": Measured(4.0, 4.0, 4.0, 5.0)},
        {"ours": Measured(8.0, 9.0, 9.0, 20.0), "theirs": Measured(8.0, 8.0, 8.0, 10.0)},
    ]
    text = table([1, 2], rows)
    assert "0.50   0.75   1.00   2.00" in text
    assert "ours: time ~ size^2.00, memory ~ size^1.00" in text
    assert "theirs: time ~ size^1.00, memory ~ size^1.00" in text
