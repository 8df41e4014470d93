"""The benchmarks measure what they say, and write it: results, a page, tables, verdicts."""

from __future__ import annotations

import json
import pkgutil
import runpy
import sys
from pathlib import Path

import pytest

from benchmarks import agreement, contenders, kernels, page, profiling, report, scale
from benchmarks.__main__ import main
from benchmarks.measuring import DisagreementError, Measurement, check_agreement
from benchmarks.page import FIGURES, PAGE, Run, tables, written
from benchmarks.problems import WORKLOADS
from benchmarks.scale import turns
from benchmarks.scale.turns import Growth, Measured, table
from benchmarks.worker import steps_of, witnesses
from tapetensor.machine.settings import KERNEL_VARIABLE

ON_NUMPY_ALONE = ["tapetensor", "tapetensor-compiled", "numpy", "numpy-planned"]


def test_every_file_is_a_contender_and_the_subject_comes_first() -> None:
    names = contenders.names()

    assert names[0] == "tapetensor"
    assert set(names) >= {*ON_NUMPY_ALONE, "torch", "jax", "autograd", "gemm-floor"}


@pytest.mark.parametrize("workload", WORKLOADS)
def test_contenders_on_numpy_alone_compute_the_same_over_five_steps(workload: str) -> None:
    found = {
        name: witnesses(steps_of(name)[workload](WORKLOADS[workload].problem(True)))
        for name in ON_NUMPY_ALONE
        if workload in steps_of(name)
    }

    assert {"tapetensor", "numpy"} <= set(found)
    check_agreement(workload, found)


@pytest.mark.parametrize("workload", ["W1", "W2", "W3", "W4", "W5"])
def test_a_training_step_trains(workload: str) -> None:
    first, *_, last = witnesses(steps_of("tapetensor")[workload](WORKLOADS[workload].problem(True)))

    assert last[0] < first[0]


def test_a_contender_that_computes_something_else_is_not_timed() -> None:
    found = {"tapetensor": [[1.0], [0.5]], "torch": [[1.0], [0.5002]]}

    with pytest.raises(DisagreementError, match="W1: torch and tapetensor do not compute the same"):
        check_agreement("W1", found)


@pytest.mark.parametrize("workload", steps_of("gemm-floor"))
def test_the_floor_runs(workload: str) -> None:
    assert steps_of("gemm-floor")[workload](WORKLOADS[workload].problem(True))() == ()


def test_the_command_writes_the_agreed_json(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "results.json"
    arguments = ["W7", "--contenders", "tapetensor,numpy", "--json", str(file)]
    main([*arguments, "--tiny", "--rounds", "1", "--seconds", "0"])
    results = json.loads(file.read_text())

    assert list(results) == ["W7"]
    assert list(results["W7"]) == ["tapetensor", "numpy"]
    for figures in results["W7"].values():
        assert list(figures) == ["median_ms", "min_ms", "peak_mb", "first_ms"]
        assert 0 < figures["min_ms"] <= figures["median_ms"]
        assert figures["peak_mb"] > 10
        assert figures["first_ms"] > 0
    assert "us per op" in capsys.readouterr().out


@pytest.mark.parametrize("asked", [["W0"], ["W1", "--contenders", "abacus"]])
def test_a_name_that_does_not_exist_is_refused(asked: list[str]) -> None:
    with pytest.raises(SystemExit, match="no such"):
        main(asked)


@pytest.mark.parametrize("option", ["--json", "--picture"])
def test_a_file_that_cannot_be_written_is_refused_before_anything_is_measured(
    option: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit, match="no such folder"):
        main(["W7", "--tiny", option, str(tmp_path / "missing" / "file.png")])

    assert capsys.readouterr().out == ""


def test_the_profile_accounts_for_kernels_tape_and_optimizer() -> None:
    text = profiling.profile("W1", 0.0, tiny=True)

    for part in ("kernel linear,", "kernel relu", "tape: apply", "tape: replay", "optimizer"):
        assert part in text


def test_the_ratios_are_drawn(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    one, two = Measurement([1.0, 2.0, 3.0], 0.9, 50.0, 5.0), Measurement([4.0], 3.0, 60.0, 5.0)
    file = tmp_path / "ratios.png"
    report.draw({"W1": {"tapetensor": one, "torch": two}, "W2": {"tapetensor": one}}, file)

    assert file.read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("workload", list(WORKLOADS))
def test_compiled_training_is_eager_training_over_a_hundred_steps(workload: str) -> None:
    results, parameters, *_ = agreement.row(workload, tiny=True)

    assert results < agreement.BOUND
    assert parameters < agreement.BOUND


def test_what_differs_or_is_no_number_fails_beyond_the_bound(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["agreement", "W1", "--tiny", "--steps", "2", "--bound", "0"])

    assert agreement.main() == 0

    monkeypatch.setattr(agreement, "row", lambda *_, **__: (0.0, float("nan"), 0.0, 0.0))

    assert agreement.main() == 1
    assert "compiled and eager training differ: W1" in capsys.readouterr().out


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
