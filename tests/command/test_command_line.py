"""The command line by itself: what it shows, and under which names it is called."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib import metadata

import pytest

from tapetensor.__main__ import main
from tests.typing.catalogue import PAGE


def test_without_a_command_the_help_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 0

    shown = capsys.readouterr().out
    assert all(f"    {name} " in shown for name in ("new", "explain", "docs", "doctor"))


def test_explain_lists_the_entries_of_the_catalogue_in_their_order(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["explain"]) == 0

    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == re.findall(r"^### (\S+)", PAGE, re.MULTILINE)
    assert "AxisError                   There is no such axis, or no such index along it" in lines


def test_a_reader_that_has_enough_is_no_error() -> None:
    command = [sys.executable, "-m", "tapetensor", "explain"]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdout=pipe, stderr=pipe) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()

        assert process.wait() == 0
        assert process.stderr.read() == b""


@pytest.mark.parametrize(
    ("called", "shown"),
    [
        ("/usr/bin/tapetensor", "usage: tapetensor "),
        ("C:\\Scripts\\tapetensor.exe", "usage: tapetensor "),
        ("/lib/tapetensor/__main__.py", "usage: python -m tapetensor "),
    ],
)
def test_the_usage_names_the_command_as_it_was_called(
    called: str,
    shown: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("sys.argv", [called.replace("\\", "/")])
    assert main([]) == 0

    assert capsys.readouterr().out.startswith(shown)


def test_the_script_is_installed_under_the_name_of_the_library() -> None:
    scripts = metadata.entry_points(group="console_scripts", name="tapetensor")

    assert [script.load() for script in scripts] == [main]
