"""What a training shows and writes: bars, pictures, tables, logs."""

from __future__ import annotations

import csv
import importlib
import io
import os
import re
import struct
import subprocess
import sys
import types
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typing_extensions import override

import tapetensor as tt
from tapetensor import nn
from tapetensor.training import CsvLog, History, Row, TensorBoardLog
from tests.training.models import METRICS, Run


def read(path: Path) -> list[dict[str, float]]:
    with path.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    return [{name: float(value) for name, value in row.items() if value} for row in rows]


def test_a_table_holds_the_history_to_the_bit(tmp_path: Path) -> None:
    run, path = Run(), tmp_path / "log.csv"
    history = run.fit(log=[CsvLog(path)], metrics=METRICS, validation=run.held_out)

    assert read(path) == history.rows
    assert path.read_text().splitlines()[0] == "epoch,steps,lr,seconds,loss,held-out loss,accuracy"


def test_a_table_is_that_of_one_training_also_where_it_goes_on(tmp_path: Path) -> None:
    path, checkpoint = tmp_path / "log.csv", tmp_path / "run.npz"
    first = Run().fit(epochs=2, log=[CsvLog(path)], checkpoint=checkpoint)
    # As if a checkpoint had been lost after a row was written.
    path.write_text(path.read_text() + "3,99,1,1,1\n")
    run = Run()
    history = run.fit(
        epochs=4,
        log=[CsvLog(path)],
        checkpoint=checkpoint,
        resume=True,
        metrics=METRICS,
        validation=run.held_out,
    )

    assert read(path) == history.rows
    assert history.rows[:2] == first.rows


def test_a_log_of_ones_own_hears_of_every_epoch_and_of_the_end() -> None:
    class Heard:
        def __init__(self) -> None:
            self.calls: list[Any] = []

        def start(self, columns: Any, rows: Any) -> None:
            self.calls.append(("start", list(columns), list(rows)))

        def write(self, row: Row) -> None:
            self.calls.append(row["epoch"])

        def close(self) -> None:
            self.calls.append("close")

    def failing(step: int) -> float:
        if step == 13:
            raise ZeroDivisionError
        return 0.001

    heard = Heard()
    with pytest.raises(ZeroDivisionError):
        Run().fit(log=[heard], schedule=failing)

    columns = ["epoch", "steps", "lr", "seconds", "loss"]
    assert heard.calls == [("start", columns, []), 1, 2, "close"]


def scalars(folder: Path) -> dict[str, list[tuple[int, float]]]:
    """Return what TensorBoard would show, read record by record as the format has it."""
    event_pb2: Any = importlib.import_module("tensorboardX.proto.event_pb2")
    found: dict[str, list[tuple[int, float]]] = {}
    for path in sorted(folder.iterdir()):
        content = path.read_bytes()
        while content:
            (length,) = struct.unpack("<Q", content[:8])
            # Each record: its length and the length's check sum, the event and its check sum.
            event = event_pb2.Event.FromString(content[12 : 12 + length])
            content = content[16 + length :]
            for value in event.summary.value:
                found.setdefault(value.tag, []).append((event.step, value.simple_value))
    return found


def test_tensorboard_gets_every_number_over_the_steps(tmp_path: Path) -> None:
    pytest.importorskip("tensorboardX")
    run = Run()
    history = run.fit(log=[TensorBoardLog(tmp_path)], metrics=METRICS, validation=run.held_out)
    found = scalars(tmp_path)

    for name in ("loss", "lr", "accuracy"):
        steps, values = zip(*found[name], strict=True)
        assert list(steps) == history["steps"] == [6, 12, 18]
        assert list(values) == pytest.approx(history[name])
    assert len(found) == 5


