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


def test_the_ownership_example_shows_every_error() -> None:
    output = run("examples/tape_ownership.py")

    for error in ("MovedTensorError", "UntracedTensorError", "ShapeError"):
        assert error in output


def test_the_contexts_example_reaches_what_mathematics_demands_and_does_not_grow() -> None:
    # Few steps, so that the models are still on their way and a wrong gradient would show.
    output = run("examples/contexts.py", "--steps", "7", "--forgetful-steps", "1000")

    assert output.count("after 7 steps") == 7
    assert "used after the context: mean: the tape was closed when context" in output
    assert "900 steps later there are" in output
