from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tapetensor.__main__ import main
from tapetensor.native import cache
from tapetensor.native.scalars import numba

SOURCE = "def loop(a):\n    for i in range(a.size):\n        a[i] = exp(a[i])\n"
PROGRAM = f"""
import numpy as np
from tapetensor.__main__ import main
from tapetensor.native import cache
from tapetensor.native.scalars import numba
array = np.zeros(3, np.float32)
loop = cache.load({SOURCE!r}, (numba().typeof(array),))
loop(array)
assert array.tolist() == [1, 1, 1]
print(sum(loop.stats.cache_hits.values()))
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setenv(cache.FOLDER_VARIABLE, str(tmp_path / "own"))
    cache.folder.cache_clear()
    yield tmp_path / "own"
    cache.folder.cache_clear()


def _run() -> int:
    """Run the program in a process of its own; return how often it read machine code."""
    output = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True
    ).stdout
    return int(output)


def _types() -> tuple[Any, ...]:
    return (numba().typeof(np.zeros(3, np.float32)),)


def test_another_process_reads_what_one_has_compiled(folder: Path) -> None:
    assert [_run(), _run()] == [0, 1]


def test_reading_loads_nothing_that_compiles_until_something_is_compiled(folder: Path) -> None:
    _run()
    other = SOURCE.replace("exp(a[i])", "a[i] + f4(1)")
    program = f"""{PROGRAM}
import sys
assert "numba.np.arraymath" not in sys.modules
loop = cache.load({other!r}, (numba().typeof(array),))
loop(array)
assert array.tolist() == [2, 2, 2]
assert "numba.np.arraymath" in sys.modules
"""

    if numba().version_info.short > cache._NEWEST:
        pytest.skip("of this version it is not known what compiled code needs of it")
    assert subprocess.run([sys.executable, "-c", program], check=True).returncode == 0


def test_a_source_of_other_bytes_is_made_again(folder: Path) -> None:
    _run()
    (source,) = folder.glob("loop_*.py")
    written = source.read_bytes()
    source.write_bytes(b"\xff\xfe")

    _run()

    assert source.read_bytes() == written


def test_machine_code_lies_in_the_folder_where_numba_is_told_another(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "other"))

    assert [_run(), _run()] == [0, 1]
    assert [*folder.glob("__pycache__/*.nbc")]


def test_the_folder_is_the_users_alone(folder: Path) -> None:
    assert cache.folder() == folder
    assert folder.stat().st_mode & 0o777 == 0o700

    folder.chmod(0o777)
    cache.folder.cache_clear()

    assert cache.folder() != folder


@pytest.mark.parametrize("kind", ["*.nbi", "*.nbc"])
def test_a_damaged_entry_is_made_again(folder: Path, kind: str) -> None:
    _run()
    (file,) = (folder / "__pycache__").glob(kind)
    content = file.read_bytes()
    file.write_bytes(content[: len(content) // 2] + b"\0" + content[len(content) // 2 + 1 :])

    assert [_run(), _run()] == [0, 1]


def test_who_waits_is_told_once(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(cache, "_WORTH_TELLING", 1e-9)
    monkeypatch.setattr(cache, "_compiling", [])
    for factor in (2, 3):
        cache.load(SOURCE.replace("exp(a[i])", f"a[i] * f4({factor})"), _types())

    told = capsys.readouterr().err

    assert told == f"tapetensor: native code is compiled, and kept in {folder} for the next time\n"


def test_the_doctor_clears_the_cache(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cache.load(SOURCE, _types())

    assert main(["doctor", "--clear-native"]) == 0
    assert "native code are removed" in capsys.readouterr().out
    assert not list(folder.glob("loop_*"))
