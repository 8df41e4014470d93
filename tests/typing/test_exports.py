"""Every public name is visible to static tools, and there once."""

from __future__ import annotations

import ast
import importlib
import inspect
from pathlib import Path
from types import ModuleType

import pytest
from typing_extensions import TypeAliasType

import tapetensor

ROOT = Path(tapetensor.__file__).parent
PACKAGES = [
    "tapetensor",
    "tapetensor.distributed",
    "tapetensor.io",
    "tapetensor.nn",
    "tapetensor.optim",
    "tapetensor.training",
]


def _reexports(package: str) -> list[str]:
    """Return the names in `__init__.py` that a type checker takes for public, in order."""
    source = importlib.import_module(package).__file__
    assert source is not None
    # Walked rather than listed: what is imported on first use stands under `TYPE_CHECKING`.
    imports = [
        one
        for one in ast.walk(ast.parse(Path(source).read_text()))
        if isinstance(one, ast.ImportFrom)
    ]
    return [
        alias.asname
        for one in imports
        for alias in one.names
        # The redundant alias is what makes a name public to every checker.
        if alias.asname is not None and alias.asname == alias.name
    ]


def _public(package: str) -> set[str]:
    """Return the names that a user finds at run time, but for modules."""
    names = vars(importlib.import_module(package))
    return {
        name
        for name, value in names.items()
        if not name.startswith("_")
        and not isinstance(value, ModuleType)
        and name not in ("annotations", "TYPE_CHECKING")
    }


@pytest.mark.parametrize("package", PACKAGES)
def test_every_public_name_is_exported_to_static_tools_exactly_once(package: str) -> None:
    exported = _reexports(package)

    assert len(exported) == len(set(exported))
    assert _public(package) <= set(exported)
    assert [name for name in exported if not hasattr(importlib.import_module(package), name)] == []


def test_what_has_no_docstring_of_its_own_is_an_alias_of_types() -> None:
    others = {
        name: getattr(tapetensor, name)
        for name in _public("tapetensor")
        if not inspect.isclass(getattr(tapetensor, name))
        and not inspect.isfunction(getattr(tapetensor, name))
    }
    aliases = {f"Rank{n}" for n in range(7)} | {f"Tensor{n}D" for n in range(7)} | {"Tape"}

    assert set(others) == aliases
    assert all(isinstance(others[name], TypeAliasType) for name in aliases - {"Tape"})


def test_the_types_are_inline() -> None:
    assert (ROOT / "py.typed").is_file()
    assert list(ROOT.rglob("*.pyi")) == []


def test_every_type_variable_for_users_is_listed_and_has_no_default() -> None:
    aliases = {"Array", "Pullback", "Pullbacks", "Add", "Sub", "Mul", "Div"}
    listed = tapetensor.typing.__all__
    variables = {name for name in vars(tapetensor.typing) if len(name) == 1 or name == "Ds"}

    assert variables | aliases == set(listed)
    assert [name for name in variables if getattr(tapetensor.typing, name).has_default()] == []
