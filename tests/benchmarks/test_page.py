"""What the benchmarks write: the page, tables of growth, and a verdict under every kernel."""

from __future__ import annotations

import json
import pkgutil
import runpy
import sys
from pathlib import Path

import pytest

from benchmarks import kernels, page, scale
from benchmarks.page import FIGURES, PAGE, Run, tables, written
from benchmarks.scale import turns
from benchmarks.scale.turns import Growth, Measured, table
from tapetensor.machine.settings import KERNEL_VARIABLE

RESULTS = {
    "W1": {"tapetensor": {"median_ms": 0.5}, "torch": {"median_ms": 0.25, "first_ms": 7.0}},
    "W2": {"tapetensor": {"median_ms": 123.4}, "jax": {"median_ms": 246.8}},
}


def test_the_page_shows_the_figures_that_are_kept() -> None:
    text = PAGE.read_text()

    assert written(text, json.loads(FIGURES.read_text())) == text


def test_a_table_has_a_row_for_each_workload_and_leaves_open_what_was_not_measured() -> None:
    text = tables([Run(kernel="Haswell", about="Measured today", results=RESULTS)])

    assert "kernel Haswell\n\nMeasured today.\n" in text
    assert "| W1 tiny MLP, training step | 0.5 | 0.25 |  |" in text
    assert "| W2 MNIST-sized MLP, training step | 123 |  | 247 |" in text
    assert "| W1 tiny MLP, training step | 2.00 |  |" in text
    assert "| W2 MNIST-sized MLP, training step |  | 0.50 |" in text
    assert "| W1 tiny MLP, training step |  | 7 |  |" in text


def test_results_are_kept_with_the_day_and_the_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(page, "PAGE", tmp_path / "page.md")
    monkeypatch.setattr(page, "FIGURES", tmp_path / "page.json")
    (tmp_path / "page.md").write_text("<!-- figures -->\nold\n<!-- end of figures -->\n")
    (tmp_path / "results.json").write_text(json.dumps(RESULTS))

    page.main([f"Haswell={tmp_path / 'results.json'}", f"SkylakeX={tmp_path / 'results.json'}"])

    kept = json.loads((tmp_path / "page.json").read_text())
    assert [run["kernel"] for run in kept] == ["Haswell", "SkylakeX"]
    assert [run["results"] for run in kept] == [RESULTS, RESULTS]
    assert "cores, Python 3." in kept[0]["about"]
    assert kept[0]["about"] in (tmp_path / "page.md").read_text()
    assert "old" not in (tmp_path / "page.md").read_text()

    page.main(["--add", f"Zen={tmp_path / 'results.json'}"])

    kept = json.loads((tmp_path / "page.json").read_text())
    assert [run["kernel"] for run in kept] == ["Haswell", "SkylakeX", "Zen"]
    assert "kernel Zen\n" in (tmp_path / "page.md").read_text()


SHOW = f"import os, sys; sys.exit(os.environ['{KERNEL_VARIABLE}'] == 'Haswell')"


def test_a_command_that_fails_under_one_kernel_fails(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    for known, status in (({"Zen": "Zen", "Haswell": "Haswell"}, 1), ({"Zen": "Zen"}, 0), ({}, 0)):
        monkeypatch.setattr(kernels, "kernels_of_this_machine", known.copy)
        assert kernels.main([sys.executable, "-c", SHOW]) == status
        assert ("it fails under Haswell" in capfd.readouterr().out) == (status == 1)


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
