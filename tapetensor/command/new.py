"""Writing a new project, all of it or nothing."""

from __future__ import annotations

import keyword
import re
import shutil
import sys
from importlib import resources
from pathlib import Path
from string import Template

from tapetensor.arguments import check_kind
from tapetensor.errors import ArgumentValueError

# The files of a project by template; NAME stands for the name of the project.
_FILES = {
    ".gitignore": "gitignore.template",
    "README.md": "README.md.template",
    "mypy.ini": "mypy.ini.template",
    "pyproject.toml": "pyproject.toml.template",
    "NAME/__init__.py": "init.py.template",
    "NAME/data.py": "data.py.template",
    "NAME/model.py": "model.py.template",
    "NAME/train.py": "train.py.template",
    "tests/test_model.py": "test_model.py.template",
}
# What the project itself imports, or has beside the package.
_TAKEN = {"tapetensor", "numpy", "typing_extensions", "mypy", "pytest", "tests"}


def new_project(name: str, folder: Path) -> Path:
    """Write a project that passes mypy and pytest as it stands, and return its folder.

    Args:
        name: of the folder and of the package in it: small letters, digits and underscores.
        folder: where the project's folder is to be.

    Raises:
        ArgumentTypeError: if the name is no text.
        ArgumentValueError: if it is none that a package can have, or something is there already.
        OSError: if files cannot be written; none are left then.
    """
    _check_name(name)
    target = folder / name
    texts = resources.files("tapetensor.command") / "templates"
    try:
        target.mkdir()
    except FileExistsError:
        raise ArgumentValueError(
            f"new: {target} is there already, and nothing is overwritten"
        ) from None
    try:
        for path, template in _FILES.items():
            file = target / path.replace("NAME", name)
            file.parent.mkdir(exist_ok=True)
            text = Template((texts / template).read_text(encoding="utf-8"))
            file.write_text(text.substitute(name=name), encoding="utf-8")
    except BaseException:
        shutil.rmtree(target, ignore_errors=True)
        raise
    return target


def _check_name(name: str) -> None:
    check_kind("new", "the name", name, str, "a text")
    if not re.fullmatch(r"[a-z][a-z0-9_]*", name):
        proposed = re.sub(r"[^a-z0-9_]+", "_", name.lower()).strip("_0123456789")
        raise ArgumentValueError(
            f"new: {name!r} is no name for a package: small letters, digits and underscores, a "
            "letter first" + (f"; {proposed}, say" if proposed else "")
        )
    if keyword.iskeyword(name) or name in sys.stdlib_module_names | _TAKEN:
        raise ArgumentValueError(
            f"new: {name!r} means something else to Python or to the project; my_{name}, say"
        )
