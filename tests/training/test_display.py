"""What a person sees: the bar, on any terminal, and pictures, without a display."""

from __future__ import annotations

import io
import os
import re
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
from tapetensor.training import History
from tests.training.models import Run

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
