"""The examples do what they say."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


def run(*arguments: str) -> str:
    """Run an example as a user does and return what it prints."""
    finished = subprocess.run(
        [sys.executable, *arguments], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert finished.returncode == 0, finished.stderr
    return finished.stdout


def test_the_digits_example_reaches_97_percent_and_draws_its_learning_curve(
    tmp_path: Path,
) -> None:
    pytest.importorskip("sklearn")
    pytest.importorskip("matplotlib")
    picture = tmp_path / "curve.png"

    output = run("examples/digits.py", "--picture", str(picture))

    reached = float(output.rsplit("held-out accuracy ", 1)[1].split("%")[0])
    assert reached >= 97.0
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_the_convolutional_digits_example_learns_within_three_epochs(tmp_path: Path) -> None:
    pytest.importorskip("sklearn")
    pytest.importorskip("matplotlib")
    picture = tmp_path / "curve.png"

    output = run("examples/cnn_digits.py", "--epochs", "3", "--picture", str(picture))

    # All 20 epochs reach 98.5 % and more, which takes too long for a test.
    reached = float(output.rsplit("held-out accuracy ", 1)[1].split("%")[0])
    assert reached >= 96.5
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_the_ownership_example_shows_every_error() -> None:
    output = run("examples/tape_ownership.py")

    for error in ("MovedTensorError", "UntracedTensorError", "ShapeError"):
        assert error in output
