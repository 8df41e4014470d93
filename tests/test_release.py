"""What the package says of itself: extras, versions, policies; what it imports, and what not."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from importlib.metadata import version
from pathlib import Path
from typing import Any

import tapetensor as tt

ROOT = Path(__file__).parents[1]
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
# Extras of who works on tapetensor rather than with it.
OF_DEVELOPERS = {"dev", "benchmarks", "docs"}


def packages_of(extra: str) -> set[str]:
    """Return the packages of an extra, by the names that they are imported under."""
    requirements = PROJECT["optional-dependencies"][extra]
    names = {re.split(r"[\[>=]", one)[0] for one in requirements}
    renamed = {"scikit-learn": "sklearn", "cupy-cuda12x": "cupy"}
    return {renamed.get(name, name) for name in names} - {"tapetensor"}


def test_no_room_of_the_package_imports_an_extra() -> None:
    files = [file.relative_to(ROOT).with_suffix("") for file in (ROOT / "tapetensor").rglob("*.py")]
    # What derives from classes of an extra is imported by those who have it.
    theirs = {"mypy_plugin", "estimators"}
    rooms = [".".join(one.parts) for one in files if theirs.isdisjoint(one.parts)]
    program = (
        "import importlib, sys\n"
        "for name in sys.argv[1:]: importlib.import_module(name)\n"
        "print(*{name.partition('.')[0] for name in sys.modules})\n"
    )
    finished = subprocess.run(
        [sys.executable, "-c", program, *rooms],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    extras = set().union(*[packages_of(one) for one in PROJECT["optional-dependencies"]])

    assert {"tqdm", "matplotlib", "safetensors", "tensorboardX", "torch", "mypy"} <= extras
    assert extras & set(finished.stdout.split()) == set()


def test_the_version_is_that_of_the_distribution() -> None:
    assert tt.__version__ == version("tapetensor")
    assert re.fullmatch(r"\d+\.\d+\.\d+", PROJECT["version"])


def test_five_minutes_lists_every_extra_for_users() -> None:
    page = (ROOT / "docs" / "start.md").read_text()
    listed = re.findall(r"^\| `([a-z]+)` \|", page, flags=re.MULTILINE)

    assert sorted(listed) == sorted(PROJECT["optional-dependencies"].keys() - OF_DEVELOPERS)


def test_the_interpreters_are_those_that_ci_installs_the_wheel_into() -> None:
    ci = (ROOT / ".ci" / "run").read_text()
    classified = re.findall(r"Python :: (3\.\d+)", " ".join(PROJECT["classifiers"]))

    # One is built for WebAssembly, where tests/wasm runs.
    page = (ROOT / "docs" / "browser.md").read_text()
    in_webassembly = re.findall(r"CPython (3\.\d+) for WASI", page)
    native = [one for one in classified if one not in in_webassembly]
    assert classified == native + in_webassembly
    assert f"for version in {' '.join(native)}; do" in ci
    assert "tests/wasm/host.py" in ci
    assert PROJECT["requires-python"] == f">={classified[0]}"


def test_every_message_of_a_missing_extra_names_one_that_brings_the_package() -> None:
    sources = [file.read_text() for file in (ROOT / "tapetensor").rglob("*.py")]
    calls = [
        node.args
        for source in sources
        if "import_extra" in source
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "import_extra"
    ]
    # The name of a module may come from elsewhere.
    pairs = [
        (str(module.value).partition(".")[0], str(extra.value))
        for module, _, extra, *_ in calls
        if isinstance(module, ast.Constant) and isinstance(extra, ast.Constant)
    ]

    assert ("tqdm", "training") in pairs
    assert [one for one in pairs if one[0] not in packages_of(one[1])] == []