def test_a_missing_writer_is_missed_before_training(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tensorboardX", None)
    with pytest.raises(tt.MissingDependencyError, match=r"pip install 'tapetensor\[training"):
        TensorBoardLog("runs")


ROOT = Path(__file__).parents[2]


class Terminal(io.TextIOWrapper):
    """A stream that somebody looks at."""

    def __init__(self, encoding: str) -> None:
        self.bytes = io.BytesIO()
        super().__init__(self.bytes, encoding=encoding, errors="strict", write_through=True)

    @override
    def isatty(self) -> bool:
        return True

    def shown(self) -> str:
        return self.bytes.getvalue().decode(self.encoding)


def test_the_bar_shows_epoch_steps_and_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("tqdm")
    terminal = Terminal("utf-8")
    monkeypatch.setattr("sys.stderr", terminal)
    history = Run().fit()

    assert "epoch 3/3: 100%" in terminal.shown()
    assert "18/18" in terminal.shown()
    assert f"loss {history['loss'][-1]:.4g}" in terminal.shown()


def test_a_terminal_without_tqdm_gets_a_line_for_each_epoch(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    terminal = Terminal("utf-8")
    monkeypatch.setattr("sys.stderr", terminal)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    history = Run().fit()

    lines = [f"epoch {n}/3: loss {one:.4g}" for n, one in enumerate(history["loss"], start=1)]
    assert terminal.shown().splitlines() == lines


def test_a_notebook_gets_a_bar_of_one_line_that_is_shown_in_one_place(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("tqdm")
    shown: list[str] = []

    class Place:
        def update(self, data: dict[str, str], *, raw: bool) -> None:
            assert raw
            shown.append(data["text/plain"])

    def display(data: dict[str, str], *, raw: bool, display_id: bool) -> Place:
        assert raw
        assert display_id
        return Place()

    module = types.ModuleType("IPython.display")
    monkeypatch.setattr(module, "display", display, raising=False)
    monkeypatch.setitem(sys.modules, "ipykernel", sys)
    monkeypatch.setitem(sys.modules, "IPython", types.ModuleType("IPython"))
    monkeypatch.setitem(sys.modules, "IPython.display", module)
    history = Run().fit(epochs=2)

    assert all("\n" not in line and "\r" not in line for line in shown)
    assert shown[-1].startswith("epoch 2/2: 100%")
    assert f"loss {history['loss'][-1]:.4g}" in shown[-1]
    assert capsys.readouterr() == ("", "")


def test_a_missing_tqdm_is_missed_only_where_it_is_wanted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tqdm", None)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    Run().fit(epochs=1)
    with pytest.raises(tt.MissingDependencyError, match=r"bars need .*tapetensor\[training"):
        Run().fit(progress=True)


def test_a_history_is_drawn_without_a_display(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    program = (
        "import sys\n"
        "from tests.training.models import METRICS, Run\n"
        "run = Run()\n"
        "history = run.fit(metrics=METRICS, validation=run.held_out)\n"
        "figure = history.plot(sys.argv[1])\n"
        "print([axes.get_title() for axes in figure.axes], 'matplotlib.pyplot' in sys.modules)\n"
    )
    picture = tmp_path / "curve.png"
    surroundings = {name: value for name, value in os.environ.items() if name != "DISPLAY"}
    finished = subprocess.run(
        [sys.executable, "-c", program, str(picture)],
        cwd=ROOT,
        env=surroundings,
        capture_output=True,
        text=True,
        check=False,
    )

    assert finished.stdout == "['loss', 'held-out loss', 'accuracy'] False\n"
    assert picture.read_bytes().startswith(b"\x89PNG")


ROWS = [{"epoch": n, "steps": 6_000 * n, "lr": 0.1, "loss": 1 / n, "a < b": 0.5} for n in (1, 2, 3)]


def test_a_picture_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    history = Run().fit(epochs=1)
    picture = tmp_path / "missing" / "curve.png"
    with pytest.raises(
        FileNotFoundError, match=r"the picture could not be .*the history is as it w"
    ):
        history.plot(picture)


def test_a_history_without_epochs_has_nothing_to_draw() -> None:
    with pytest.raises(tt.ArgumentValueError, match="there are no epochs yet"):
        History().plot()


def test_a_history_iterates_over_its_rows() -> None:
    assert list(History(ROWS)) == ROWS


def test_a_history_is_its_curves_and_its_numbers_in_a_notebook(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pytest.importorskip("matplotlib")
    cell = History(ROWS)._repr_html_()
    figure: Any = History(ROWS).plot()

    assert cell.startswith("<svg ")
    assert figure._repr_svg_().startswith("<svg ")
    assert all(f">{text}</" in cell for text in ("a &lt; b", "12,000", "0.3333"))
    assert "a < b" not in cell
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert "<svg" not in History(ROWS)._repr_html_()
    assert "<svg" not in History()._repr_html_()


def test_a_module_and_gradients_are_tables_in_a_notebook() -> None:
    model = nn.Linear(3, 2, rng=np.random.default_rng(0))
    x = tt.ones((4, 3))
    grads = model.forward(x.trace()).sum().backward()

    cells = re.findall(r">([^<>]+)</t[dh]>", model._repr_html_())
    assert cells == [
        *["name", "shape", "parameters", "weight", "(2, 3)", "6", "bias", "(2,)", "2", "total", "8"]
    ]
    assert str(model.bias.id) in grads._repr_html_()
    assert ">(2,)</td>" in grads._repr_html_()
    assert f">{4 * 2**0.5:.4g}</td>" in grads._repr_html_()
