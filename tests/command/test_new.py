"""``python -m tapetensor new NAME``: it passes as it stands, and nothing is overwritten."""

from __future__ import annotations

import errno
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import tapetensor as tt
from tapetensor.__main__ import main
from tapetensor.command.new import new_project
from tests.plugin.checked import CONFIGURATION, library_cache

ROOT = Path(__file__).parents[2]


def run(folder: Path, *arguments: str) -> str:
    """Run a module of Python as its user does, and return what it prints."""
    finished = subprocess.run(
        [sys.executable, "-m", *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert finished.returncode == 0, finished.stdout + finished.stderr
    return finished.stdout


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project, written by the command."""
    folder = tmp_path_factory.mktemp("projects")
    assert run(folder, "tapetensor", "new", "two_spirals").startswith("two_spirals/ is ready")
    return folder / "two_spirals"


def test_a_new_project_has_what_it_says(project: Path) -> None:
    files = {str(file.relative_to(project)) for file in project.rglob("*") if file.is_file()}

    assert files == {
        *[".gitignore", "README.md", "mypy.ini", "pyproject.toml", "tests/test_model.py"],
        *[f"two_spirals/{name}.py" for name in ("__init__", "data", "model", "train")],
    }
    assert [file for file in files if "$" in (project / file).read_text()] == []
    assert [one.name for one in project.parent.iterdir()] == ["two_spirals"]
    assert "plugins = tapetensor.mypy_plugin" in (project / "mypy.ini").read_text()
    assert "strict = True" in (project / "mypy.ini").read_text()
    # No index is known to have it.
    assert "install tapetensor" not in (project / "README.md").read_text()


def test_a_new_project_passes_mypy_and_a_wrong_size_in_it_does_not(
    project: Path, tmp_path: Path
) -> None:
    # Stricter than its own settings, with which CI runs it: the library is in the cache with these.
    codes = re.findall(r"^enable_error_code = (.*)$", CONFIGURATION.read_text(), re.MULTILINE)
    options = [f"--enable-error-code={code}" for code in codes[0].split(", ")]
    settings = tmp_path / "mypy.ini"
    own = (project / "mypy.ini").read_text()
    settings.write_text(f"{own}[mypy-tapetensor.*]\nfollow_imports = silent\n")
    mypy = ["mypy", f"--config-file={settings}", f"--cache-dir={library_cache(tmp_path)}"]
    mypy += ["--warn-unreachable", *options]

    model = project / "two_spirals" / "model.py"
    right, wrong = "out: nn.Linear[L[32], L[2]]", "out: nn.Linear[L[31], L[2]]"
    assert right in model.read_text()
    # One run for both: what mypy says of the project is said of the wrong copy alone.
    beside = model.with_name("wrong.py")
    beside.write_text(model.read_text().replace(right, wrong))
    try:
        with pytest.raises(AssertionError, match=r"wrong\.py:.*31.*32") as said:
            run(project, *mypy)
    finally:
        beside.unlink()
    assert {
        line.partition(":")[0] for line in str(said.value).splitlines() if ": error: " in line
    } == {"two_spirals/wrong.py"}


def test_a_new_project_passes_pytest_and_trains(project: Path) -> None:
    assert "3 passed" in run(project, "pytest", "-q", "-p", "no:cacheprovider")
    assert "History(2 epochs, " in run(project, "two_spirals.train", "--epochs", "2")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("my-project", "is no name for a package: .*; my_project, say"),
        ("My Project", "my_project, say"),
        ("3d", "is no name for a package: .*; d, say"),
        ("", "a letter first\n"),
        ("../up", "; up, say"),
        ("größe", "is no name for a package"),
        ("class", "means something else to Python .*; my_class, say"),
        ("json", "means something else"),
        ("tapetensor", "means something else"),
        ("tests", "means something else"),
    ],
)
def test_a_name_that_no_package_can_have_is_refused(
    tmp_path: Path, name: str, message: str
) -> None:
    with pytest.raises(tt.ArgumentValueError, match=message):
        new_project(name, tmp_path)

    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("kind", ["file", "folder", "link to nothing"])
def test_nothing_is_overwritten(tmp_path: Path, kind: str) -> None:
    target = tmp_path / "demo"
    if kind == "file":
        target.write_text("mine")
    elif kind == "folder":
        target.mkdir()
    else:
        target.symlink_to(tmp_path / "nowhere")
    with pytest.raises(tt.ArgumentValueError, match="is there already, and nothing is overwritten"):
        new_project("demo", tmp_path)

    assert list(tmp_path.iterdir()) == [target]
    assert kind != "file" or target.read_text() == "mine"


def test_a_disk_that_is_full_leaves_nothing_half_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write, written = Path.write_text, 0

    def full(self: Path, *arguments: Any, **options: Any) -> int:
        nonlocal written
        written += 1
        if written > 3:
            raise OSError(errno.ENOSPC, "No space left on device")
        return write(self, *arguments, **options)

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("pathlib.Path.write_text", full)

    assert main(["new", "demo"]) == 1
    assert capsys.readouterr().err == "[Errno 28] No space left on device\n"
    assert list(tmp_path.iterdir()) == []


def test_the_command_says_what_is_wrong_in_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["new", "my-project"]) == 1

    output, errors = capsys.readouterr()
    assert output == ""
    assert errors.startswith("new: 'my-project' is no name for a package")
    assert errors.count("\n") == 1
