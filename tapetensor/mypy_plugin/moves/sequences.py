"""Sequences of which only the protocol is declared: a list, unless the file has another kind."""

from __future__ import annotations

from typing import Any, Final

from mypy.nodes import MypyFile, TypeInfo
from mypy.types import Instance, Type

from tapetensor.mypy_plugin import flow
from tapetensor.mypy_plugin.kinds import bounded

_SEQUENCE: Final = "typing.Sequence"
_PYTHONS_OWN: Final = frozenset({"builtins", "collections", "typing"})


def listed(checker: Any, type_: Type | None) -> Type | None:
    """Return the type of a list for that of a sequence, and any other type as it is.

    A sequence of a class of its own may make its items as they are asked for, so that nothing is
    taken for granted in a file that defines or imports such a class.
    """
    found = bounded(type_)
    if not isinstance(found, Instance) or found.type.fullname != _SEQUENCE:
        return type_
    if not hasattr(checker, "named_generic_type") or _has_its_own(flow.tree(checker)):
        return type_
    as_list: Type = checker.named_generic_type("builtins.list", list(found.args))
    return as_list


def _has_its_own(file: MypyFile) -> bool:
    return any(
        isinstance(one.node, TypeInfo)
        and one.node.has_base(_SEQUENCE)
        and one.node.module_name not in _PYTHONS_OWN
        and not one.node.is_named_tuple
        for one in file.names.values()
    )
