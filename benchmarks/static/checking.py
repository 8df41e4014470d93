"""mypy over many programs at once, with and without the plugin."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
CONFIGURATION = """\
[mypy]
strict = True
warn_unreachable = True
mypy_path = {root}:{root}/stubs
{plugins}

# Checked elsewhere; here it is only imported.
[mypy-tapetensor.*]
follow_imports = silent
"""
_LINE = re.compile(r"(?P<path>.+?):(?P<line>\d+): error: (?P<message>.*)")


class Report(NamedTuple):
    """What mypy says.

    Attributes:
        errors: by file, line and message of each error.
        seconds: how long it took.
    """

    errors: Mapping[Path, list[tuple[int, str]]]
    seconds: float


def both_reports(files: list[Path], folder: Path) -> tuple[Report, Report]:
    """Return what mypy says without the plugin and with it, from two runs side by side.

    Args:
        files: what to check.
        folder: where configurations and caches go; mypy's cache does not notice that a plugin has
            changed, so it should be a new one.
    """
    with ThreadPoolExecutor(2) as pool:
        plain = pool.submit(report, files, folder / "plain", "")
        plugin = pool.submit(report, files, folder / "plugin", "plugins = tapetensor.mypy_plugin")
        return plain.result(), plugin.result()


def report(files: list[Path], folder: Path, plugins: str) -> Report:
    """Return what one run of mypy says.

    Raises:
        RuntimeError: if mypy does not get to the end.
    """
    folder.mkdir(parents=True, exist_ok=True)
    configuration = folder / "mypy.ini"
    configuration.write_text(CONFIGURATION.format(root=ROOT, plugins=plugins))
    # In a file: a command line is not long enough for thousands of paths.
    paths = folder / "files.txt"
    paths.write_text("\n".join(map(str, files)))
    command = [sys.executable, "-m", "mypy", f"--config-file={configuration}", "--no-pretty"]
    command += [f"--cache-dir={folder / 'cache'}", f"@{paths}"]
    start = time.perf_counter()
    finished = subprocess.run(
        command,
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
        env=os.environ | {"TAPETENSOR_PLUGIN_RAISE": "1"},
    )
    seconds = time.perf_counter() - start
    if finished.returncode not in (0, 1):
        raise RuntimeError(f"mypy stopped: {finished.stdout[-2000:]}{finished.stderr[-2000:]}")
    errors: dict[Path, list[tuple[int, str]]] = defaultdict(list)
    for line in finished.stdout.splitlines():
        if found := _LINE.fullmatch(line):
            path = Path(ROOT, found["path"]).resolve()
            errors[path].append((int(found["line"]), found["message"]))
    return Report(errors, seconds)
