"""Module classes: which are some, and how they are constructed."""

from __future__ import annotations

from typing import Any

from mypy.nodes import Decorator, FuncBase, OverloadedFuncDef, TypeInfo
from mypy.types import CallableType, get_proper_type

from tapetensor.mypy_plugin import names
from tapetensor.mypy_plugin.symbols import class_of


def derives(fullname: str, base: str) -> bool:
    """Tell whether a name is that of the class `base`, or of one derived from it.

    A hook for every name there is would answer in place of other plugins, hence this question.
    """
    if fullname == base:
        return True
    info = class_of(fullname)
    return info is not None and info.has_base(base)


def with_constructor(info: TypeInfo) -> TypeInfo | None:
    """Return the class whose constructor, written by hand, makes a module; None for fields."""
    for base in info.mro:
        if base.fullname == names.MODULE:
            return None
        symbol = base.names.get("__init__")
        if symbol is not None and not symbol.plugin_generated:
            return base
    return None


def signature_of_constructor(owner: TypeInfo) -> CallableType | None:
    """Return the signature of a constructor as it is implemented, `self` included."""
    node: Any = owner.names["__init__"].node
    if isinstance(node, OverloadedFuncDef):
        node = node.impl
    if isinstance(node, Decorator):
        node = node.func
    found = get_proper_type(node.type) if isinstance(node, FuncBase) else None
    return found if isinstance(found, CallableType) else None
