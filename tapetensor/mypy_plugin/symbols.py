"""Classes and aliases that mypy has read so far, by full name."""

from __future__ import annotations

from mypy.lookup import lookup_fully_qualified
from mypy.nodes import MypyFile, SymbolNode, TypeInfo

# mypy fills this, by full name, while it runs.
_modules: dict[str, MypyFile] = {}


def set_modules(modules: dict[str, MypyFile]) -> None:
    """Take note of the modules of a run."""
    global _modules  # mypy hands them to its plugins once per run
    _modules = modules


def node_of(fullname: str) -> SymbolNode | None:
    """Return what a full name stands for; None for a local one, and one that is not known yet."""
    found = lookup_fully_qualified(fullname, _modules)
    return None if found is None else found.node


def class_of(fullname: str) -> TypeInfo | None:
    """Return the class with a full name."""
    node = node_of(fullname)
    return node if isinstance(node, TypeInfo) else None


def member_of(info: TypeInfo, name: str) -> SymbolNode | None:
    """Return what a class has under a name, be it inherited."""
    found = info.get(name)
    return None if found is None else found.node
