"""docs/comparisons.md: the tables are those that the kept results give."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks import page
from benchmarks.page import FIGURES, PAGE, Run, tables, written

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
