"""Logs: what they hold, and how they go on."""

from __future__ import annotations

import csv
import importlib
import struct
import sys
from pathlib import Path
from typing import Any

import pytest

import tapetensor as tt
from tapetensor.training import CsvLog, Row, TensorBoardLog
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
